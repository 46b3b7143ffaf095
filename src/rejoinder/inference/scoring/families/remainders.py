"""What is left of both texts without the words that they share, and how near that is."""

import numpy as np

from rejoinder.encoders.layers import Array
from rejoinder.inference.scoring.batch import PairBatch, lower_and_higher, share
from rejoinder.inference.scoring.families.base import Family

_SHARED = 0.9
"""How near two words are that count as one."""


def _compute(batch: PairBatch) -> list[Array]:
    left = [
        side.present & (batch.alike.max(axis=axis) < _SHARED)
        for side, axis in zip(batch.sides, (2, 1), strict=True)
    ]
    weights = [
        np.where(each, side.weights, 0) for each, side in zip(left, batch.sides, strict=True)
    ]
    sums = [
        np.stack([some, side.weights], axis=1) @ rows
        for some, side, rows in zip(weights, batch.sides, batch.rows, strict=True)
    ]
    (rest, whole), (other_rest, other_whole) = ((each[:, 0], each[:, 1]) for each in sums)
    counts = [each.sum(axis=1) for each in left]
    fewer, more = lower_and_higher(*(each.astype(np.float32) for each in counts))
    lengths = [np.linalg.norm(each, axis=1) for each in (rest, other_rest, whole, other_whole)]
    near = share(np.einsum("nd,nd->n", rest, other_rest), lengths[0] * lengths[1])
    means = [
        each / np.maximum(side.weight, 1e-6)[:, None]
        for each, side in zip((whole, other_whole), batch.sides, strict=True)
    ]
    return [
        np.where(more == 0, np.float32(1), near), fewer > 0, fewer, more,
        np.linalg.norm(means[0] - means[1], axis=1),
        share(np.linalg.norm(rest - other_rest, axis=1), lengths[2] + lengths[3]),
    ]  # fmt: skip


REMAINDERS = Family(
    "remainders",
    (
        "cosine of the remainders", "both have a remainder", "fewer words left", "more words left",
        "distance of mean words", "distance of the remainders",
    ),
    _compute,
)  # fmt: skip
