"""How many words, stems and sequences of words the texts share, alone and by weight."""

import numpy as np
from numpy.typing import NDArray

from rejoinder.encoders.layers import Array
from rejoinder.scoring.batch import PairBatch, lower_and_higher, share
from rejoinder.scoring.families import Family

_RARE = np.float32(1.6)
"""Weight from which a word is not one of the 80 most frequent."""


def _compute(batch: PairBatch) -> list[Array]:
    pairs = batch.equal[:, :-1, :-1] & batch.equal[:, 1:, 1:]
    words = batch.first.lengths + batch.second.lengths
    triples = pairs[:, :-1, :-1] & batch.equal[:, 2:, 2:]
    return [
        _shared(batch, batch.equal, 1),
        share(batch.shared[0].sum(axis=1) + batch.shared[1].sum(axis=1), words),
        _shared(batch, pairs, 2),
        _shared(batch, triples, 3),
        *_weighted(batch),
        *_by_frequency(batch),
    ]


def _shared(batch: PairBatch, same: NDArray[np.bool_], words: int) -> Array:
    """Returns the share of sequences of that many words that the other text has, too."""
    common = same.any(axis=2).sum(axis=1) + same.any(axis=1).sum(axis=1)
    wholes = [np.maximum(side.lengths - (words - 1), 0) for side in batch.sides]
    return share(common, wholes[0] + wholes[1])


def _weighted(batch: PairBatch) -> list[Array]:
    """Returns the share of the weight of stems that the other text has, too."""
    common = [
        (side.weights * shared).sum(axis=1)
        for side, shared in zip(batch.sides, batch.shared, strict=True)
    ]
    wholes = [side.weight for side in batch.sides]
    each = [share(part, whole) for part, whole in zip(common, wholes, strict=True)]
    return [share(common[0] + common[1], wholes[0] + wholes[1]), *lower_and_higher(*each)]


def _by_frequency(batch: PairBatch) -> list[Array]:
    """Returns the shares of frequent words and of others that the other text has, too."""
    rare = [side.weights >= _RARE for side in batch.sides]
    rare_counts = [each.sum(axis=1) for each in rare]
    rare_shared = [(a & b).sum(axis=1) for a, b in zip(batch.shared, rare, strict=True)]
    whole, common = rare_counts[0] + rare_counts[1], rare_shared[0] + rare_shared[1]
    frequent = batch.first.lengths + batch.second.lengths - whole
    both = batch.shared[0].sum(axis=1) + batch.shared[1].sum(axis=1) - common
    return [
        np.where(frequent > 0, share(both, frequent), 1),
        np.where(whole > 0, share(common, whole), 1),
        share(np.minimum(*rare_shared), np.minimum(*rare_counts)),
    ]


OVERLAP = Family(
    "overlap",
    (
        "shared words", "shared stems", "shared pairs of words", "shared triples of words",
        "shared weight", "lower share of weight", "higher share of weight",
        "shared frequent words", "shared rare words", "shared rare words of the shorter",
    ),
    _compute,
)  # fmt: skip
