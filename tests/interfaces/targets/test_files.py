"""Word vectors: which models are nothing else, and that their mean is the model's embedding."""

from dataclasses import replace

import numpy as np
import pytest

from awkward_texts import awkward_texts
from rejoinder.inference.encoder import SentenceEncoder
from rejoinder.interfaces.targets import obstacle, word_vectors
from rejoinder.models.adaptation import Adaptation
from rejoinder.models.smaller import ExportOptions, smaller
from tiny_models import WORDS, bilstm_model, dan_model, transformer_model


def linear_dan(**options):
    return dan_model(layers=(), head=(4, 6), buckets=0, **options)


def adapted(model):
    draw = np.random.default_rng(1)
    matrix = np.eye(6, dtype=np.float32) + 0.2 * draw.standard_normal((6, 6), np.float32)
    return replace(model, adaptation=Adaptation(matrix, {}))


@pytest.mark.parametrize(
    "model",
    [
        linear_dan(),
        linear_dan(combiner="mean"),
        linear_dan(combiner="sum", dtype=np.float16),
        smaller(linear_dan(), ExportOptions(dtype="int8")),
        adapted(linear_dan()),
    ],
    ids=["sqrtn", "mean", "sum", "int8", "adapted"],
)
def test_the_mean_of_word_vectors_has_the_direction_of_the_embedding(model):
    assert obstacle(model) is None
    texts = [" ".join(text.lower().split()) for text in awkward_texts(300, seed=4)]
    words, rows = word_vectors(model)
    assert list(words) == WORDS
    assert rows.shape == (len(WORDS) + 1, model.dim)
    assert not rows[-1].any()
    batch = model.features(texts)
    means = np.zeros((len(texts), model.dim))
    for number in np.flatnonzero(batch.lengths):
        ids = batch.ids[batch.offsets[number] : batch.offsets[number + 1]]
        means[number] = rows[ids].astype(np.float64).mean(axis=0)
        means[number] /= np.linalg.norm(means[number])
    np.testing.assert_allclose(means, SentenceEncoder(model).encode(texts), atol=1e-5)
    assert 100 < np.count_nonzero(batch.lengths) < 300


@pytest.mark.parametrize(
    ("model", "said"),
    [
        (linear_dan(unknown_buckets=8), "has 8 buckets for unknown words"),
        (dan_model(layers=(), head=(4, 6)), "has 64 rows of pairs of neighbouring words"),
        (dan_model(buckets=0), "has 2 dense layers after the sum of word vectors"),
        (bilstm_model(), "is a bilstm, whose embedding is not a mean"),
        (transformer_model(), "is a transformer, whose embedding is not a mean"),
    ],
    ids=["unknown", "bigrams", "layers", "bilstm", "transformer"],
)
def test_what_is_more_than_word_vectors_is_named(model, said):
    assert said in obstacle(model)
