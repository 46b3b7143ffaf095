"""Whether the texts have the same numbers, in digits or words."""

import numpy as np

from rejoinder.encoders.layers import Array
from rejoinder.inference.scoring.batch import PairBatch, share
from rejoinder.inference.scoring.families.base import Family


def _compute(batch: PairBatch) -> list[Array]:
    marks = [batch.table.numbers[side.words] for side in batch.sides]
    same = batch.same_stem & marks[0][:, :, None]
    shared = [same.any(axis=axis).sum(axis=1) for axis in (2, 1)]
    counts = [each.sum(axis=1) for each in marks]
    whole = counts[0] + counts[1]
    alike = np.where(whole > 0, share(shared[0] + shared[1], whole), 1)
    other = np.log1p(whole - shared[0] - shared[1])
    return [alike, other, np.minimum(*counts) > 0, whole > 0]


NUMBERS = Family(
    "numbers", ("shared numbers", "other numbers", "both have numbers", "a number"), _compute
)
