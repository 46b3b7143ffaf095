"""`rejoinder report`: tables and plots of results files."""

import json
from pathlib import Path
from typing import Annotated

import typer

from rejoinder.cli.options import OutOption, OverwriteOption, epilog, prints
from rejoinder.cli.output import asked_for, status_line

EXAMPLES = epilog(
    "rejoinder report dan.json bow.json --out report/",
    "rejoinder report dan.json bow.json --out report/ --overwrite --json",
)


@prints("json")
def report(
    results: Annotated[
        list[Path], typer.Argument(help="Results files written by `rejoinder evaluate`.")
    ],
    out: OutOption,
    overwrite: OverwriteOption = False,
) -> None:
    """Write tables (Markdown, LaTeX, CSV), plots (SVG) and a page that shows all of them.

    The tables include published rows of Conneau and Kiela 2018 and Cer et al. 2017.
    """
    from rejoinder.evaluation.report.writer import write_report

    written = write_report(results, out, overwrite=overwrite)
    if asked_for("json"):
        typer.echo(json.dumps({"out": str(out), "files": [str(path) for path in written]}))
    else:
        status_line(f"wrote {out / 'index.html'}")
