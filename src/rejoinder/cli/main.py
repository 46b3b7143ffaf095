"""The command `rejoinder`: joins the modules of commands."""

import os
import sys
from typing import Annotated

import typer

from rejoinder.cli import (
    adapt,
    compare,
    config,
    data,
    encode,
    evaluate,
    extract,
    leaks,
    report,
    reproduce,
    train,
    use,
)
from rejoinder.cli.exits import status_of
from rejoinder.cli.output import set_quiet
from rejoinder.version import VERSION

app = typer.Typer(
    name="rejoinder",
    help="Sentence embeddings learned from conversations.",
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"]},
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
)

for _command in (
    extract,
    train,
    config,
    adapt,
    data,
    leaks,
    evaluate,
    compare,
    report,
    reproduce,
    encode,
    use,
):
    _command.register(app)


def _version(value: bool) -> None:
    if value:
        typer.echo(f"rejoinder {VERSION}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[  # noqa: ARG001 -- its callback prints it
        bool,
        typer.Option("--version", help="Print the version.", callback=_version, is_eager=True),
    ] = False,
) -> None:
    """Sentence embeddings learned from conversations."""
    set_quiet(False)


def run() -> None:
    """Entry point; `status_of` says which exit statuses there are."""
    # idle threads of torch's OpenMP pool spin for microseconds, then sleep: where other work keeps
    # the cores busy, spinning ones take the time that the working ones need
    # (docs/reliability.md). Read when torch is loaded.
    if "OMP_WAIT_POLICY" not in os.environ:
        os.environ.setdefault("GOMP_SPINCOUNT", "3000")
    sys.exit(status_of(app))
