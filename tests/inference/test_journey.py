"""A text on its way to its vector: the files that it passes, and the kernels among them."""

import sys
from pathlib import Path

import numpy as np
import pytest

import rejoinder
from rejoinder.inference.encoder import SentenceEncoder
from rejoinder.kernels import kernel
from rejoinder.models.find import shipped_model

FILES = {
    "inference/encoder.py",
    "inference/inputs.py",
    "inference/outputs.py",
    "text/features.py",
    "text/words.py",
    "text/readings.py",
    "text/letters.py",
    "text/vocabulary.py",
    "text/normalize.py",
    "text/ragged.py",
    "encoders/dan/runtime.py",
    "encoders/layers.py",
    "kernels.py",
}
"""Besides `text/_words.c` and `encoders/dan/_sums.c`."""


def test_a_text_passes_few_files():
    encoder = SentenceEncoder(shipped_model())
    for _ in range(2):  # the calls 1, 2, 4, 8 ... also look at the language
        encoder.encode("Déjà vu?")
    root, passed = Path(rejoinder.__file__).parent, set()

    def note(frame, event, _argument):
        path = Path(frame.f_code.co_filename)
        if event == "call" and path.is_relative_to(root):
            passed.add(path.relative_to(root).as_posix())

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        encoder.encode("Déjà vu, how old are you?")
    finally:
        sys.setprofile(before)
    assert passed <= FILES, passed - FILES


@pytest.mark.skipif(kernel("encoders.dan._sums") is None, reason="the kernels are not built")
def test_the_kernels_compute_what_is_encoded(monkeypatch):
    calls = []

    def counted(native, name):
        function = getattr(native, name)
        monkeypatch.setattr(native, name, lambda *given: (calls.append(name), function(*given))[1])

    counted(kernel("encoders.dan._sums"), "sums")
    counted(kernel("encoders.dan._sums"), "unit_rows")
    encoder = SentenceEncoder(shipped_model())
    row = encoder.encode("How old are you?")
    assert calls == ["sums", "unit_rows"]
    assert encoder._model.features.word_ids.way == "native"
    np.testing.assert_allclose(np.linalg.norm(row), 1, atol=1e-6)
