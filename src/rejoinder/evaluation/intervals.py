"""95 % percentile bootstrap intervals (Efron and Tibshirani 1993, §13.3), seeded and vectorised.

Also tests whether two scores on the same items differ by more than chance.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import bdtr, stdtr  # scipy.stats would take most of a second to import

from rejoinder.errors import InputError
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


def resampled_interval(
    values: Floats, seed: int, unit: float = 1.0, groups: Sequence[Indices] = ()
) -> Interval:
    """Returns the interval of the mean of (N,) values of any size, times `unit`.

    With `groups`, the indices of each group, it is the mean of their means, each resampled alone.
    """
    generator = np.random.default_rng(seed)
    means = [
        values[rows[generator.integers(0, len(rows), (RESAMPLES, len(rows)))]].mean(axis=1)
        for rows in groups or [np.arange(len(values))]
    ]
    return _percentiles(np.mean(means, axis=0), unit)


def two_group_interval(
    statistic: Callable[[Floats, Floats], Floats], first: Floats, second: Floats, seed: int
) -> Interval:
    """Returns the interval of a statistic of two groups of values, each resampled separately.

    `statistic` takes (B, N) and (B, M) draws of the (N,) and (M,) values and returns (B,) values.
    """
    generator = np.random.default_rng(seed)
    sizes = [(RESAMPLES, len(values)) for values in (first, second)]
    left, right = (generator.integers(0, size[1], size) for size in sizes)
    return _percentiles(statistic(first[left], second[right]))


def correlation_interval(
    x: Floats, y: Floats, seed: int, *, ranks: bool = False, groups: Sequence[Indices] | None = None
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

    `places` are (B, N) dense ranks, from 0, of the drawn values among all values: counting them
    takes a sixth of the time of sorting each draw.

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


PAIRED_RESAMPLES = 10_000
_CHUNK_VALUES = 4_000_000
_ROUNDING = 1e-9


@dataclass(frozen=True)
class Test:
    """The result of a two-sided test."""

    statistic: float
    p: float
    name: str
    n: int
    """Number of tested items."""


Tested = tuple[Test, Interval]
"""The result of a test, and the interval of the difference."""


def williams(r_ax: float, r_bx: float, r_ab: float, n: int) -> Test:
    """Tests two dependent correlations with the same gold x, of a and of b.

    This is Williams' test (1959) as in Steiger 1980, eq. (7): t with n - 3 degrees of freedom. Cer
    et al. 2017 use it, too. `n` is the number of items.

    Raises:
        InputError: there are fewer than four items, or a value is not within [-1, 1].
    """
    if n < 4:
        raise InputError(f"{n} items; a test of correlations needs 4 or more.")
    for value in (r_ax, r_bx, r_ab):
        if not -1 <= value <= 1:
            raise InputError(f"{value} is not a correlation; it lies between -1 and 1.")
    if r_ax == r_bx:
        return Test(0.0, 1.0, "williams", n)
    determinant = 1 - r_ax**2 - r_bx**2 - r_ab**2 + 2 * r_ax * r_bx * r_ab
    mean = (r_ax + r_bx) / 2
    below = 2 * (n - 1) / (n - 3) * max(determinant, 0.0) + mean**2 * (1 - r_ab) ** 3
    if below <= 0:
        return Test(math.copysign(math.inf, r_ax - r_bx), 0.0, "williams", n)
    statistic = (r_ax - r_bx) * math.sqrt((n - 1) * (1 + r_ab) / below)
    return Test(statistic, float(2 * stdtr(n - 3, -abs(statistic))), "williams", n)


def mcnemar(first: NDArray[np.bool_], second: NDArray[np.bool_]) -> Test:
    """Tests two classifiers on the same items, given (N,) bool whether each was right.

    This is the exact test on the items in which they differ, as mid-p (Fagerland et al. 2013),
    since the plain exact test is too conservative. The statistic is the number of items that only
    the first got right.
    """
    only_first = int((first & ~second).sum())
    only_second = int((second & ~first).sum())
    count, least = only_first + only_second, min(only_first, only_second)
    if not count:
        return Test(0.0, 1.0, "mcnemar mid-p", len(first))
    p = bdtr(least, count, 0.5) + (bdtr(least - 1, count, 0.5) if least else 0.0)
    if only_first == only_second:
        p = 1.0
    return Test(float(only_first), float(min(p, 1.0)), "mcnemar mid-p", len(first))


def paired_bootstrap(
    difference: Callable[[Indices], Floats],
    n: int,
    seed: int,
    strata: Sequence[Indices] | None = None,
    resamples: int = PAIRED_RESAMPLES,
    *,
    centred: bool = False,
) -> Tested:
    """Tests the difference of any two scores by resampling items (Efron and Tibshirani 1993).

    Returns the test, whose statistic is the difference, and the 95 % interval of the difference.
    Its p is at least 1 / (1 + resamples).
    The test keeps its level from 200 items on. `difference` takes (B, N) draws of the `n` items and
    returns (B,) differences of the two scores. `strata` are the indices of each subset's items,
    which are resampled within the subset; None means one subset of all items. `centred`
    shifts the draws so that their mean is the difference: texts that are drawn twice are always in
    one cluster, which raises the V-measure.
    """
    generator = np.random.default_rng(seed)
    strata = strata or [np.arange(n)]
    observed = float(difference(np.concatenate(strata)[None])[0])
    chunk = max(1, _CHUNK_VALUES // n)
    drawn = []
    for start in range(0, resamples, chunk):
        size = min(chunk, resamples - start)
        parts = [rows[generator.integers(0, len(rows), (size, len(rows)))] for rows in strata]
        drawn.append(difference(np.concatenate(parts, axis=1)))
    values = np.concatenate(drawn)
    if centred:
        values = values - values.mean() + observed
    # draws around no difference: how often is chance at least as far from it as the observation
    beyond = int((np.abs(values - observed) >= abs(observed)).sum())
    low, high = np.quantile(values, [0.025, 0.975])
    test = Test(observed, (1 + beyond) / (1 + resamples), "paired bootstrap", n)
    return test, (float(low), float(high))


def permutation_test(first: Floats, second: Floats, seed: int) -> Test:
    """Tests whether the means of (N,) and (M,) values differ, by random regrouping of all values.

    The statistic is the difference of the means. Sums are compared with a rounding tolerance,
    so that values that are all equal have p = 1.
    """
    together = np.concatenate([first, second])
    generator = np.random.default_rng(seed)
    drawn = generator.permuted(np.tile(together, (PAIRED_RESAMPLES, 1)), axis=1)
    size = len(first)
    differences = drawn[:, :size].mean(axis=1) - drawn[:, size:].mean(axis=1)
    observed = float(first.mean() - second.mean())
    beyond = int((np.abs(differences) >= abs(observed) - _ROUNDING).sum())
    return Test(observed, (1 + beyond) / (1 + PAIRED_RESAMPLES), "permutation", len(together))


def holm(p_values: Sequence[float]) -> list[float]:
    """Returns p-values corrected for their number (Holm 1979), in the order given.

    >>> holm([0.01, 0.04, 0.03])
    [0.03, 0.06, 0.06]
    """
    order = sorted(range(len(p_values)), key=p_values.__getitem__)
    corrected, largest = [0.0] * len(p_values), 0.0
    for rank, row in enumerate(order):
        largest = max(largest, min(1.0, (len(p_values) - rank) * p_values[row]))
        corrected[row] = largest
    return corrected
