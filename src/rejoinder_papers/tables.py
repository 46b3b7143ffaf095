"""The tables of the paper, with our rows below the published rows."""

import tomllib
from collections.abc import Iterator, Mapping, Sequence
from importlib.resources import files
from typing import Any

import numpy as np

from rejoinder.evaluation.metrics import Items
from rejoinder.evaluation.report import Table
from rejoinder.evaluation.results import Result
from rejoinder_papers.work import MODELS, Work

_GENRES = ("main-captions", "main-forums", "main-news")


def tables_of(work: Work, encoder: str, items: Items) -> list[Table]:
    """Returns tables 1 to 6, and a table of the time per stage.

    `encoder` is the kind of encoder, such as `dan`. `items` are from STS-B test, for table
    5.
    """
    ours = f"ours, {encoder}"
    paper = tomllib.loads((files("rejoinder") / "data" / "paper.toml").read_text("utf-8"))
    return [
        _table1(work, paper, ours),
        _table2(work, paper, ours),
        _table3(work, paper, ours),
        _table4(work, paper, ours),
        _table5(paper, items, ours),
        _table6(work, paper, ours),
        _costs(work),
    ]


def _labelled(work: Work, names: Sequence[str], ours: str) -> Iterator[tuple[str, str]]:
    """Yields the names of models and the labels of their rows: `names`, then those of `also`.

    Tuned models of `also` are included if `names` has tuned models.
    """
    for name in names:
        yield name, f"{name} ({ours})"
    forms = ("", " tuned") if any(name.endswith(" tuned") for name in names) else ("",)
    for name in (f"{model}{form}" for model in work.also for form in reversed(forms)):
        if name in work.results:
            yield name, f"{name} (ours)"


def _find(results: Sequence[Result], task: str, split: str) -> Result | None:
    matches = (result for result in results if (result.task, result.split) == (task, split))
    return next(matches, None)


def _score(results: Sequence[Result], task: str, split: str, name: str) -> float:
    """Returns a score of a task, NaN if the task is missing."""
    result = _find(results, task, split)
    return float("nan") if result is None else result.scores[name]


def _table1(work: Work, paper: Mapping[str, Any], ours: str) -> Table:
    rows = [(name, *_cells(values, 1)) for name, values in paper["table1"].items()]
    for name, label in _labelled(work, ("Reddit", "Reddit+SNLI"), ours):
        if result := _find(work.results[name], "response/p@n", "test"):
            percent = [100 * value for key, value in result.scores.items() if key.startswith("P@")]
            rows.append((label, *_cells(percent, 1)))
    return Table(
        "Table 1: the true response among 99 others, test, %",
        ("model", "P@1", "P@3", "P@10"),
        tuple(rows),
        "The paper's test set is another: its own 2.4 billion comments.",
    )


def _table2(work: Work, paper: Mapping[str, Any], ours: str) -> Table:
    rows = [(name, *_cells([value], 1)) for name, value in paper["table2"].items()]
    for name, label in _labelled(work, ("Reddit+SNLI",), ours):
        accuracy = _score(work.results[name], "snli/head", "test", "accuracy")
        rows.append((label, *_cells([accuracy], 1)))
    return Table("Table 2: accuracy on SNLI, test, %", ("model", "accuracy"), tuple(rows))


def _table3(work: Work, paper: Mapping[str, Any], ours: str) -> Table:
    rows = [(name, *_cells(values, 3)) for name, values in paper["table3"].items()]
    for name, label in _labelled(work, MODELS[::-1], ours):
        values = [_stsb(work.results[name], split)[0] for split in ("dev", "test")]
        rows.append((label, *_cells(values, 3)))
    title = "Table 3: Pearson's r on the STS Benchmark"
    return Table(title, ("model", "dev", "test"), tuple(rows))


