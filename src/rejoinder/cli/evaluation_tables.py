"""Results on a terminal, as TSV, and as JSON."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import typer

from rejoinder.cli.fitting import Column, print_fitted, print_wrapped
from rejoinder.cli.output import print_rows
from rejoinder.evaluation.items import Items
from rejoinder.evaluation.printing import score_text
from rejoinder.evaluation.results import Result, worst_items
from rejoinder.evaluation.results_file import read_items
from rejoinder.evaluation.results_format import as_tree
from rejoinder.evaluation.variants import variants, with_label

_SHOWN_GROUPS = 10
_SMALL_GROUP = 100
_DETAILED = 6
"""Results up to which all that they hold is shown."""
_TSV = ("task", "split", "settings", "part", "n", "score", "value", "low", "high")
_WORST = ("task", "split", "item", "predicted", "gold", "text")

Worst = Sequence[tuple[str, float, float, str]]


def show_results(results: Sequence[Result], worst: Mapping[int, Worst], form: str) -> None:
    """Print results.

    Args:
        results: of one encoder.
        worst: by the place of a result its items with the largest errors, where they are asked
            for.
        form: `table`, `tsv` or `json`.
    """
    if form == "json":
        trees = [as_tree(result) for result in results]
        for place, rows in worst.items():
            trees[place]["worst"] = [dict(zip(_WORST[2:], row, strict=True)) for row in rows]
        typer.echo(json.dumps(trees))
        return
    if form == "tsv":
        labels = variants(results)
        print_rows(_TSV, [row for one in results for row in _all_rows(one, labels[one.key])], form)
    else:
        _show_table(results)
    _show_notes(results, to_stderr=form == "tsv")
    listed = [
        (results[place].task, results[place].split, *row)
        for place, rows in worst.items()
        for row in rows
    ]
    if listed and form == "tsv":
        typer.echo("")
        print_rows(_WORST, listed, form)
    elif listed:
        _show_worst(results, worst)


def _show_table(results: Sequence[Result]) -> None:
    labels = variants(results)
    rows = [
        (with_label(one.task, one.split, labels[one.key]), *row)
        for one in results
        for row in _rows(one, detailed=len(results) <= _DETAILED)
    ]
    parts = {row[1] for row in rows} != {"all"}
    columns = [
        Column("task", wraps=True),
        *([Column("part")] if parts else []),
        Column("n", spare=2),
        Column("score", spare=0 if len(results) <= _DETAILED else 3),
        Column("value"),
        Column("95 % interval", spare=4),
    ]
    if not parts:
        rows = [(row[0], *row[2:]) for row in rows]
    print_fitted(str(results[0].encoder.get("name", "")) if results else "", columns, rows)


def _rows(result: Result, *, detailed: bool) -> list[tuple[Any, ...]]:
    """The lines of a result: all scores and the larger groups, or the main score alone."""
    names = list(result.scores) if detailed else [result.main]
    rows: list[tuple[Any, ...]] = []
    for name in names:
        interval = ""
        if name in result.intervals:
            low, high = (_said(result, name, end) for end in result.intervals[name])
            interval = f"{low} to {high}"
        value = _said(result, name, result.scores[name])
        rows.append(("all", result.n, name, value, interval))
    if not detailed or len(result.groups) < 2:
        return rows
    large = sorted(result.groups.items(), key=lambda item: -item[1].n)
    for group, figures in [item for item in large if item[1].n >= _SMALL_GROUP][:_SHOWN_GROUPS]:
        name = result.main if result.main in figures.scores else next(iter(figures.scores))
        value = _said(result, name, figures.scores[name])
        rows.append((group, figures.n, name, value, ""))
    return rows


def _said(result: Result, name: str, value: float) -> str:
    return score_text(value, percent=result.metric.in_percent(name))


def _all_rows(result: Result, label: str) -> list[tuple[Any, ...]]:
    """All scores of a result and of its groups."""
    before = (result.task, result.split, label)
    rows: list[tuple[Any, ...]] = []
    for name, value in result.scores.items():
        low, high = result.intervals.get(name, ("", ""))
        rows.append((*before, "all", result.n, name, value, low, high))
    for group, figures in result.groups.items():
        for name, value in figures.scores.items():
            rows.append((*before, group, figures.n, name, value, "", ""))
    return rows


def _show_notes(results: Sequence[Result], *, to_stderr: bool) -> None:
    said: dict[str, list[str]] = {}
    for result in results:
        for note in result.notes:
            said.setdefault(note, []).append(f"{result.task} on {result.split}")
    notes = [f"{', '.join(dict.fromkeys(where))}: {note}" for note, where in said.items()]
    training = results[0].encoder.get("training") if results else None
    pairs = training.get("pairs") if isinstance(training, Mapping) else None
    if isinstance(training, Mapping) and isinstance(pairs, int) and pairs:
        notes.append(f"trained on {pairs:,} pairs, seed {training.get('seed')}")
    for note in notes:
        if to_stderr:
            typer.echo(f"rejoinder: {note}", err=True)
        else:
            print_wrapped(note)


def worst_of(result: Result, count: int, path: Path | None) -> Worst:
    """The items of a result with the largest errors; of one that was read, without their texts.

    Args:
        result: a result.
        count: how many items.
        path: the results file that it was read from, if it was.
    """
    items = result.items
    if items is None and path is not None:
        items = Items.from_frame(read_items(path, result))
    return worst_items(result, items, count) if items is not None else []


def _show_worst(results: Sequence[Result], worst: Mapping[int, Worst]) -> None:
    columns = [Column("item"), Column("predicted"), Column("gold"), Column("text", wraps=True)]
    for place, rows in worst.items():
        print_fitted(f"{results[place].task} on {results[place].split}", columns, rows)
    if any(results[place].items is None for place in worst):
        print_wrapped("Texts are not kept with results: --overwrite scores again and shows them.")
