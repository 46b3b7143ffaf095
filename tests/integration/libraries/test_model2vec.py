"""Exported folders in the real model2vec."""

import numpy as np
from model2vec import StaticModel
from sentence_transformers import SentenceTransformer

from rejoinder import SentenceEncoder
from rejoinder.interfaces.targets import export_to


def test_vectors_are_the_same(linear, texts, tmp_path):
    export_to(linear, tmp_path / "out", "model2vec")
    model = StaticModel.from_pretrained(tmp_path / "out")
    expected = SentenceEncoder.load(linear).encode(texts)
    np.testing.assert_allclose(model.encode(texts), expected, atol=1e-5)
    assert (model.dim, model.normalize, model.max_length) == (512, True, None)
    for number, token in enumerate(("how", "zzzqx")):  # it has no tokens for unknown words
        assert len(model.tokenize([token])[0]) == 1 - number


def test_sentence_transformers_reads_the_folder_too(linear, texts, tmp_path):
    export_to(linear, tmp_path / "out", "model2vec")
    model = SentenceTransformer(str(tmp_path / "out"))
    expected = SentenceEncoder.load(linear).encode(texts)
    np.testing.assert_allclose(model.encode(texts), expected, atol=1e-5)
