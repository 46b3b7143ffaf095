"""Compares two sets of results task by task, and tests whether they differ by more than chance."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from rejoinder.errors import InputError
from rejoinder.evaluation.intervals import Interval
from rejoinder.evaluation.items import Items
from rejoinder.evaluation.metrics import metric_of
from rejoinder.evaluation.results import Result
from rejoinder.evaluation.results_file import read_items, read_results
from rejoinder.evaluation.significance import holm
from rejoinder.evaluation.variants import differences, score_text, text_table, variants, with_label

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
            or a result holds no items.
    """
    ours, our_items = _opened(first)
    theirs, their_items = _opened(second)
    matched, left_out = _matched(ours, theirs)
    if not matched:
        raise InputError(_nothing_shared(first, ours, second, theirs, left_out))
    labels = variants(ours)
    # so many draws that a corrected p can be a quarter of the level: p is at least 1 / draws
    draws = min(_MOST_DRAWS, math.ceil(4 * len(matched) / LEVEL))
    tasks = [
        replace(
            _compared(left, our_items(left), right, their_items(right), seed, draws),
            settings=labels[left.key],
        )
        for left, right in matched
    ]
    corrected = holm([task.p for task in tasks])
    tasks = [replace(task, corrected=p) for task, p in zip(tasks, corrected, strict=True)]
    return Compared(tuple(tasks), tuple(left_out))


def _opened(source: Source) -> tuple[Sequence[Result], Callable[[Result], Items]]:
    """Returns results, and a function that gives the items of one of them."""
    if isinstance(source, Path | str):
        path = Path(source)
        return read_results(path), lambda result: Items.from_frame(read_items(path, result))
    return source, _held_items


def _held_items(result: Result) -> Items:
    if result.items is None:
        raise InputError(
            f"{result.task} on {result.split} holds no predictions, as it was read from a file; "
            "compare the path of that file."
        )
    return result.items


def _task(result: Result) -> tuple[str, str]:
    return result.task, result.split


def _matched(
    ours: Sequence[Result], theirs: Sequence[Result]
) -> tuple[list[tuple[Result, Result]], list[str]]:
    """Returns pairs of results to compare, and a sentence for each shared task without a pair."""
    pairs, left_out = [], []
    for task in dict.fromkeys(map(_task, ours)):
        left = [result for result in ours if _task(result) == task]
        right = [result for result in theirs if _task(result) == task]
        same = {result.key: result for result in right}
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


def _nothing_shared(
    first: Source,
    ours: Sequence[Result],
    second: Source,
    theirs: Sequence[Result],
    left_out: Sequence[str],
) -> str:
    """Returns why nothing can be compared: the tasks of each set, or why those of both differ."""
    if left_out:
        return f"nothing can be compared: {'; '.join(left_out)}."
    sets = []
    for source, results in ((first, ours), (second, theirs)):
        name = str(source) if isinstance(source, Path | str) else "results"
        tasks = ", ".join(dict.fromkeys(f"{result.task} {result.split}" for result in results))
        sets.append(f"{name} has {tasks or 'none'}")
    return f"nothing can be compared, as no task is shared: {'; '.join(sets)}."


def _compared(
    first: Result, left: Items, second: Result, right: Items, seed: int, draws: int
) -> Comparison:
    what = f"{first.task} on {first.split}"
    if first.main != second.main:
        raise InputError(
            f"{what}: the main score is {first.main} in one file and {second.main} in the other; "
            "only the same can be compared."
        )
    if set(left.ids) != set(right.ids):
        raise InputError(
            f"{what} was scored on other items in the two files ({len(left.ids)} and "
            f"{len(right.ids)}); only the same items can be compared."
        )
    right = _in_order(right, left.ids)
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
    )


def _in_order(items: Items, ids: Sequence[str]) -> Items:
    """Returns the predictions and gold of `items` in the order of `ids`."""
    index = {name: row for row, name in enumerate(items.ids)}
    rows = np.array([index[name] for name in ids], np.int64)
    return Items(ids, items.predictions[rows], items.gold[rows])
