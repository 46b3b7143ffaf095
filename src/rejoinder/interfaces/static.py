"""Models that are a table of word vectors and nothing else, as most libraries can express them.

A linear bag of words adds up a row for each word. Whatever the combiner divides the sum by, its
direction is that of the mean, and so is the embedding, whose length is 1.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rejoinder.encoders.quantized import dequantized
from rejoinder.models.folder import ModelContents
from rejoinder.text.features import WordFeatures


@dataclass(frozen=True)
class WordVectors:
    """The vectors of words whose mean, scaled to length 1, is the embedding of a sentence."""

    words: Sequence[str]
    """W words, as the text rules make them."""
    rows: NDArray[np.float32]
    """(W + 1, D) float32, a row for each word. The last one, of unknown words, is zero."""


def obstacle(model: ModelContents) -> str | None:
    """Returns why a model is more than a table of word vectors, None if it is one.

    It is the rest of a sentence that begins with the model, such as "has 8 buckets of …".
    """
    features = model.features
    if model.kind.name != "dan" or not isinstance(features, WordFeatures):
        return f"is a {model.kind.name}, whose embedding is no mean of word vectors"
    if model.encoder["layers"]:
        return f"has {len(model.encoder['layers'])} dense layers behind the sum of word vectors"
    if features.buckets:
        return f"has {features.buckets:,} rows of pairs of neighbouring words"
    if features.unknown_buckets:
        return (
            f"has {features.unknown_buckets:,} buckets for unknown words, which a hash chooses; "
            "--unknown-buckets 0 leaves them out"
        )
    return None


def word_vectors(model: ModelContents) -> WordVectors:
    """Returns the word vectors of a model without an `obstacle`, adapted if it is.

    An adaptation u* = W u is linear, so that it is applied to the rows.
    """
    features = model.features
    assert isinstance(features, WordFeatures)  # noqa: S101 -- `obstacle` says so
    rows = dequantized(model.tensors)[f"encoder.{model.kind.table}"].astype(np.float32)
    if model.adaptation is not None:
        rows = model.adaptation.project(rows)
    unknown = np.zeros((1, rows.shape[1]), np.float32)
    return WordVectors(features.vocabulary.words, np.concatenate([rows, unknown]))
