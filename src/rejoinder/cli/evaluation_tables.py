"""Prints results as a table for a terminal, as TSV, or as JSON."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import typer

from rejoinder.cli.output import form_of_output, note, print_rows, print_table, print_wrapped
from rejoinder.evaluation.results import Result, score_text, variants, with_label

_SHOWN_GROUPS = 10
_SMALL_GROUP = 100
_DETAILED = 6
"""Number of results up to which all scores and groups are shown."""
_TSV = ("task", "split", "settings", "part", "n", "score", "value", "low", "high")
_WORST = ("task", "split", "item", "predicted", "gold", "text")

Worst = Sequence[tuple[str, float, float, str]]
"""Id, prediction, gold and text of the items with the largest errors."""


def show_results(results: Sequence[Result], *, worst: int = 0) -> None:
    """Prints the results of one encoder as a table, TSV or JSON.

    Each is followed by its `worst` items: those with the largest errors.
    """
    form = form_of_output()
    items = [_worst_of(result, worst) for result in results] if worst else []
    if form == "json":
        trees = [result.as_tree() for result in results]
        for tree, rows in zip(trees, items, strict=False):
            tree["worst"] = [dict(zip(_WORST[2:], row, strict=True)) for row in rows]
        typer.echo(json.dumps(trees))
        return
    if form == "tsv":
        labels = variants(results)
        rows = [row for result in results for row in _all_rows(result, labels[result.key])]
        print_rows(_TSV, rows)
    else:
        _show_table(results)
    _show_notes(results, to_stderr=form == "tsv")
    if form == "table":
        _show_worst(results, items)
        return
    listed = [
        (result.task, result.split, *row)
        for result, rows in zip(results, items, strict=False)
        for row in rows
    ]
    if listed:
        typer.echo("")
        print_rows(_WORST, listed)


def _show_table(results: Sequence[Result]) -> None:
    labels = variants(results)
    rows = [
        (with_label(result.task, result.split, labels[result.key]), *row)
        for result in results
        for row in _rows(result, detailed=len(results) <= _DETAILED)
    ]
    parts = {row[1] for row in rows} != {"all"}
    columns = ("task", *(["part"] if parts else []), "n", "score", "value", "95 % interval")
    if not parts:
        rows = [(row[0], *row[2:]) for row in rows]
    spare = ("95 % interval", *(["score"] if len(results) > _DETAILED else []), "n")
    print_table(str(results[0].encoder.get("name", "")) if results else "", columns, rows, spare)


def _rows(result: Result, *, detailed: bool) -> list[tuple[Any, ...]]:
    """Returns rows of part, n, score, value and interval.

    There is a row for each score and each large group, or for the main score alone.
    """
    names = list(result.scores) if detailed else [result.main]
    rows: list[tuple[Any, ...]] = []
    for name in names:
        interval = ""
        if name in result.intervals:
            low, high = (_text(result, name, end) for end in result.intervals[name])
            interval = f"{low} to {high}"
        rows.append(("all", result.n, name, _text(result, name, result.scores[name]), interval))
    if not detailed or len(result.groups) < 2:
        return rows
    large = sorted(result.groups.items(), key=lambda item: -item[1].n)
    for group, figures in [item for item in large if item[1].n >= _SMALL_GROUP][:_SHOWN_GROUPS]:
        name = result.main if result.main in figures.scores else next(iter(figures.scores))
        rows.append((group, figures.n, name, _text(result, name, figures.scores[name]), ""))
    return rows


def _text(result: Result, name: str, value: float) -> str:
    return score_text(value, percent=result.metric.in_percent(name))


def _all_rows(result: Result, label: str) -> list[tuple[Any, ...]]:
    """Returns a TSV row for each score of a result and of its groups."""
    head = (result.task, result.split, label)
    rows: list[tuple[Any, ...]] = []
    for name, value in result.scores.items():
        low, high = result.intervals.get(name, ("", ""))
        rows.append((*head, "all", result.n, name, value, low, high))
    for group, figures in result.groups.items():
        for name, value in figures.scores.items():
            rows.append((*head, group, figures.n, name, value, "", ""))
    return rows


def _show_notes(results: Sequence[Result], *, to_stderr: bool) -> None:
    """Prints each note once, with all results that it applies to."""
    tasks: dict[str, list[str]] = {}
    for result in results:
        for text in result.notes:
            tasks.setdefault(text, []).append(f"{result.task} on {result.split}")
    notes = [f"{', '.join(dict.fromkeys(where))}: {text}" for text, where in tasks.items()]
    training = results[0].encoder.get("training") if results else None
    pairs = training.get("pairs") if isinstance(training, Mapping) else None
    if isinstance(training, Mapping) and isinstance(pairs, int) and pairs:
        notes.append(f"trained on {pairs:,} pairs, seed {training.get('seed')}")
    for text in notes:
        if to_stderr:
            note(text)
        else:
            print_wrapped(text)


def _worst_of(result: Result, count: int) -> Worst:
    """Returns the items with the largest errors. Items that were read from a file have no texts."""
    items = result.items
    if items is None:
        return []
    error = result.metric.errors(items)
    return [
        (items.ids[row], float(items.predictions[row]), float(items.gold[row]), items.texts[row])
        for row in np.argsort(-error, kind="stable")[:count].tolist()
        if error[row] > 0
    ]


def _show_worst(results: Sequence[Result], worst: Sequence[Worst]) -> None:
    if not any(worst):
        return
    for result, rows in zip(results, worst, strict=True):
        print_table(f"{result.task} on {result.split}", _WORST[2:], rows)
    if not all(text for rows in worst for *_, text in rows):
        print_wrapped("Texts are not kept with results: --overwrite scores again and shows them.")
