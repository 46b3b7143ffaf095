"""How long the texts are."""

import numpy as np

from rejoinder.encoders.layers import Array
from rejoinder.inference.scoring.batch import PairBatch, lower_and_higher, share
from rejoinder.inference.scoring.families.base import Family


def _compute(batch: PairBatch) -> list[Array]:
    words = [side.lengths for side in batch.sides]
    shorter, longer = lower_and_higher(*words)
    return [np.log1p(shorter), np.log1p(longer), share(longer - shorter, longer)]


LENGTHS = Family("lengths", ("shorter", "longer", "difference of lengths"), _compute)
