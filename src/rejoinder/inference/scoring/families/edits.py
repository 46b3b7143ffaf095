"""Whether the words come in the same order."""

import numpy as np

from rejoinder.encoders.layers import Array
from rejoinder.inference.scoring.aligned import common_subsequence
from rejoinder.inference.scoring.batch import PairBatch, share
from rejoinder.inference.scoring.families.base import Family


def _compute(batch: PairBatch) -> list[Array]:
    longest = common_subsequence(batch.same_stem)
    lengths = [side.lengths for side in batch.sides]
    return [
        share(2 * longest, lengths[0] + lengths[1]),
        share(longest, np.minimum(*lengths)),
        *_order(batch),
        np.array([a == b for a, b in zip(*(side.texts for side in batch.sides), strict=True)]),
    ]


def _order(batch: PairBatch) -> list[Array]:
    """Returns the shares of aligned neighbours that change places, and that stay neighbours."""
    partners, _ = batch.partners
    aligned = partners >= 0
    # the aligned words of each text move to its front, in their order
    order = np.argsort(~aligned, axis=1, kind="stable")
    moved = np.take_along_axis(partners, order, axis=1)
    both = moved[:, 1:] >= 0
    steps = np.diff(moved, axis=1)
    count = both.sum(axis=1)
    return [
        share(((steps < 0) & both).sum(axis=1), count),
        share(((steps == 1) & both).sum(axis=1), count),
    ]


EDITS = Family(
    "edits",
    (
        "common subsequence", "common subsequence of the shorter", "neighbours that change places",
        "neighbours that stay", "the same text",
    ),
    _compute,
)  # fmt: skip
