"""`rejoinder reproduce`: the tables and figures of the paper, with our numbers added."""

from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rejoinder.cli.options import ThreadsOption, epilog, prints
from rejoinder.cli.output import asked_for, status_line
from rejoinder.errors import require

if TYPE_CHECKING:
    from rejoinder.training.loop.checkpoint import Reporter

EXAMPLES = epilog(
    "rejoinder reproduce --data data --budget smoke --out report/",
    "rejoinder reproduce --data data --budget standard --out report/",
    "rejoinder reproduce --data data --also runs/dan/model --out report/",
)


@prints("json")
def reproduce(
    data: Annotated[Path, "Folder of data sets and conversations."],
    out: Annotated[Path, "Folder of the report. Its folder work/ holds the models."],
    encoder: Annotated[str, "dan or transformer."] = "dan",
    budget: Annotated[
        str,
        "Amount of work: smoke (a minute), quick (ten minutes), standard (half an hour), "
        "full (needs a GPU).",
    ] = "quick",
    seed: Annotated[int, typer.Option(min=0, help="Seed of all training runs.")] = 1,
    also: Annotated[
        list[Path] | None,
        "Folder of a trained model to add rows for. May be given again.",
    ] = None,
    device: Annotated[str, "auto, cpu or cuda."] = "auto",
    threads: ThreadsOption = None,
) -> None:
    """Print every table and figure of Yang et al. 2018 with our numbers added.

    --json prints results.json, all results with their settings, instead of the tables.
    Repeat the command to continue an interrupted reproduction.
    """
    require("train", "polars", "torch", "pydantic")
    from rejoinder.cli.progress import TrainingProgress
    from rejoinder.io.files.claims import claim
    from rejoinder_papers.budgets import budget_of
    from rejoinder_papers.work import Options, Work
    from rejoinder_papers.writer import write_reproduction

    require("report", "jinja2", "matplotlib")  # missed now, not after hours of training
    options = Options(
        data, out, encoder, budget_of(budget), seed, device, threads, tuple(also or ())
    )

    def training_progress(name: str, steps: int) -> "AbstractContextManager[Reporter]":
        status_line(f"training {name}")
        return TrainingProgress(steps)

    with claim(out):
        work = Work(options, training_progress)
        work.run()
        write_reproduction(work)
    typer.echo((out / ("results.json" if asked_for("json") else "tables.md")).read_text("utf-8"))
    status_line(f"The page with the figures is {out / 'index.html'}.")
