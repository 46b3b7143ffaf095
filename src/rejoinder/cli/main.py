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
    search,
    serve,
    suggest,
    train,
    use,
)
from rejoinder.cli.output import note_missing_kernels, status_of
from rejoinder.io.files.system import spin_briefly
from rejoinder.version import VERSION

app = typer.Typer(
    name="rejoinder",
    help="Sentence embeddings learned from conversations.",
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"]},
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
)

for _function, _examples in (
    (extract.extract, extract.EXAMPLES),
    (train.train, train.EXAMPLES),
    (train.finetune, train.FINETUNE_EXAMPLES),
    (train.adapt, train.ADAPT_EXAMPLES),
    (train.fit_scorer, train.FIT_SCORER_EXAMPLES),
    (models.export, models.EXPORT_EXAMPLES),
    (data.leaks, data.LEAKS_EXAMPLES),
    (evaluate.evaluate, evaluate.EXAMPLES),
    (evaluate.compare, evaluate.COMPARE_EXAMPLES),
    (evaluate.report, evaluate.REPORT_EXAMPLES),
    (models.card, models.CARD_EXAMPLES),
    (evaluate.reproduce, evaluate.REPRODUCE_EXAMPLES),
    (encode.encode, encode.EXAMPLES),
    (use.similarity, use.SIMILARITY_EXAMPLES),
    (search.search, search.EXAMPLES),
    (cluster.cluster, cluster.EXAMPLES),
    (cluster.dedupe, cluster.DEDUPE_EXAMPLES),
    (suggest.suggest, suggest.EXAMPLES),
    (use.rank, use.RANK_EXAMPLES),
    (use.info, use.INFO_EXAMPLES),
    (models.models, models.EXAMPLES),
    (serve.explore, serve.EXPLORE_EXAMPLES),
    (serve.serve, serve.EXAMPLES),
    (forget.forget, forget.EXAMPLES),
    (forget.find_personal, forget.PERSONAL_EXAMPLES),
):
    app.command(epilog=_examples)(_function)  # named as its function
app.add_typer(train.config_commands, name="config")
app.add_typer(data.commands, name="data")
app.add_typer(index.commands, name="index")


def _version(value: bool) -> None:
    if value:
        typer.echo(f"rejoinder {VERSION}")
        note_missing_kernels(again=True)
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
    """Runs the command line and exits. `exits.status_of` lists the exit statuses."""
    spin_briefly()
    if "RANK" in os.environ:  # a worker: our sentence says what ended it, not stack traces in C++
        os.environ.setdefault("TORCH_CPP_LOG_LEVEL", "ERROR")
    sys.exit(status_of(app))
