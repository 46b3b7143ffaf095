"""Options that several commands share: one name, one meaning and one help text each.

A command that `prints` has `--quiet`, which silences `cli.output` and `cli.progress`, by which all
but errors is written to standard error, and `--json` and `--tsv`, which `cli.output` obeys.
"""

from collections.abc import Callable
from functools import wraps
from inspect import Parameter, signature
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from rejoinder.cli.output import set_output

ModelOption = Annotated[
    str | None,
    typer.Option(
        "--model",
        "-m",
        metavar="MODEL",
        help="Name that `rejoinder models` lists, folder such as RUN/model, or https address.",
        show_default="rejoinder-base",
    ),
]
"""A model that `cli.models.model_folder` finds; None is the default model.."""
ModelSha256Option = Annotated[
    str | None,
    typer.Option(metavar="HEX", help="SHA-256 of the archive, for a MODEL at an https address."),
]
"""`--model-sha256`: a parameter `model_sha256` of a command that has a `ModelOption`."""

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
MasterOption = Annotated[
    str | None,
    typer.Option(
        "--master",
        metavar="URL",
        help="Where the engine runs. Spark: spark://HOST:7077, yarn, k8s://…, local[4], or Spark "
        "Connect at sc://HOST. Ray: HOST:6379, ray://HOST:10001. Default: this machine.",
    ),
]
"""`--master` of the commands with `--engine`."""

ColumnsOption = Annotated[
    str | None,
    typer.Option(
        "--columns",
        metavar="text=…[,id=…]",
        help="Columns of a table (.csv, .tsv, .parquet), or fields of JSON lines, with the texts "
        "and their ids. Default: text and id.",
    ),
]
"""`--columns` of the commands that read files of texts."""

OnTooLong = Literal["error", "truncate", "split"]
OnTooLongOption = Annotated[
    OnTooLong,
    typer.Option(
        "--on-too-long",
        metavar="WAY",
        help="Sentences of more tokens than the model reads: error, truncate or split (into "
        "pieces, whose mean is taken).",
    ),
]
"""`--on-too-long`."""

_PRINTING = {
    "json": Annotated[bool, typer.Option("--json", help="Print JSON.")],
    "tsv": Annotated[bool, typer.Option("--tsv", help="Print tab-separated lines.")],
    "quiet": Annotated[
        bool, typer.Option("--quiet", "-q", help="Print no progress and no notes, only errors.")
    ],
}


def prints(*forms: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Gives a command `--quiet` and the options of its `forms`, `json` and `tsv`.

    They hold until the next command of the process.
    """
    names = (*forms, "quiet")
    options = [
        Parameter(name, Parameter.KEYWORD_ONLY, default=False, annotation=_PRINTING[name])
        for name in names
    ]

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        @wraps(command)
        def run(*args: Any, **given: Any) -> None:
            set_output(**{name: given.pop(name, False) for name in names})
            command(*args, **given)

        plain = signature(command)
        whole = plain.replace(parameters=[*plain.parameters.values(), *options])
        run.__signature__ = whole  # type: ignore[attr-defined]
        return run

    return decorate
