"""`rejoinder report`: results files to tables and plots."""

from pathlib import Path
from typing import Annotated

import typer

_EPILOG = """Examples:

rejoinder report dan.json bow.json --out report/
"""


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("report", epilog=_EPILOG)(report)


def report(
    results: Annotated[list[Path], typer.Argument(help="results.json of `rejoinder evaluate`.")],
    out: Annotated[Path, typer.Option(help="Folder to write.")],
    overwrite: Annotated[bool, typer.Option(help="Replace OUT.")] = False,
) -> None:
    """Write tables (Markdown, LaTeX, CSV) and one page with tables and plots.

    Published rows of Conneau and Kiela 2018 and Cer et al. 2017 stand beside ours.
    """
    from rejoinder.evaluation.report.writer import write_report

    write_report(results, out, overwrite=overwrite)
    typer.echo(f"wrote {out / 'index.html'}")
