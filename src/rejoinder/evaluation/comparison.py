"""Two files of results, task by task: scores, difference, and whether it is separable."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import polars as pl
from numpy.typing import NDArray

from rejoinder.errors import InputError
from rejoinder.evaluation.recomputed import cutoff_of
from rejoinder.evaluation.results import Result, in_percent, subsets_of
from rejoinder.evaluation.results_file import read_items, read_results
from rejoinder.evaluation.significance import Test, holm, mcnemar, paired_bootstrap, williams
from rejoinder.evaluation.variants import differences, variants
from rejoinder.measures.arrays import Floats
from rejoinder.measures.correlation import pearson_correlation, row_correlations

LEVEL = 0.05
_FEW = 200
Rows = NDArray[np.int64]


@dataclass(frozen=True)
class Comparison:
    """A task in both files."""

    task: str
    split: str
    n: int
    score: str
    first: float
    second: float
    interval: tuple[float, float]
    """95 % interval of first minus second."""
    p: float
    test: str
    corrected: float = 1.0
    """p after Holm's correction for all comparisons of the files."""
    note: str = ""
    settings: str = ""
    """What tells it from other results of the task in the first file; empty: there are none."""

    @property
    def difference(self) -> float:
        """First minus second."""
        return self.first - self.second

    @property
    def in_percent(self) -> bool:
        """Whether the score goes to 100, not to 1."""
        return in_percent(self.score)

    @property
    def separable(self) -> bool:
        """Whether the corrected p is below 0.05."""
        return self.corrected < LEVEL


@dataclass(frozen=True)
class Compared:
    """What two files have in common."""

    tasks: tuple[Comparison, ...]
    left_out: tuple[str, ...]
    """A sentence for every task of both that could not be matched."""


def compare(first: Path, second: Path, *, seed: int = 0) -> Compared:
    """Every task that both files have, by its main score, under the same settings.

    Of a task that each file has once, under other settings, these two are compared, and the note
    says how they differ.

    Raises:
        InputError: a file is damaged, they share no task, or a task was scored on other items.
    """
    ours, theirs = read_results(first), read_results(second)
    if not {_task(one) for one in ours} & {_task(one) for one in theirs}:
        raise InputError(f"{first} and {second} share no task; nothing can be compared.")
    matched, left_out = _matched(ours, theirs)
    labels = variants(ours)
    found = [
        replace(
            _compared(one, read_items(first, one), other, read_items(second, other), seed),
            settings=labels[one.key],
        )
        for one, other in matched
    ]
    corrected = holm([one.p for one in found])
    tasks = tuple(replace(one, corrected=p) for one, p in zip(found, corrected, strict=True))
    return Compared(tasks, tuple(left_out))


def _task(result: Result) -> tuple[str, str]:
    return result.task, result.split


def _matched(
    ours: Sequence[Result], theirs: Sequence[Result]
) -> tuple[list[tuple[Result, Result]], list[str]]:
    """Pairs of results to compare, and a sentence for each task of both without a pair."""
    pairs, left_out = [], []
    for task in dict.fromkeys(map(_task, ours)):
        left = [one for one in ours if _task(one) == task]
        right = [one for one in theirs if _task(one) == task]
        same = {one.key: one for one in right}
        found = [(one, same[one.key]) for one in left if one.key in same]
        if not found and len(left) == len(right) == 1:
            found = [(left[0], right[0])]
        if right and not found:
            left_out.append(
                f"{task[0]} on {task[1]} is left out: {len(left)} results in the first file and "
                f"{len(right)} in the second, and none of them of the same settings and data"
            )
        pairs += found
    return pairs, left_out


