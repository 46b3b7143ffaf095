"""The record of a metric: everything that depends on a task's main score."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase

import numpy as np
from numpy.typing import NDArray

from rejoinder.evaluation.intervals import (
    PAIRED_RESAMPLES,
    Interval,
    Test,
    mcnemar,
    paired_bootstrap,
)
from rejoinder.evaluation.items import Items
from rejoinder.measures import Floats, Indices

INTERVAL_RESAMPLES = 2_000
"""Bootstrap draws of an interval, where the p-value comes from another test."""


@dataclass(frozen=True)
class Metric:
    """A main score: how it follows from items, how it is shown, how two of it are compared."""

    name: str
    """The key of the score in `Result.scores`."""
    recompute: Callable[[Items], Mapping[str, float]]
    """Returns the scores that follow from the items, the main score among them.

    A results file with other scores is refused.
    """
    errors: Callable[[Items], Floats]
    """Returns (N,) how far each prediction is from right; 0 is right. `--worst` sorts by it."""
    test: Callable[[Items, Items, int, int], tuple[Test, Interval]]
    """Tests the difference of two encoders on the same items in the same order.

    The last arguments are a seed, and how many draws a bootstrap needs at least. Returns the test
    and the 95 % interval of first minus second, in the unit of the score.
    """
    percent: bool = False
    """Whether the score goes from 0 to 100 instead of 0 to 1."""
    not_percent: tuple[str, ...] = ()
    """Other scores of such a result that are not percentages: names or patterns with `*`."""
    higher_is_better: bool = True
    rounding: Mapping[str, float] = field(default_factory=dict)
    """The largest rounding error of a stored value, by score."""

    def in_percent(self, score: str) -> bool:
        """Returns whether a score of a result with this main score is a percentage."""
        return self.percent and not any(fnmatchcase(score, part) for part in self.not_percent)


@dataclass(frozen=True)
class MetricPattern:
    """Main scores whose names hold a number or another part, such as `P@N`."""

    name: str
    """The name shown in messages, such as `P@N`."""
    pattern: str
    """A regular expression that matches all of a name."""
    build: Callable[[re.Match[str]], Metric]
    """Returns the metric of a name that matches."""


def compare_means(
    first: Floats, second: Floats, seed: int, draws: int, *, unit: float = 1.0
) -> tuple[Test, Interval]:
    """Tests the difference of two scores that are means over items, by a paired bootstrap.

    `first` and `second` are (N,) values of two encoders for the same items, whose mean times `unit`
    is the score. There are 10,000 draws, or `draws` if that is more.
    """
    return _bootstrapped_means(first, second, seed, max(PAIRED_RESAMPLES, draws), unit)


def compare_correct(
    first: NDArray[np.bool_], second: NDArray[np.bool_], seed: int, *, percent: bool
) -> tuple[Test, Interval]:
    """Tests the difference of two shares of right items, by McNemar's test.

    `first` and `second` are (N,) whether each encoder is right. With `percent`, the score goes from
    0 to 100. `seed` seeds the draws of the interval.
    """
    unit = 100.0 if percent else 1.0
    left, right = unit * first.astype(np.float64), unit * second.astype(np.float64)
    _, interval = _bootstrapped_means(left, right, seed, INTERVAL_RESAMPLES)
    return mcnemar(first, second), interval


def _bootstrapped_means(
    first: Floats, second: Floats, seed: int, draws: int, unit: float = 1.0
) -> tuple[Test, Interval]:
    change = first - second

    def difference(rows: Indices) -> Floats:
        return np.asarray(unit * change[rows].mean(axis=1))

    return paired_bootstrap(difference, len(change), seed, resamples=draws)
