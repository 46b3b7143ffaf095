"""Two files of results, task by task: scores, difference, and whether it is separable."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import polars as pl
from numpy.typing import NDArray

from rejoinder.errors import InputError
from rejoinder.evaluation.metrics import pearson_correlation
from rejoinder.evaluation.results import Result, read_items, read_results, subsets_of
from rejoinder.evaluation.significance import Test, holm, mcnemar, paired_bootstrap, williams

LEVEL = 0.05
_FEW = 200
Array = NDArray[np.float64]
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

    @property
    def difference(self) -> float:
        """First minus second."""
        return self.first - self.second

    @property
    def separable(self) -> bool:
        """Whether the corrected p is below 0.05."""
        return self.corrected < LEVEL


def compare(first: Path, second: Path, *, seed: int = 0) -> list[Comparison]:
    """Every task that both files have, by its main score.

    Raises:
        InputError: they share no task, or a task was scored on other items.
    """
    ours = {(result.task, result.split): result for result in read_results(first)}
    theirs = {(result.task, result.split): result for result in read_results(second)}
    shared = [key for key in ours if key in theirs]
    if not shared:
        raise InputError(f"{first} and {second} share no task; nothing can be compared.")
    found = [
        _compared(
            ours[key],
            read_items(first, ours[key]),
            theirs[key],
            read_items(second, theirs[key]),
            seed,
        )
        for key in shared
    ]
    corrected = holm([one.p for one in found])
    return [replace(one, corrected=p) for one, p in zip(found, corrected, strict=True)]


def _compared(
    first: Result, left: pl.DataFrame, second: Result, right: pl.DataFrame, seed: int
) -> Comparison:
    if set(left["id"]) != set(right["id"]) or left["id"].n_unique() != len(left):
        raise InputError(
            f"{first.task} on {first.split} was scored on other items in the two files "
            f"({len(left)} and {len(right)}); only the same items can be compared."
        )
    right = left.select("id").join(right, on="id", how="left", maintain_order="left")
    gold = left["gold"].to_numpy()
    if not np.array_equal(gold, right["gold"].to_numpy()):
        raise InputError(f"{first.task} on {first.split}: the gold of the two files differs.")
    a, b = left["prediction"].to_numpy(), right["prediction"].to_numpy()
    test, interval = _tested(first.main, left["id"].to_list(), a, b, gold, seed)
    few = f"{len(gold)} items: too few for a bootstrap to keep its level"
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
        note=few if test.name == "paired bootstrap" and len(gold) < _FEW else "",
    )


def _tested(
    main: str, ids: Sequence[str], a: Array, b: Array, gold: Array, seed: int
) -> tuple[Test, tuple[float, float]]:
    """The test that fits a main score, and the interval of the difference in its own unit."""
    if main == "accuracy":
        return _right_or_wrong(a == gold, b == gold, 100.0, seed)
    if main.startswith("P@"):
        cutoff = int(main.removeprefix("P@").split()[0])
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
    weights = np.array([len(rows) for rows in groups]) / sum(len(rows) for rows in groups)
    difference = _correlation_difference(a, b, gold, groups, weights)
    count = sum(len(rows) for rows in groups)
    test, interval = paired_bootstrap(difference, count, seed, groups, resamples=2_000)
    if len(groups) == 1:
        rows = groups[0]
        test = williams(
            pearson_correlation(a[rows], gold[rows]),
            pearson_correlation(b[rows], gold[rows]),
            pearson_correlation(a[rows], b[rows]),
            len(rows),
        )
    return test, interval


def _right_or_wrong(
    a: NDArray[np.bool_], b: NDArray[np.bool_], unit: float, seed: int
) -> tuple[Test, tuple[float, float]]:
    change = unit * (a.astype(np.float64) - b.astype(np.float64))
    _, interval = paired_bootstrap(
        lambda rows: change[rows].mean(axis=1), len(a), seed, resamples=2_000
    )
    return mcnemar(a, b), interval


def _correlation_difference(
    a: Array, b: Array, gold: Array, groups: Sequence[Rows], weights: Array
) -> Callable[[Rows], Array]:
    """A function of (B, N) draws, subset after subset: the weighted difference of Pearson's r."""
    ends = np.cumsum([len(rows) for rows in groups])[:-1]

    def difference(rows: Rows) -> Array:
        total = np.zeros(len(rows))
        for part, weight in zip(np.split(rows, ends, axis=1), weights, strict=True):
            total += weight * (_pearson(a[part], gold[part]) - _pearson(b[part], gold[part]))
        return total

    return difference


def _pearson(x: Array, y: Array) -> Array:
    """(B,) r of each row, 0 where a draw is constant."""
    x = x - x.mean(axis=1, keepdims=True)
    y = y - y.mean(axis=1, keepdims=True)
    spread = np.sqrt((x * x).sum(axis=1) * (y * y).sum(axis=1))
    products = (x * y).sum(axis=1)
    r: Array = np.divide(products, spread, out=np.zeros_like(products), where=spread > 0)
    return r
