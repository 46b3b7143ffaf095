"""Tables of results: a column per encoder, and its row below published ones."""

import csv
import io
import math
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.resources import files

from rejoinder.evaluation.results import Result
from rejoinder.evaluation.variants import score_text, variants, with_label

_NO_SCORE = "–"
_LATEX = str.maketrans({"&": r"\&", "%": r"\%", "_": r"\_", "#": r"\#", "–": "--"})


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
        lines = ["| " + " | ".join(self.columns) + " |"]
        lines.append("|---|" + "--:|" * (len(self.columns) - 1))
        lines += ["| " + " | ".join(cell.replace("|", "/") for cell in row) + " |"
                  for row in self.rows]  # fmt: skip
        note = f"\n{self.note}\n" if self.note else ""
        return f"### {self.title}\n\n" + "\n".join(lines) + f"\n{note}"

    def latex(self) -> str:
        """Returns the table as a LaTeX tabular, with its title as a comment."""
        lines = [rf"\begin{{tabular}}{{l{'r' * (len(self.columns) - 1)}}}", r"\hline"]
        cells = [self.columns, *self.rows]
        lines += [" & ".join(cell.translate(_LATEX) for cell in row) + r" \\" for row in cells]
        lines.insert(3, r"\hline")
        return "\n".join([f"% {self.title}", *lines, r"\hline", r"\end{tabular}"]) + "\n"

    def csv(self) -> str:
        """Returns the table as comma-separated values, with its title as the first line."""
        out = io.StringIO()
        writer = csv.writer(out, lineterminator="\n")
        writer.writerows([[self.title], self.columns, *self.rows])
        return out.getvalue()


def overview(runs: Sequence[Sequence[Result]]) -> Table:
    """Returns a table of the main scores: a row per task and split, a column per encoder."""
    results = [result for run in runs for result in run]
    labels = variants(results)
    rows = []
    for key, main in dict.fromkeys((result.key, result.main) for result in results):
        cells = [f"{with_label(*key[:2], labels[key])}, {main}"]
        for run in runs:
            matches = [result for result in run if (result.key, result.main) == (key, main)]
            cells.append(_with_interval(matches[0]) if matches else _NO_SCORE)
        rows.append(tuple(cells))
    return Table("All tasks, main scores with 95 % intervals", ("task", *names(runs)), tuple(rows))


def beside_published(runs: Sequence[Sequence[Result]]) -> list[Table]:
    """Returns the published tables that share a task with `runs`, whose rows are at the end."""
    source = files("rejoinder").joinpath("data/published.toml").read_text("utf-8")
    tables = []
    for published in tomllib.loads(source)["table"]:
        tasks, digits = published["tasks"], published["digits"]
        ours = []
        for name, run in zip(names(runs), runs, strict=True):
            for label, results in _by_label(run, tasks).items():
                scores = {result.task: result.scores.get(published["score"]) for result in results}
                values = [scores.get(task) for task in tasks]
                if any(value is not None for value in values):
                    encoder = f"{name} ({label})" if label else name
                    ours.append((encoder, *(_cell(value, digits) for value in values)))
        if ours:
            rows = [
                (name, *(_cell(value, digits) for value in values))
                for name, values in published["rows"].items()
            ]
            tables.append(Table(published["title"], ("encoder", *tasks), (*rows, *ours)))
    return tables


def _by_label(run: Sequence[Result], tasks: Sequence[str]) -> dict[str, list[Result]]:
    """Returns the results of `tasks`, without dev splits, by the label of their settings."""
    chosen = [result for result in run if result.split != "dev" and result.task in tasks]
    labels = variants(chosen)
    # a result that exists under a single setting belongs to every label
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
