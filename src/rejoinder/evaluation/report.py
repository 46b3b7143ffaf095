"""Reports results files (tables, plots, a page), and compares two sets of results.

Tables have a column per encoder, and add its row to published tables. Plots are SVG: main scores as
bars with intervals, and predictions against gold. A comparison tests, task by task, whether two
encoders differ by more than chance.
"""

import io
import math
import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np

from rejoinder.errors import InputError, require
from rejoinder.evaluation.intervals import Interval, holm
from rejoinder.evaluation.metrics import Items, metric_of
from rejoinder.evaluation.results import (
    Result,
    differences,
    items_folder,
    read_results,
    score_text,
    variants,
    with_label,
)
from rejoinder.io.files.atomic import new_folder
from rejoinder.io.files.claims import claim_output
from rejoinder.io.formats.shown import text_table
from rejoinder.measures import Floats

_NO_SCORE = "–"


@dataclass(frozen=True)
class Table:
    """A table whose cells are text. The first column names the rows."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    note: str = ""
    """A sentence below the table."""

    def markdown(self) -> str:
        """Returns the table as Markdown, with its title as a heading."""
        cells = [[cell.replace("|", "/") for cell in row] for row in self.rows]
        lines = ["| " + " | ".join(row) + " |" for row in (self.columns, *cells)]
        lines.insert(1, "|---|" + "--:|" * (len(self.columns) - 1))
        note = f"\n{self.note}\n" if self.note else ""
        return f"### {self.title}\n\n" + "\n".join(lines) + f"\n{note}"


def overview(runs: Sequence[Sequence[Result]]) -> Table:
    """Returns a table of main scores, with a row per task and split, and a column per encoder."""
    results = [result for run in runs for result in run]
    labels = variants(results)
    rows = []
    shown = [{(one.key, one.main): _with_interval(one) for one in run} for run in runs]
    for key, main in dict.fromkeys((result.key, result.main) for result in results):
        cells = [by_key.get((key, main), _NO_SCORE) for by_key in shown]
        rows.append((f"{with_label(*key[:2], labels[key])}, {main}", *cells))
    return Table("All tasks, main scores with 95 % intervals", ("task", *names(runs)), tuple(rows))


def beside_published(runs: Sequence[Sequence[Result]]) -> list[Table]:
    """Returns the published tables that share a task with `runs`, with added rows of `runs`."""
    tables = []
    for published in published_tables():
        tasks, digits = published["tasks"], published["digits"]
        ours = []
        for name, run in zip(names(runs), runs, strict=True):
            for label, results in _by_label(run, tasks).items():
                scores = {result.task: result.scores.get(published["score"]) for result in results}
                values = [scores.get(task) for task in tasks]
                if any(value is not None for value in values):
                    ours.append((f"{name} ({label})" if label else name, values))
        if ours:
            rows = tuple(
                (name, *(_cell(value, digits) for value in values))
                for name, values in (*published["rows"].items(), *ours)
            )
            tables.append(Table(published["title"], ("encoder", *tasks), rows))
    return tables


def published_tables() -> list[dict[str, Any]]:
    """Returns published scores: tables with `title`, `tasks`, `score`, `digits`, and `rows`.

    The rows hold a number for each task by name, NaN where the source has none.
    """
    source = files("rejoinder").joinpath("data/published.toml").read_text("utf-8")
    tables: list[dict[str, Any]] = tomllib.loads(source)["table"]
    return tables


def _by_label(run: Sequence[Result], tasks: Sequence[str]) -> dict[str, list[Result]]:
    """Returns the results of `tasks`, without dev splits, by the label of their settings."""
    chosen = [result for result in run if result.split != "dev" and result.task in tasks]
    labels = variants(chosen)
    # a result with only one setting belongs to every label
    return {
        label: [result for result in chosen if labels[result.key] in (label, "")]
        for label in dict.fromkeys(labels.values())
        if label or set(labels.values()) == {""}
    }


def names(runs: Sequence[Sequence[Result]]) -> tuple[str, ...]:
    """Returns the names of the encoders. Equal names are numbered."""
    plain = [str(run[0].encoder.get("name", "encoder")) if run else "nothing" for run in runs]
    return tuple(
        name if plain.count(name) == 1 else f"{name} {plain[: index + 1].count(name)}"
        for index, name in enumerate(plain)
    )


def _with_interval(result: Result) -> str:
    values = (result.scores[result.main], *result.intervals.get(result.main, ()))
    score, *ends = (score_text(value, percent=result.in_percent) for value in values)
    return f"{score} ({' to '.join(ends)})" if ends else score


def _cell(value: float | None, digits: int) -> str:
    return _NO_SCORE if value is None or math.isnan(value) else f"{value:.{digits}f}"


def write_report(paths: Sequence[Path], out: Path, *, overwrite: bool = False) -> list[Path]:
    """Writes `index.html`, `tables.md` and the plots as SVG.

    `paths` are results files, one per encoder. `overwrite` replaces a folder that is not empty.
    Returns the files written, sorted by name.

    Raises:
        InputError: a file is not a results file, none has results, or `out` is occupied.
        MissingExtraError: Jinja2 or matplotlib is not installed.
        BusyError: another command is writing `out`.
        StorageError: `out` can't be written.
    """
    read = [*paths, *map(items_folder, paths)]
    with claim_output(out, overwrite=overwrite, inputs=read):
        contents = _contents(paths)
        with new_folder(out, overwrite=overwrite) as folder:
            for name, content in contents.items():
                (folder / name).write_text(content, "utf-8")
    return [out / name for name in sorted(contents)]


def _contents(paths: Sequence[Path]) -> dict[str, str]:
    """Returns the contents of each file of the report, by file name."""
    require("report", "jinja2", "matplotlib")
    runs = [read_results(path) for path in paths]
    if not any(runs):
        raise InputError(f"{', '.join(map(str, paths))}: no results to report.")
    tables = [overview(runs), *beside_published(runs)]
    plots = {f"gold-{number}.svg": plot for number, plot in enumerate(_scatter_plots(runs), 1)}
    plots = {"bars.svg": bars(runs), **plots}
    about = [
        {
            "name": name,
            "count": len(run),
            "date": run[0].date,
            "version": run[0].versions.get("rejoinder", ""),
            "seed": run[0].seed,
            "platform": run[0].machine.get("platform", ""),
        }
        for name, run in zip(names(runs), runs, strict=True)
        if run
    ]
    return {
        "index.html": render_page("results.html.j2", tables, list(plots.values()), runs=about),
        "tables.md": "\n".join(table.markdown() for table in tables),
        **plots,
    }


def _scatter_plots(runs: Sequence[Sequence[Result]]) -> Iterator[str]:
    """Yields a plot for each result on the STS Benchmark that has predictions."""
    labels = variants(result for run in runs for result in run)
    for name, run in zip(names(runs), runs, strict=True):
        for result in run:
            if result.task.startswith("stsb/") and result.items is not None:
                title = with_label(f"{name}: {result.task}", result.split, labels[result.key])
                yield predicted_against_gold(title, result.items.predictions, result.items.gold)


def render_page(
    template: str, tables: Sequence[Table], figures: Sequence[str], **values: object
) -> str:
    """Returns a self-contained page, from a template such as `results.html.j2`.

    The figures are SVG documents, which are not escaped. `values` are further template variables.

    Raises:
        MissingExtraError: Jinja2 is not installed.
    """
    require("report", "jinja2")
    import jinja2
    from markupsafe import Markup

    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("rejoinder", "data/templates"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        keep_trailing_newline=True,
    )
    # inside HTML, an SVG has neither an XML declaration nor a document type
    inline = [Markup(svg[svg.index("<svg") :]) for svg in figures]  # noqa: S704 -- our own SVG
    return environment.get_template(template).render(tables=tables, figures=inline, **values)


COLOURS = ("#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00")
"""The palette of Okabe and Ito: distinct for colour-blind readers and in grey."""


def new_figure(width: float, height: float, rows: int = 1, columns: int = 1) -> tuple[Any, Any]:
    """Returns a matplotlib figure with its size in inches, and its axes: an array if several.

    Raises:
        MissingExtraError: matplotlib is not installed.
    """
    require("report", "matplotlib")
    import matplotlib as mpl
    from matplotlib.figure import Figure

    mpl.rcParams["svg.hashsalt"] = "rejoinder"  # makes the ids in an SVG reproducible
    figure = Figure(figsize=(width, height), layout="constrained")
    return figure, figure.subplots(rows, columns)


def svg_of(figure: Any) -> str:
    """Returns a figure as SVG. The same figure gives the same text."""
    out = io.StringIO()
    figure.savefig(out, format="svg", metadata={"Date": None})
    return out.getvalue()


def bars(runs: Sequence[Sequence[Result]]) -> str:
    """Plots the main score of every task: a bar per encoder, with its 95 % interval.

    All scores are scaled to 0 to 1. `runs` are the results of each encoder.
    """
    labels = variants(result for run in runs for result in run)
    keys = list(labels)
    figure, axes = new_figure(8, 1.2 + 0.22 * len(keys) * (len(runs) + 0.5))
    for index, (name, run) in enumerate(zip(names(runs), runs, strict=True)):
        by_key = {result.key: result for result in run}
        rows = [row for row, key in enumerate(keys) if key in by_key]
        values, errors = [], []
        for row in rows:
            result = by_key[keys[row]]
            unit = 100 if result.in_percent else 1
            value = result.scores[result.main] / unit
            low, high = result.intervals.get(result.main, (value * unit, value * unit))
            values.append(value)
            errors.append((max(value - low / unit, 0), max(high / unit - value, 0)))
        heights = np.array(rows) + (index - (len(runs) - 1) / 2) * 0.8 / len(runs)
        axes.barh(
            heights, values, height=0.8 / len(runs), label=name,
            color=COLOURS[index % len(COLOURS)], xerr=np.array(errors).T, ecolor="#333333",
        )  # fmt: skip
    axes.set_yticks(range(len(keys)), [with_label(*key[:2], labels[key]) for key in keys])
    axes.set_ylim(len(keys) - 0.5, -0.5)
    axes.set_xlabel("main score, 0 to 1 (accuracy and MAP as shares), with 95 % intervals")
    figure.legend(loc="outside upper right", ncols=3)
    return svg_of(figure)


def predicted_against_gold(title: str, predictions: Floats, gold: Floats) -> str:
    """Plots (N,) predicted similarities against gold, 0 to 5, with a least-squares line."""
    figure, axes = new_figure(4.5, 4)
    axes.scatter(gold, predictions, s=6, alpha=0.35, color=COLOURS[0], linewidths=0)
    slope, intercept = np.polyfit(gold, predictions, 1)
    ends = np.array([gold.min(), gold.max()])
    axes.plot(ends, intercept + slope * ends, color=COLOURS[5])
    axes.set_xlabel("gold, 0 (unrelated) to 5 (the same)")
    axes.set_ylabel("predicted")
    axes.set_title(title, fontsize=9)
    return svg_of(figure)


LEVEL = 0.05
"""Corrected p-values below this count as separable."""
_MOST_DRAWS = 100_000
_FEW = 200
"""Number of items below which a bootstrap does not keep its level."""

COMPARED = ("task", "score", "n", "first", "second", "difference", "95 % interval", "p (Holm)",
            "test", "separable")  # fmt: skip
"""The columns of a printed comparison."""
Source = Path | str | Sequence[Result]
"""A results file, or results from `evaluate`."""


@dataclass(frozen=True)
class Comparison:
    """The comparison of two encoders on one task."""

    task: str
    split: str
    n: int
    """Number of compared items."""
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
    """Settings that distinguish the result from others of the task in the first set, if any."""

    @property
    def difference(self) -> float:
        """First minus second."""
        return self.first - self.second

    @property
    def in_percent(self) -> bool:
        """Whether the score goes from 0 to 100 instead of 0 to 1."""
        return metric_of(self.score).percent

    @property
    def cells(self) -> tuple[str, ...]:
        """The columns of `COMPARED`, as text for people."""
        text = partial(score_text, percent=self.in_percent)
        low, high = (text(end, sign=True) for end in self.interval)
        return (
            *(with_label(self.task, self.split, self.settings), self.score, f"{self.n:,}"),
            *(text(self.first), text(self.second), text(self.difference, sign=True)),
            f"{low} to {high}",
            f"{self.corrected:.4f}" if self.corrected >= 1e-4 else "<0.0001",
            *(self.test, "yes" if self.separable else "no"),
        )

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
        return "\n".join((text_table(COMPARED, [row.cells for row in self.tasks]), *self.left_out))


def compare(first: Source, second: Source, *, seed: int = 0) -> Compared:
    """Compares the main scores of all tasks that two encoders share, under the same settings.

    If each has a task once, with different settings or forms of the data, these two results
    are compared, and the note lists the differences. A bootstrap draws more often the more tasks
    there are, so that its least p stays separable after Holm's correction (up to 1,250 tasks).

    Args:
        first: a results file, or results that contain their items.
        second: the same for another encoder.
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
    tasks = [compare_task(*pair, labels[pair[0].key], seed, draws) for pair in matched]
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


def compare_task(first: Result, second: Result, settings: str, seed: int, draws: int) -> Comparison:
    """Compares two encoders on a task, by the test for its main score.

    `settings` label it. A bootstrap, seeded by `seed`, has at least `draws` draws.

    Raises:
        InputError: the items or the main scores differ, or there are no predictions.
    """
    what = f"{first.task} on {first.split}"
    if first.main != second.main:
        mains = f"{first.main} in one file and {second.main} in the other"
        raise InputError(f"{what}: the main score is {mains}; only the same can be compared.")
    left, right = first.items, second.items
    if left is None or right is None:
        raise InputError(f"{what} has no predictions; evaluate again.")
    rows = {name: row for row, name in enumerate(right.ids)}
    if set(left.ids) != set(rows):
        counts = f"{len(left.ids)} and {len(right.ids)} items"
        raise InputError(f"{what} was scored on other items in the two files ({counts}).")
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
