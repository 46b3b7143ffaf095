"""`rejoinder reproduce`: the paper's tables and figures with our numbers beside the published."""

from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from rejoinder.training.loop import Reporter

_EPILOG = """Examples:

rejoinder reproduce --data ../shared/data --budget smoke --out report/

rejoinder reproduce --data ../shared/data --encoder dan --budget standard --out report/

The same command again goes on where it stopped.
"""


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("reproduce", epilog=_EPILOG)(reproduce)


def reproduce(
    data: Annotated[Path, typer.Option(help="Folder of data sets and conversations.")],
    out: Annotated[Path, typer.Option(help="Folder of the report; its work/ holds the models.")],
    encoder: Annotated[str, typer.Option(help="dan or transformer.")] = "dan",
    budget: Annotated[
        str,
        typer.Option(help="smoke (a minute), quick (ten), standard (two hours), full (a GPU)."),
    ] = "quick",
    seed: Annotated[int, typer.Option(min=0, help="Seed of the trainings.")] = 1,
    device: Annotated[str, typer.Option(help="auto, cpu or cuda.")] = "auto",
    threads: Annotated[
        int | None, typer.Option(min=1, help="CPU threads; default: all cores.")
    ] = None,
) -> None:
    """Print every table and figure of Yang et al. 2018 with ours beside the published."""
    from rejoinder.api.pairs import response_pairs
    from rejoinder.cli.output import stderr
    from rejoinder.cli.progress import TrainingProgress
    from rejoinder.files.claims import claim
    from rejoinder.reproduce.budgets import budget_of
    from rejoinder.reproduce.work import Options, Work
    from rejoinder.reproduce.writer import write_reproduction

    options = Options(data, out, encoder, budget_of(budget), seed, device, threads)

    def listen(name: str, steps: int) -> "AbstractContextManager[Reporter]":
        stderr().print(f"training {name}", markup=False)
        return TrainingProgress(steps)

    with claim(out):
        work = Work(options, listen, response_pairs)
        write_reproduction(work.run(), options)
    typer.echo((out / "tables.md").read_text("utf-8"))
    stderr().print(f"{out / 'index.html'} shows it with the figures", markup=False)
