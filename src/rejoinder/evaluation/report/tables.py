"""Tables: rows are encoders, columns are tasks; published rows stand beside ours."""

import csv
import html
import io
import math
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.resources import files

from rejoinder.evaluation.results import Result
from rejoinder.evaluation.variants import variants, with_label

_NONE = "–"
_LATEX = str.maketrans({"&": r"\&", "%": r"\%", "_": r"\_", "#": r"\#", "–": "--"})


@dataclass(frozen=True)
class Table:
    """Text in cells."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    note: str = ""

    def markdown(self) -> str:
        """A table of Markdown, under its title."""
        lines = ["| " + " | ".join(self.columns) + " |"]
        lines.append("|---|" + "--:|" * (len(self.columns) - 1))
        lines += ["| " + " | ".join(cell.replace("|", "/") for cell in row) + " |"
                  for row in self.rows]  # fmt: skip
        note = f"\n{self.note}\n" if self.note else ""
        return f"### {self.title}\n\n" + "\n".join(lines) + f"\n{note}"

    def latex(self) -> str:
        """A tabular environment."""
        lines = [rf"\begin{{tabular}}{{l{'r' * (len(self.columns) - 1)}}}", r"\hline"]
        cells = [self.columns, *self.rows]
        lines += [" & ".join(cell.translate(_LATEX) for cell in row) + r" \\" for row in cells]
        lines.insert(3, r"\hline")
        return "\n".join([f"% {self.title}", *lines, r"\hline", r"\end{tabular}"]) + "\n"

    def csv(self) -> str:
        """Comma-separated values, the title in the first line."""
        out = io.StringIO()
        writer = csv.writer(out, lineterminator="\n")
        writer.writerows([[self.title], self.columns, *self.rows])
        return out.getvalue()

    def html(self) -> str:
        """A table element."""
        head = "".join(f"<th>{html.escape(name)}</th>" for name in self.columns)
        body = "".join(
            "<tr>" + "".join(f"<td>{html.escape(cell)}</td>" for cell in row) + "</tr>\n"
            for row in self.rows
        )
        title = html.escape(self.title)
        table = f"<table><thead><tr>{head}</tr></thead>\n<tbody>{body}</tbody></table>"
        note = f"<p>{html.escape(self.note)}</p>\n" if self.note else ""
        return f"<h2>{title}</h2>\n{table}\n{note}"


def overview(runs: Sequence[Sequence[Result]]) -> Table:
    """Every task and split, its main score for each encoder."""
    every = [one for run in runs for one in run]
    labels = variants(every)
    keys = dict.fromkeys((one.key, one.main) for one in every)
    rows = []
    for key, main in keys:
        cells = [f"{with_label(*key[:2], labels[key])}, {main}"]
        for run in runs:
            found = [one for one in run if (one.key, one.main) == (key, main)]
            cells.append(_with_interval(found[0]) if found else _NONE)
        rows.append(tuple(cells))
    return Table("All tasks, main scores with 95 % intervals", ("task", *names(runs)), tuple(rows))


def beside_published(runs: Sequence[Sequence[Result]]) -> list[Table]:
    """The published tables that ours have a task of, our rows below."""
    source = files("rejoinder").joinpath("data/published.toml").read_text("utf-8")
    tables = []
    for entry in tomllib.loads(source)["table"]:
        ours = []
        for name, run in zip(names(runs), runs, strict=True):
            for label, results in _by_settings(run, entry["tasks"]).items():
                scores = {one.task: one.scores.get(entry["score"]) for one in results}
                values = [scores.get(task) for task in entry["tasks"]]
                if any(value is not None for value in values):
                    said = f"{name} (ours; {label})" if label else f"{name} (ours)"
                    ours.append((said, *(_cell(value, entry["digits"]) for value in values)))
        if ours:
            rows = [
                (name, *(_cell(value, entry["digits"]) for value in values))
                for name, values in entry["rows"].items()
            ]
            tables.append(Table(entry["title"], ("encoder", *entry["tasks"]), (*rows, *ours)))
    return tables


def _by_settings(run: Sequence[Result], tasks: Sequence[str]) -> dict[str, list[Result]]:
    """The results of some tasks, dev aside, by the label of their settings.

    Those that are there under one setting alone belong to every label.
    """
    chosen = [one for one in run if one.split != "dev" and one.task in tasks]
    labels = variants(chosen)
    return {
        label: [one for one in chosen if labels[one.key] in (label, "")]
        for label in dict.fromkeys(labels.values())
        if label or set(labels.values()) == {""}
    }


def names(runs: Sequence[Sequence[Result]]) -> tuple[str, ...]:
    """The encoders' names, numbered where two are alike."""
    plain = [str(run[0].encoder.get("name", "encoder")) if run else "nothing" for run in runs]
    return tuple(
        name if plain.count(name) == 1 else f"{name} {plain[: place + 1].count(name)}"
        for place, name in enumerate(plain)
    )


def _with_interval(result: Result) -> str:
    digits = 2 if result.in_percent else 4
    said = f"{result.scores[result.main]:.{digits}f}"
    if result.main in result.intervals:
        low, high = result.intervals[result.main]
        said += f" ({low:.{digits}f} to {high:.{digits}f})"
    return said


def _cell(value: float | None, digits: int) -> str:
    return _NONE if value is None or math.isnan(value) else f"{value:.{digits}f}"
