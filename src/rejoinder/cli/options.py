"""Options that several commands share: one name, one meaning and one help text each.

A command with `quiet: QuietOption = False` calls `set_quiet(quiet)` before it prints anything. That
silences `cli.output` and `cli.progress`, by which all but errors is written to standard error.
"""

from pathlib import Path
from typing import Annotated

import typer

from rejoinder.cli.output import set_quiet as set_quiet

ModelOption = Annotated[
    str,
    typer.Option("--model", "-m", metavar="NAME|FOLDER", help="Model folder, such as RUN/model."),
]
"""A model that `rejoinder.runtime.inputs.find_model` finds. See `cli.words`."""

DataOption = Annotated[Path | None, typer.Option("--data", help="Folder of data sets.")]
PairsOption = Annotated[
    Path | None, typer.Option("--pairs", help="Folder written by `rejoinder extract`.")
]
OutOption = Annotated[Path, typer.Option("--out", help="Folder to write.")]
OverwriteOption = Annotated[bool, typer.Option("--overwrite", help="Replace an existing OUT.")]
SeedOption = Annotated[int, typer.Option("--seed", help="Seed of all random draws.")]
ThreadsOption = Annotated[
    int | None, typer.Option("--threads", min=1, help="CPU threads. Default: all cores.")
]

JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON.")]
TsvOption = Annotated[bool, typer.Option("--tsv", help="Print tab-separated lines.")]
QuietOption = Annotated[
    bool, typer.Option("--quiet", "-q", help="Print no progress and no notes, only errors.")
]
