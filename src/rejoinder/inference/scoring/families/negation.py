"""Whether one of the texts negates what the other says."""

import numpy as np

from rejoinder.encoders.layers import Array
from rejoinder.inference.scoring.batch import PairBatch
from rejoinder.inference.scoring.families.base import Family


def _compute(batch: PairBatch) -> list[Array]:
    counts = [batch.table.negations[side.words].sum(axis=1) for side in batch.sides]
    return [abs(counts[0] - counts[1]).clip(max=2), np.minimum(*counts).clip(max=2)]


NEGATION = Family("negation", ("other negations", "shared negations"), _compute)
