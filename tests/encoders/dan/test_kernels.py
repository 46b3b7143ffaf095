"""The kernels that a text passes on its way to its vector."""

import numpy as np
import pytest

from rejoinder.inference.encoder import SentenceEncoder
from rejoinder.registry import kernel


@pytest.mark.skipif(kernel("encoders.dan._sums") is None, reason="the kernels are not built")
def test_the_kernels_compute_what_is_encoded(monkeypatch):
    calls = []

    def counted(native, name):
        function = getattr(native, name)
        monkeypatch.setattr(native, name, lambda *given: (calls.append(name), function(*given))[1])

    counted(kernel("encoders.dan._sums"), "sums")
    counted(kernel("encoders.dan._sums"), "unit_rows")
    encoder = SentenceEncoder()
    row = encoder.encode("How old are you?")
    assert calls == ["sums", "unit_rows"]
    assert encoder._model.features.word_ids.way == "native"
    np.testing.assert_allclose(np.linalg.norm(row), 1, atol=1e-6)