def _compared(
    first: Result, left: pl.DataFrame, second: Result, right: pl.DataFrame, seed: int
) -> Comparison:
    what = f"{first.task} on {first.split}"
    if first.main != second.main:
        raise InputError(
            f"{what}: the main score is {first.main} in one file and {second.main} in the other; "
            "only the same can be compared."
        )
    if set(left["id"]) != set(right["id"]):
        raise InputError(
            f"{what} was scored on other items in the two files ({len(left)} and {len(right)}); "
            "only the same items can be compared."
        )
    right = left.select("id").join(right, on="id", how="left", maintain_order="left")
    gold = left["gold"].to_numpy()
    if not np.array_equal(gold, right["gold"].to_numpy()):
        raise InputError(f"{what}: the gold of the two files differs.")
    a, b = left["prediction"].to_numpy(), right["prediction"].to_numpy()
    try:
        test, interval = _tested(first.main, left["id"].to_list(), a, b, gold, seed)
    except InputError as error:
        raise InputError(f"{what}: {error}") from None
    notes = [f"settings differ: {said}"] if (said := differences(first, second)) else []
    if test.name == "paired bootstrap" and len(gold) < _FEW:
        notes.append(f"{len(gold)} items: too few for a bootstrap to keep its level")
    return Comparison(
        first.task,
        first.split,
        len(gold),
        first.main,
        first.scores[first.main],
        second.scores[first.main],
        interval,
        test.p,
        test.name,
        note="; ".join(notes),
    )


def _tested(
    main: str, ids: Sequence[str], a: Floats, b: Floats, gold: Floats, seed: int
) -> tuple[Test, tuple[float, float]]:
    """The test that fits a main score, and the interval of the difference in its own unit.

    Raises:
        InputError: no test is known for the score.
    """
    if main == "accuracy":
        return _right_or_wrong(a == gold, b == gold, 100.0, seed)
    cutoff = cutoff_of(main)
    if cutoff is not None:
        return _right_or_wrong(a <= cutoff, b <= cutoff, 1.0, seed)
    if main == "recall_1_t2i":
        return _right_or_wrong(a < 1, b < 1, 100.0, seed)
    if main == "map":
        return paired_bootstrap(lambda rows: 100 * (a[rows] - b[rows]).mean(axis=1), len(a), seed)
    groups = [np.arange(len(a))]
    if main == "pearson_weighted_mean":
        groups = list(subsets_of(ids).values())
    elif main.startswith("pearson_track"):
        track = main.removeprefix("pearson_")
        groups = [subsets_of(ids)[track]]
    elif main not in ("pearson", "pearson_trained"):
        raise InputError(f"no test is known for the score {main!r}.")
    weights = np.array([len(rows) for rows in groups]) / sum(len(rows) for rows in groups)
    difference = _correlation_difference(a, b, gold, groups, weights)
    count = sum(len(rows) for rows in groups)
    test, interval = paired_bootstrap(difference, count, seed, groups, resamples=2_000)
    if len(groups) == 1:
        rows = groups[0]
        test = williams(
            _within_one(pearson_correlation(a[rows], gold[rows])),
            _within_one(pearson_correlation(b[rows], gold[rows])),
            _within_one(pearson_correlation(a[rows], b[rows])),
            len(rows),
        )
    return test, interval


def _within_one(correlation: float) -> float:
    """Of equal arrays rounding gives a little more than 1."""
    return min(1.0, max(-1.0, correlation))


def _right_or_wrong(
    a: NDArray[np.bool_], b: NDArray[np.bool_], unit: float, seed: int
) -> tuple[Test, tuple[float, float]]:
    change = unit * (a.astype(np.float64) - b.astype(np.float64))
    _, interval = paired_bootstrap(
        lambda rows: change[rows].mean(axis=1), len(a), seed, resamples=2_000
    )
    return mcnemar(a, b), interval


def _correlation_difference(
    a: Floats, b: Floats, gold: Floats, groups: Sequence[Rows], weights: Floats
) -> Callable[[Rows], Floats]:
    """A function of (B, N) draws, subset after subset: the weighted difference of Pearson's r."""
    ends = np.cumsum([len(rows) for rows in groups])[:-1]

    def difference(rows: Rows) -> Floats:
        total = np.zeros(len(rows))
        for part, weight in zip(np.split(rows, ends, axis=1), weights, strict=True):
            left = row_correlations(a[part], gold[part], constant=0.0)
            right = row_correlations(b[part], gold[part], constant=0.0)
            total += weight * (left - right)
        return total

    return difference
