"""95 % percentile bootstrap intervals (Efron and Tibshirani 1993, §13.3), seeded and vectorised."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rejoinder.measures import Floats, Indices, mean_ranks, row_correlations

RESAMPLES = 2_000
_CHUNK = 200
_LEVEL = 0.95

Interval = tuple[float, float]
"""Lower and upper end."""


def mean_interval(values: Floats, seed: int, unit: float = 1.0) -> Interval:
    """Returns the interval of the mean of (N,) values that are 0 or 1, times `unit`.

    Resampling such values is a binomial draw.
    """
    generator = np.random.default_rng(seed)
    means = generator.binomial(len(values), values.mean(), RESAMPLES) / len(values)
    return _percentiles(means, unit)


def resampled_interval(values: Floats, seed: int, unit: float = 1.0) -> Interval:
    """Returns the interval of the mean of (N,) values of any size, times `unit`."""
    generator = np.random.default_rng(seed)
    draws = generator.integers(0, len(values), (RESAMPLES, len(values)))
    return _percentiles(values[draws].mean(axis=1), unit)


def two_group_interval(
    statistic: Callable[[Floats, Floats], Floats], first: Floats, second: Floats, seed: int
) -> Interval:
    """Returns the interval of a statistic of two groups of values, each resampled separately.

    `statistic` takes (B, N) and (B, M) draws of the (N,) and (M,) values and returns (B,) values.
    """
    generator = np.random.default_rng(seed)
    draws = [
        values[generator.integers(0, len(values), (RESAMPLES, len(values)))]
        for values in (first, second)
    ]
    return _percentiles(statistic(*draws))


def correlation_interval(
    x: Floats,
    y: Floats,
    seed: int,
    *,
    ranks: bool = False,
    groups: Sequence[Indices] | None = None,
) -> Interval:
    """Returns the interval of Pearson's r of two (N,) arrays, or with `ranks` of Spearman's rho.

    With `groups`, the indices of each group, it is the mean over groups, weighted by their sizes,
    and values are resampled within their group. A draw of equal values, which happens with few
    items, counts as 0.
    """
    generator = np.random.default_rng(seed)
    total = np.zeros(RESAMPLES)
    for rows in groups or [np.arange(len(x))]:
        sides: list[NDArray[Any]] = [x[rows], y[rows]]
        if ranks:
            sides = [np.unique(side, return_inverse=True)[1] for side in sides]
        for start in range(0, RESAMPLES, _CHUNK):
            draws = generator.integers(0, len(rows), (_CHUNK, len(rows)))
            left, right = (side[draws] for side in sides)
            if ranks:
                left, right = _ranks_of_draws(left), _ranks_of_draws(right)
            r = row_correlations(left, right, constant=0.0)
            total[start : start + _CHUNK] += len(rows) / len(x) * r
    return _percentiles(total)


def _ranks_of_draws(places: Indices) -> Floats:
    """Returns (B, N) ranks within each of B draws, from 1; ties get their mean rank.

    `places` are (B, N) dense ranks of what was drawn, among all values and from 0: to count them
    takes a sixth of the time that sorting each draw takes.

    >>> _ranks_of_draws(np.array([[0, 2, 0]])).tolist()
    [[1.5, 3.0, 1.5]]
    """
    draws, width = len(places), places.max() + 1
    cells = places + width * np.arange(draws)[:, None]
    counts = np.bincount(cells.ravel(), minlength=draws * width).reshape(draws, width)
    found: Floats = np.take_along_axis(mean_ranks(counts), places, axis=1)
    return found


def _percentiles(values: Floats, unit: float = 1.0) -> Interval:
    low, high = np.quantile(values, [(1 - _LEVEL) / 2, (1 + _LEVEL) / 2])
    return unit * float(low), unit * float(high)
