"""The command `rejoinder`, assembled from the modules of its commands."""

import os
import sys
from typing import Annotated

import typer

from rejoinder.cli import (
    cluster,
    data,
    encode,
    evaluate,
    extract,
    forget,
    index,
    models,
    options,
    serve,
    suggest,
    train,
    use,
)
from rejoinder.cli.output import BAD_INPUT, note_missing_kernels, status_of
from rejoinder.io.files.system import spin_briefly
from rejoinder.version import VERSION

app = typer.Typer(
    name="rejoinder",
    help="Sentence embeddings learned from conversations.",
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"]},
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
)

for _function in (
    extract.extract,
    extract.fit_links,
    train.train,
    train.finetune,
    train.adapt,
    train.fit_scorer,
    models.export,
    data.leaks,
    evaluate.evaluate,
    evaluate.compare,
    evaluate.report,
    evaluate.board,
    models.card,
    evaluate.reproduce,
    encode.encode,
    use.similarity,
    use.search,
    cluster.cluster,
    cluster.dedupe,
    suggest.suggest,
    use.rank,
    use.info,
    models.models,
    serve.explore,
    serve.serve,
    serve.mcp,
    forget.forget,
    forget.find_personal,
):
    app.command(epilog=options.examples(_function))(_function)  # named as its function
app.add_typer(train.config_commands, name="config")
app.add_typer(data.commands, name="data")
app.add_typer(index.commands, name="index")


_TASKS = {
    "see what it does": "rejoinder explore",
    "search my export": "rejoinder explore slack-export.zip",
    "share it": "rejoinder explore slack-export.zip --to archive.html",
    "for an assistant": "rejoinder mcp slack-export.zip",
    "suggest replies": "rejoinder suggest 'When do we eat?' --from chat.txt",
    "compare sentences": "rejoinder similarity 'How old are you?' 'What is your age?'",
    "train a model": "rejoinder finetune --pairs pairs/ --out my-model/",
    "judge a model": "rejoinder evaluate my-model/ --tasks stsb",
}
"""Commands for what most people want, as `rejoinder` alone shows them on a terminal."""


def _version(value: bool) -> None:
    if value:
        typer.echo(f"rejoinder {VERSION}")
        note_missing_kernels(again=True)
        raise typer.Exit


@app.callback()
def _root(
    context: typer.Context,
    version: Annotated[  # noqa: ARG001
        bool, typer.Option("--version", help="Print the version.", callback=_version, is_eager=True)
    ] = False,
) -> None:
    """Sentence embeddings learned from conversations."""
    if context.invoked_subcommand is not None:
        return
    if not sys.stdout.isatty():
        typer.echo(context.get_help())
        raise typer.Exit(BAD_INPUT)
    for task, command in _TASKS.items():
        typer.echo(f"{task:19}{command}")
    typer.echo("\n`rejoinder --help` lists all commands.")


def run() -> None:
    """Runs the command line and exits. `exits.status_of` lists the exit statuses."""
    spin_briefly()
    if "RANK" in os.environ:  # a worker: our sentence says what ended it, not stack traces in C++
        os.environ.setdefault("TORCH_CPP_LOG_LEVEL", "ERROR")
    sys.exit(status_of(app))
