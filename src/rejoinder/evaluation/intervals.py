"""Percentile bootstrap intervals (Efron and Tibshirani 1993, §13.3), seeded and vectorised."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from rejoinder.measures.correlation import row_correlations
from rejoinder.measures.ranks import ranks as rank_rows

RESAMPLES = 2_000
_CHUNK = 200

Interval = tuple[float, float]


def mean_interval(values: NDArray[np.float64], seed: int, level: float = 0.95) -> Interval:
    """Interval of the mean of (N,) values that are 0 or 1: resampling them is a binomial draw."""
    generator = np.random.default_rng(seed)
    means = generator.binomial(len(values), values.mean(), RESAMPLES) / len(values)
    return _percentiles(means, level)


def resampled_interval(values: NDArray[np.float64], seed: int, level: float = 0.95) -> Interval:
    """Interval of the mean of (N,) values of any kind."""
    generator = np.random.default_rng(seed)
    drawn = generator.integers(0, len(values), (RESAMPLES, len(values)))
    return _percentiles(values[drawn].mean(axis=1), level)


def grouped_correlation_interval(
    x: NDArray[np.float64],
    y: NDArray[np.float64],
    groups: Sequence[NDArray[np.int64]],
    seed: int,
    level: float = 0.95,
) -> Interval:
    """Interval of the mean of Pearson's r of groups of rows, weighted by their sizes.

    Rows are drawn anew within each group.
    """
    generator = np.random.default_rng(seed)
    total = np.zeros(RESAMPLES)
    for rows in groups:
        for start in range(0, RESAMPLES, _CHUNK):
            drawn = rows[generator.integers(0, len(rows), (_CHUNK, len(rows)))]
            total[start : start + _CHUNK] += len(rows) * row_correlations(x[drawn], y[drawn])
    return _percentiles(total / sum(len(rows) for rows in groups), level)


def correlation_interval(
    x: NDArray[np.float64],
    y: NDArray[np.float64],
    seed: int,
    *,
    ranks: bool = False,
    level: float = 0.95,
) -> Interval:
    """Interval of Pearson's r, or with `ranks` of Spearman's rho, of two (N,) arrays."""
    generator = np.random.default_rng(seed)
    values = []
    for _ in range(0, RESAMPLES, _CHUNK):
        drawn = generator.integers(0, len(x), (_CHUNK, len(x)))
        left, right = x[drawn], y[drawn]
        if ranks:
            left, right = rank_rows(left, axis=1), rank_rows(right, axis=1)
        values.append(row_correlations(left, right))
    return _percentiles(np.concatenate(values), level)


def _percentiles(values: NDArray[np.float64], level: float) -> Interval:
    low, high = np.quantile(values, [(1 - level) / 2, (1 + level) / 2])
    return float(low), float(high)