def _table4(work: Work, paper: Mapping[str, Any], ours: str) -> Table:
    genres = ("all", "captions", "forums", "news")
    columns = tuple(f"{split} {genre}" for split in ("dev", "test") for genre in genres)
    rows = []
    for name, label in _labelled(work, MODELS, ours):
        if name in MODELS:
            rows.append((name, *_cells(paper["table4"][name], 3)))
        values = [*_stsb(work.results[name], "dev"), *_stsb(work.results[name], "test")]
        rows.append((label, *_cells(values, 3)))
    return Table("Table 4: the same by category", ("model", *columns), tuple(rows))


def _stsb(results: Sequence[Result], split: str) -> list[float]:
    """Returns Pearson's r on all pairs, captions, forums and news; NaN where it is missing."""
    result = _find(results, "stsb/angular", split)
    if result is None:
        return [float("nan")] * 4
    by_genre = [result.groups[genre].scores["pearson"] for genre in _GENRES]
    return [result.scores["pearson"], *by_genre]


def _table5(paper: Mapping[str, Any], items: Items, ours: str) -> Table:
    rows = [
        (f"{row['kind']} (paper)", f"{row['score']:.2f}", f"{row['gold']:.1f}", row["text"])
        for row in paper["table5"]
    ]
    for kind, prediction, gold, text in best_and_worst(items):
        rows.append((f"{kind} ({ours})", f"{prediction:.2f}", f"{gold:.1f}", text))
    note = (
        "Ours are the two pairs nearest to the least-squares line through scores and labels (one "
        "labelled 4 or more, one labelled 1 or less) and the two pairs furthest from it."
    )
    title = "Table 5: pairs of STS-B test, by Reddit+SNLI"
    return Table(title, ("", "score", "label", "sentences"), tuple(rows), note)


def best_and_worst(items: Items) -> Iterator[tuple[str, float, float, str]]:
    """Yields two good and two bad pairs of `items`: kind, score, label and text.

    Good pairs are close to the least-squares line through scores and labels, bad ones far from it.
    """
    scores, gold = items.predictions, items.gold
    slope, intercept = np.polyfit(gold, scores, 1)
    error = np.abs(scores - intercept - slope * gold)
    order = np.argsort(error, kind="stable")
    high = next((row for row in order if gold[row] >= 4), order[0])
    low = next((row for row in order if gold[row] <= 1), order[0])
    for kind, row in (("good", high), ("good", low), ("bad", order[-1]), ("bad", order[-2])):
        yield kind, float(scores[row]), float(gold[row]), items.texts[row]


def _table6(work: Work, paper: Mapping[str, Any], ours: str) -> Table:
    rows = [(name, *_cells([value], 2), "") for name, value in paper["table6"].items()]
    for name, label in _labelled(work, ("Reddit", "Reddit+SNLI"), ours):
        results = work.results[name]
        values = [_score(results, f"cqa-b/{year}", "test", "map") for year in (2017, 2016)]
        rows.append((label, *_cells(values, 2)))
    note = ""
    if missing := [name for name in work.missing if name.startswith("cqa-b")]:
        note = f"Missing, because the data is not available: {', '.join(missing)}."
    title = "Table 6: MAP on community question answering, subtask B, test"
    return Table(title, ("model", "2017", "2016"), tuple(rows), note)


def _costs(work: Work) -> Table:
    machine = work.facts["machine"]
    rows = []
    for name, facts in work.facts["stages"].items():
        counts = [f"{facts[key]:,}" if key in facts else "" for key in ("steps", "batch size")]
        rows.append((name, *counts, f"{facts['seconds'] / 60:.1f}"))
    device = machine["accelerator"] or "no accelerator"
    return Table(
        "What it took",
        ("stage", "steps", "batch", "minutes"),
        tuple(rows),
        f"{work.facts['pairs']:,} training pairs (the paper: 600 million). {machine['processor']}, "
        f"{machine['cores']} cores, {device}; torch {machine['torch']}.",
    )


def _cells(values: Sequence[float], digits: int) -> list[str]:
    return ["missing" if np.isnan(value) else f"{value:.{digits}f}" for value in values]
