"""The command `rejoinder`: joins the modules of commands, turns errors into exits."""

import sys
from typing import Annotated

import typer

from rejoinder.cli import (
    adapt,
    compare,
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
from rejoinder.errors import RejoinderError
from rejoinder.version import VERSION

app = typer.Typer(
    name="rejoinder",
    help="Sentence embeddings learned from conversations.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
)

for _command in (
    extract,
    train,
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
    version: Annotated[
        bool,
        typer.Option("--version", help="Print the version.", callback=_version, is_eager=True),
    ] = False,
) -> None:
    """Sentence embeddings learned from conversations."""


def run() -> None:
    """Entry point: exit 0 done, 1 failed, 2 misuse or bad input, 130 interrupted."""
    try:
        app()
    except RejoinderError as error:
        typer.echo(f"rejoinder: {error}", err=True)
        sys.exit(2)
    except BrokenPipeError:
        sys.stderr.close()
        sys.exit(0)
    except KeyboardInterrupt:
        typer.echo("rejoinder: interrupted", err=True)
        sys.exit(130)
