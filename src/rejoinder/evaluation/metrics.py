"""Scores: pure functions of arrays. `precision_at` is better when higher."""

import numpy as np
from numpy.typing import NDArray

from rejoinder.measures.arrays import Floats
from rejoinder.measures.correlation import ScoringError


def rescaled(values: Floats) -> Floats:
    """(N,) float64 stretched to the scale of gold: the least is 0, the most 5.

    Cer et al. 2017, footnote 20.

    Raises:
        InputError: all values are equal.
    """
    low, high = float(values.min()), float(values.max())
    if low == high:
        raise ScoringError("scores that are all equal can't be rescaled to 0-5.")
    return 5 * (values - low) / (high - low)


def share_within_one(values: Floats, gold: Floats) -> float:
    """Share of the rescaled (N,) values that are at most 1.0 from gold (Cer et al. 2017, §6.6)."""
    return float((np.abs(rescaled(values) - gold) <= 1.0).mean())


def precision_at(ranks: NDArray[np.int64], n: int) -> float:
    """Share of the (N,) ranks, from 1, that are at most `n`: P@N of one right answer each."""
    return float((ranks <= n).mean())
