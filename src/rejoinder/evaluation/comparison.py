"""Compares two sets of results task by task, and tests whether they differ by more than chance."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from rejoinder.errors import InputError
from rejoinder.evaluation.intervals import Interval, holm
from rejoinder.evaluation.metrics import Items, metric_of
from rejoinder.evaluation.results import (
    Result,
    differences,
    read_results,
    score_text,
    variants,
    with_label,
)
from rejoinder.io.formats.shown import text_table

LEVEL = 0.05
"""Corrected p-values below this are separable."""
_MOST_DRAWS = 100_000
_FEW = 200
"""Items below which a bootstrap does not keep its level."""

Source = Path | str | Sequence[Result]
"""A results file, or results from `evaluate`."""


@dataclass(frozen=True)
class Comparison:
    """One task that both encoders were scored on."""

    task: str
    split: str
    n: int
    """Number of items that the test compares."""
    score: str
    """Name of the main score."""
    first: float
    second: float
    interval: Interval
    """95 % interval of first minus second."""
    p: float
    test: str
    corrected: float = 1.0
    """p after Holm's correction for all comparisons of the two sets of results."""
    note: str = ""
    settings: str = ""
    """Settings that distinguish it from other results of the task in the first set, if any."""

    @property
    def difference(self) -> float:
        """First minus second."""
        return self.first - self.second

    @property
    def in_percent(self) -> bool:
        """Whether the score goes from 0 to 100 instead of 0 to 1."""
        return metric_of(self.score).percent

    @property
    def separable(self) -> bool:
        """Whether the corrected p is below 0.05."""
        return self.corrected < LEVEL

    @property
    def better(self) -> str | None:
        """`first` or `second` if one is separably better, else None."""
        if not self.separable:
            return None
        first_is_higher = self.difference > 0
        return "first" if first_is_higher == metric_of(self.score).higher_is_better else "second"


@dataclass(frozen=True)
class Compared:
    """All comparisons of two sets of results. `print` shows them as a table."""

    tasks: tuple[Comparison, ...]
    left_out: tuple[str, ...]
    """A sentence for each task of both sets whose results could not be matched."""

    def __str__(self) -> str:
        columns = ("task", "score", "n", "first", "second", "difference", "p (Holm)", "separable")
        rows = [
            (
                *(with_label(row.task, row.split, row.settings), row.score, str(row.n)),
                *(score_text(value, percent=row.in_percent) for value in (row.first, row.second)),
                score_text(row.difference, percent=row.in_percent, sign=True),
                *(f"{row.corrected:.4f}", "yes" if row.separable else "no"),
            )
            for row in self.tasks
        ]
        return "\n".join((text_table(columns, rows), *self.left_out))


def compare(first: Source, second: Source, *, seed: int = 0) -> Compared:
    """Compares the main scores of all tasks that two encoders share, under the same settings.

    If each has a task once, under other settings or on another form of the data, these two results
    are compared, and the note says what differs. A bootstrap draws more often the more tasks there
    are, so that its least p stays separable after Holm's correction (up to 1,250 tasks).

    Args:
        first: a results file, or results that hold their items.
        second: the same of another encoder.
        seed: seeds the bootstrap.

    Raises:
        InputError: a file is damaged, no task can be compared, a task was scored on other items,
            or a result has no items.
    """
    ours, theirs = (
        read_results(Path(source)) if isinstance(source, Path | str) else source
        for source in (first, second)
    )
    matched, left_out = _matched(ours, theirs)
    if not matched:
        has = [
            f"{source if isinstance(source, Path | str) else 'results'} has "
            + (", ".join(dict.fromkeys(f"{one.task} {one.split}" for one in results)) or "none")
            for source, results in ((first, ours), (second, theirs))
        ]
        raise InputError(f"nothing can be compared: {'; '.join(left_out or has)}.")
    labels = variants(ours)
    # p is at least 1 / draws: with these, a corrected p can be a quarter of the level
    draws = min(_MOST_DRAWS, math.ceil(4 * len(matched) / LEVEL))
    tasks = [_compared(*pair, labels[pair[0].key], seed, draws) for pair in matched]
    corrected = holm([task.p for task in tasks])
    tasks = [replace(task, corrected=p) for task, p in zip(tasks, corrected, strict=True)]
    return Compared(tuple(tasks), tuple(left_out))


def _matched(
    ours: Sequence[Result], theirs: Sequence[Result]
) -> tuple[list[tuple[Result, Result]], list[str]]:
    """Returns pairs of results to compare, and a sentence for each shared task without a pair."""
    pairs, left_out = [], []
    same = {result.key: result for result in theirs}
    for task in dict.fromkeys(result.key[:2] for result in ours):
        left, right = ([one for one in side if one.key[:2] == task] for side in (ours, theirs))
        matches = [(result, same[result.key]) for result in left if result.key in same]
        if not matches and len(left) == len(right) == 1:
            matches = [(left[0], right[0])]
        if right and not matches:
            left_out.append(
                f"{task[0]} on {task[1]} is left out: {len(left)} results in the first file and "
                f"{len(right)} in the second, and none of them of the same settings and data"
            )
        pairs += matches
    return pairs, left_out


def _compared(first: Result, second: Result, settings: str, seed: int, draws: int) -> Comparison:
    what = f"{first.task} on {first.split}"
    if first.main != second.main:
        raise InputError(
            f"{what}: the main score is {first.main} in one file and {second.main} in the other; "
            "only the same can be compared."
        )
    left, right = first.items, second.items
    if left is None or right is None:
        raise InputError(f"{what} has no predictions; evaluate again.")
    rows = {name: row for row, name in enumerate(right.ids)}
    if set(left.ids) != set(rows):
        raise InputError(
            f"{what} was scored on other items in the two files ({len(left.ids)} and "
            f"{len(right.ids)}); only the same items can be compared."
        )
    order = np.array([rows[name] for name in left.ids], np.int64)
    right = Items(left.ids, right.predictions[order], right.gold[order])
    if not np.array_equal(left.gold, right.gold):
        raise InputError(f"{what}: the gold of the two files differs.")
    try:
        test, interval = first.metric.test(left, right, seed, draws)
    except InputError as error:
        raise InputError(f"{what}: {error}") from None
    changed = differences(first, second)
    notes = [f"not the same: {changed}"] if changed else []
    if test.name == "paired bootstrap" and test.n < _FEW:
        notes.append(f"{test.n} items: too few for a bootstrap to keep its level")
    return Comparison(
        first.task,
        first.split,
        test.n,
        first.main,
        first.scores[first.main],
        second.scores[first.main],
        interval,
        test.p,
        test.name,
        note="; ".join(notes),
        settings=settings,
    )
