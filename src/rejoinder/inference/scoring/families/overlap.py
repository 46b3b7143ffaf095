"""How many words, stems and sequences of words the texts share, alone and by weight."""

import numpy as np
from numpy.typing import NDArray

from rejoinder.encoders.layers import Array
from rejoinder.inference.scoring.batch import PairBatch, lower_and_higher, share
from rejoinder.inference.scoring.families.base import Family


def _compute(batch: PairBatch) -> list[Array]:
    pairs = batch.equal[:, :-1, :-1] & batch.equal[:, 1:, 1:]
    triples = pairs[:, :-1, :-1] & batch.equal[:, 2:, 2:]
    return [
        _shared(batch, batch.equal, 1),
        _shared(batch, batch.same_stem, 1),
        _shared(batch, pairs, 2),
        _shared(batch, triples, 3),
        *_weighted(batch),
    ]


def _shared(batch: PairBatch, same: NDArray[np.bool_], words: int) -> Array:
    """Returns the share of sequences of that many words that the other text has, too."""
    common = same.any(axis=2).sum(axis=1) + same.any(axis=1).sum(axis=1)
    wholes = [np.maximum(side.lengths - (words - 1), 0) for side in batch.sides]
    return share(common, wholes[0] + wholes[1])


def _weighted(batch: PairBatch) -> list[Array]:
    """Returns the share of the weight of stems that the other text has, too."""
    common = [
        (side.weights * batch.same_stem.any(axis=axis)).sum(axis=1)
        for side, axis in zip(batch.sides, (2, 1), strict=True)
    ]
    wholes = [side.weight for side in batch.sides]
    each = [share(part, whole) for part, whole in zip(common, wholes, strict=True)]
    return [share(common[0] + common[1], wholes[0] + wholes[1]), *lower_and_higher(*each)]


OVERLAP = Family(
    "overlap",
    (
        "shared words", "shared stems", "shared pairs of words", "shared triples of words",
        "shared weight", "lower share of weight", "higher share of weight",
    ),
    _compute,
)  # fmt: skip
