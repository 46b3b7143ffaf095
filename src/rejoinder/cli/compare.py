"""`rejoinder compare`: two results files, and which differences are more than chance."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rejoinder.cli.options import epilog, prints
from rejoinder.cli.output import form_of_output, note, print_rows, print_table, print_wrapped

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rejoinder.evaluation.comparison import Comparison

EXAMPLES = epilog(
    "rejoinder evaluate baseline:bow --tasks stsb --data data --out bow.json",
    "rejoinder compare dan.json bow.json",
)
_TSV = (
    *("task", "split", "settings", "score", "n", "first", "second", "difference"),
    *("low", "high", "p", "p_holm", "test", "separable", "note"),
)


@prints("json")
def compare(
    first: Annotated[Path, typer.Argument(help="Results file of `rejoinder evaluate`.")],
    second: Annotated[Path, typer.Argument(help="Results file of another encoder.")],
    seed: Annotated[int, "Seed of the bootstrap."] = 0,
) -> None:
    """Compare two encoders on every task that both were scored on.

    Correlations are compared by Williams' test, or by a bootstrap if they are means over subsets;
    accuracies by McNemar's test. p is corrected for the number of tasks by Holm's method.
    """
    import json
    from dataclasses import asdict

    from rejoinder.evaluation.comparison import compare as run

    output = form_of_output()
    compared = run(first, second, seed=seed)
    if output == "json":
        rows = [
            {**asdict(row), "difference": row.difference, "separable": row.separable}
            for row in compared.tasks
        ]
        typer.echo(json.dumps(rows))
    elif output == "tsv":
        print_rows(_TSV, [_tsv_row(row) for row in compared.tasks])
    else:
        _show(f"{first.name} against {second.name}", compared.tasks)
    for sentence in compared.left_out:
        note(sentence)


def _tsv_row(row: "Comparison") -> tuple[object, ...]:
    return (
        *(row.task, row.split, row.settings, row.score, row.n, row.first, row.second),
        *(row.difference, *row.interval, row.p, row.corrected, row.test),
        *("yes" if row.separable else "no", row.note),
    )


def _show(title: str, compared: "Sequence[Comparison]") -> None:
    """Prints a table for a terminal, then the notes."""
    from rejoinder.evaluation.variants import score_text, with_label

    columns = ("task", "score", "n", "first", "second", "difference", "95 % interval", "p (Holm)",
               "test", "separable")  # fmt: skip
    rows = []
    for row in compared:
        percent = row.in_percent
        low, high = (score_text(end, percent=percent, sign=True) for end in row.interval)
        rows.append(
            (
                with_label(row.task, row.split, row.settings),
                *(row.score, row.n),
                *(score_text(value, percent=percent) for value in (row.first, row.second)),
                score_text(row.difference, percent=percent, sign=True),
                f"{low} to {high}",
                *(f"{row.corrected:.4f}" if row.corrected >= 1e-4 else "<0.0001", row.test),
                "yes" if row.separable else "no",
            )
        )
    print_table(title, columns, rows, ("n", "test", "95 % interval", "score", "separable"))
    for row in compared:
        if row.note:
            print_wrapped(f"{row.task} on {row.split}: {row.note}")
