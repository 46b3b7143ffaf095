"""Ranks, and Spearman's correlation of them."""

import numpy as np
from scipy.stats import rankdata

from rejoinder.measures.arrays import Floats
from rejoinder.measures.correlation import checked, pearson_correlation


def ranks(values: Floats, *, axis: int | None = None) -> Floats:
    """Returns the ranks of `values`, from 1 for the smallest; ties get their mean rank.

    Values are ranked along `axis`. None ranks all of them together, as one row.

    >>> ranks(np.array([10.0, 30.0, 10.0])).tolist()
    [1.5, 3.0, 1.5]
    """
    return np.asarray(rankdata(values, axis=axis), np.float64)


def spearman_correlation(x: Floats, y: Floats) -> float:
    """Returns Spearman's rho of two (N,) arrays: Pearson's r of their ranks.

    Raises:
        ScoringError: see `pearson_correlation`.
    """
    return pearson_correlation(ranks(checked(x)), ranks(checked(y)))
