"""`rejoinder compare`: two files of results, and which differences are more than chance."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rejoinder.evaluation.comparison import Comparison

_EPILOG = """Examples:

rejoinder evaluate baseline:bow --tasks stsb --data ../shared/data --out bow.json

rejoinder compare dan.json bow.json
"""
_TSV = (
    *("task", "split", "settings", "score", "n", "first", "second", "difference"),
    *("low", "high", "p", "p_holm", "test", "separable", "note"),
)


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("compare", epilog=_EPILOG)(compare)


def compare(
    first: Annotated[Path, typer.Argument(help="results.json of `rejoinder evaluate`.")],
    second: Annotated[Path, typer.Argument(help="The same of another encoder.")],
    seed: Annotated[int, typer.Option(help="Of the bootstrap.")] = 0,
    json_output: Annotated[bool, typer.Option("--json", help="Print JSON, no table.")] = False,
) -> None:
    """Compare two encoders on every task that both were scored on.

    Correlations by Williams' test, or by bootstrap where they are means over subsets; accuracies
    by McNemar's. p is corrected by Holm's method for the number of tasks.
    """
    import json
    from dataclasses import asdict

    from rejoinder.cli.output import form_of, print_rows
    from rejoinder.evaluation.comparison import compare as run

    form = form_of(as_json=json_output, as_tsv=False)
    found = run(first, second, seed=seed)
    if form == "json":
        listed = [
            {**asdict(one), "difference": one.difference, "separable": one.separable}
            for one in found.tasks
        ]
        typer.echo(json.dumps(listed))
    elif form == "tsv":
        print_rows(_TSV, [_tsv_row(one) for one in found.tasks], form)
    else:
        _show(f"{first.name} against {second.name}", found.tasks)
    for sentence in found.left_out:
        typer.echo(f"rejoinder: {sentence}", err=True)


def _tsv_row(one: "Comparison") -> tuple[object, ...]:
    return (
        *(one.task, one.split, one.settings, one.score, one.n, one.first, one.second),
        *(one.difference, *one.interval, one.p, one.corrected, one.test),
        *("yes" if one.separable else "no", one.note),
    )


def _show(title: str, found: "Sequence[Comparison]") -> None:
    from rejoinder.cli.fitting import Column, print_fitted, print_wrapped
    from rejoinder.evaluation.variants import with_label

    columns = [
        *(Column("task", wraps=True), Column("score", spare=2)),
        *(Column("n", spare=5), Column("first"), Column("second")),
        *(Column("difference"), Column("95 % interval", spare=3), Column("p (Holm)")),
        *(Column("test", spare=4), Column("separable", spare=1)),
    ]
    rows = []
    for one in found:
        digits = 2 if one.in_percent else 4
        low, high = one.interval
        rows.append(
            (
                with_label(one.task, one.split, one.settings),
                *(one.score, one.n),
                *(f"{one.first:.{digits}f}", f"{one.second:.{digits}f}"),
                f"{one.difference:+.{digits}f}",
                f"{low:+.{digits}f} to {high:+.{digits}f}",
                *(f"{one.corrected:.4f}" if one.corrected >= 1e-4 else "<0.0001", one.test),
                "yes" if one.separable else "no",
            )
        )
    print_fitted(title, columns, rows)
    for one in found:
        if one.note:
            print_wrapped(f"{one.task} on {one.split}: {one.note}")
