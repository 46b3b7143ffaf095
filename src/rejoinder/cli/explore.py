"""`rejoinder explore`: prepares conversations, and opens a page to search and read them."""

import os
import sys
import webbrowser
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rejoinder.cli.models import given_model
from rejoinder.cli.options import (
    ColumnsOption,
    ModelOption,
    ModelSha256Option,
    ThreadsOption,
    epilog,
    prints,
)
from rejoinder.cli.output import note, note_left_out, status_line
from rejoinder.cli.serve import run_server
from rejoinder.errors import require

if TYPE_CHECKING:
    from rejoinder.conversations.explore import Prepared
    from rejoinder.serve.service import Explored

EXAMPLES = epilog(
    "rejoinder explore slack-export.zip",
    "rejoinder explore slack-export.zip --finetune",
    "rejoinder explore tickets.csv --columns text=subject,id=number",
    "rejoinder explore index/ --port 9000",
)


@prints()
def explore(
    source: Annotated[
        Path,
        typer.Argument(
            help="Export of conversations, file of texts, folder of `rejoinder extract` or of "
            "`rejoinder index`.",
        ),
    ],
    out: Annotated[
        Path | None,
        "Folder that keeps the prepared conversations. Default: SOURCE.explore, next to SOURCE.",
    ] = None,
    columns: ColumnsOption = None,
    model: ModelOption = None,
    model_sha256: ModelSha256Option = None,
    finetune: Annotated[
        bool, "Go on training the model on these conversations first; it is used if it got better."
    ] = False,
    minutes: Annotated[
        float, typer.Option(min=0.01, help="About how long to train with --finetune.")
    ] = 5.0,
    port: Annotated[int, "Port of the page on this machine; 0 takes a free one."] = 0,
    browser: Annotated[
        bool, typer.Option("--browser/--no-browser", help="Open the page in a browser.")
    ] = True,
    threads: ThreadsOption = None,
) -> None:
    """Prepare conversations, and open a page to search them. Nothing leaves this machine."""
    require(
        "explore", "polars", "sklearn", "graspologic_native", "fastapi", "uvicorn",
        "httptools", "orjson", "prometheus_client",
    )  # fmt: skip
    if finetune:
        require("train", "torch", "pydantic")
    from rejoinder.cli.progress import Bar, encoding_bar
    from rejoinder.conversations.explore import Watch
    from rejoinder.conversations.explore import explore as prepare
    from rejoinder.index.folder import TextIndex
    from rejoinder.index.lists import LEAST_ROWS, PACKAGE
    from rejoinder.serve.server import ServerSettings

    settings = ServerSettings(port=port)
    place = given_model(model, model_sha256)
    with Bar("") as bar, encoding_bar() as encoding:
        watch = Watch(lambda stage, done, total: bar.show(stage, done, total, ""), encoding)
        ready = prepare(
            source, out=out, model=place, columns=columns, finetune=finetune, minutes=minutes,
            threads=threads, watch=watch,
        )  # fmt: skip
    note_left_out(ready.left_out)
    if not ready.better:
        note("fine-tuning did not find replies better, so the model is used as it was")
    if ready.fresh:
        status_line(f"wrote {ready.folder}, which the next start opens at once")

    explored = read_explored(ready, source.name, threads)

    def started(address: str) -> None:
        if explored.read:
            status_line(explored.read)
        status_line(f"{source.name} at {address} (Ctrl-C ends it)")
        if browser and _has_screen():
            webbrowser.open(address)

    index = TextIndex(ready.index)
    if ready.fresh and len(index) >= LEAST_ROWS and find_spec(PACKAGE) is None:
        note(
            f"a search compares all {len(index):,} texts; with FAISS (pip install "
            "'rejoinder[index]'), one of an index that is made anew compares few"
        )
    run_server(settings, started, index=index, explored=explored, threads=threads)


def read_explored(ready: "Prepared", name: str, threads: int | None = None) -> "Explored":
    """Returns what was found in the conversations with a name."""
    from rejoinder.conversations.explore import ASKED, POINTS, TOPICS, read_facts
    from rejoinder.conversations.suggest import Suggester
    from rejoinder.serve.service import Explored

    facts = read_facts(ready.folder)
    return Explored(
        name,
        str(ready.index),
        asked=(ready.folder / ASKED).read_bytes(),
        topics=(ready.folder / TOPICS).read_bytes(),
        points=(ready.folder / POINTS).read_bytes(),
        read=facts.read,
        ids=facts.ids,
        suggest=Suggester(ready.index, threads) if facts.suggests else None,
    )


def _has_screen() -> bool:
    """Returns whether a browser would open in a window, not in this terminal."""
    named = {"DISPLAY", "WAYLAND_DISPLAY"} & {*os.environ}
    return sys.stderr.isatty() and (sys.platform != "linux" or bool(named))
