"""`rejoinder compare`: two files of results, and which differences are more than chance."""

from pathlib import Path
from typing import Annotated

import typer

_EPILOG = """Examples:

rejoinder evaluate baseline:bow --tasks stsb --data ../shared/data --out bow.json

rejoinder compare dan.json bow.json
"""
_COLUMNS = (
    *("task", "score", "n", "first", "second"),
    *("difference", "95 % interval", "p (Holm)", "test", "separable"),
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

    from rejoinder.cli.output import print_table
    from rejoinder.evaluation.comparison import compare as run

    found = run(first, second, seed=seed)
    if json_output:
        listed = [
            {**asdict(one), "difference": one.difference, "separable": one.separable}
            for one in found
        ]
        typer.echo(json.dumps(listed))
        return
    rows = []
    for one in found:
        low, high = one.interval
        rows.append(
            (
                f"{one.task} {one.split}",
                one.score,
                one.n,
                one.first,
                one.second,
                f"{one.difference:+.4f}",
                f"{low:+.4f} to {high:+.4f}",
                f"{one.corrected:.4f}",
                one.test,
                "yes" if one.separable else "no",
            )
        )
    print_table(f"{first.name} against {second.name}", _COLUMNS, rows)
    for one in found:
        if one.note:
            typer.echo(f"  {one.task} on {one.split}: {one.note}")
