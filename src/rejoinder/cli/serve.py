"""`rejoinder serve`: an HTTP server with interfaces that other programs already use.

`rejoinder explore`: prepares conversations, and opens a page to search and read them.
"""

import os
import sys
import webbrowser
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from secrets import token_urlsafe
from typing import TYPE_CHECKING, Annotated

import typer

from rejoinder.cli import messages, options, output
from rejoinder.cli.models import given_model, model_folder
from rejoinder.errors import InputError, require

if TYPE_CHECKING:
    from rejoinder.conversations.explore import Prepared
    from rejoinder.corpus.texts import Entry
    from rejoinder.index.folder import TextIndex
    from rejoinder.serve.server import ServerSettings
    from rejoinder.serve.service import Explored


KEY_VARIABLE = "REJOINDER_API_KEY"
HostOption = Annotated[
    str,
    "Address to listen on; 0.0.0.0 lets other machines in. A server of texts then has a key, which "
    "is made if none is given.",
]
ApiKeyFileOption = Annotated[
    Path | None, f"File with the key that requests need. Or set ${KEY_VARIABLE}."
]

_KEY_BYTES = 24

EXAMPLES = options.epilog(
    "rejoinder serve",
    "rejoinder serve model/ --port 9000 --texts questions.txt",
    "rejoinder serve --index index/",
    "rejoinder serve --scorer",
)


@options.prints(needs={"--texts FILE": ("--columns",)}, excludes=[("--texts", "--index")])
def serve(
    model: Annotated[
        str | None,
        typer.Argument(
            metavar="[MODEL]",
            help="Name that `rejoinder models` lists, folder such as RUN/model, or https address. "
            "Default: rejoinder-base.",
            show_default=False,
        ),
    ] = None,
    model_sha256: options.ModelSha256Option = None,
    port: Annotated[int, "Port to listen on; 0 takes a free one."] = 8080,
    host: HostOption = "127.0.0.1",
    texts: Annotated[
        str | None,
        "File of texts, one per line, or an export of conversations, which /search searches.",
    ] = None,
    columns: options.ColumnsOption = None,
    index: Annotated[
        Path | None,
        "Folder of `rejoinder index`, which /search searches, with its model.",
    ] = None,
    scorer: Annotated[bool, "Let /rerank score by the words one by one, too."] = False,
    scorer_from: options.ScorerFromOption = None,
    api_key_file: ApiKeyFileOption = None,
    allowed_host: Annotated[
        list[str] | None,
        "Host that requests may name; repeatable. Default: names of the loopback with "
        "--host 127.0.0.1, otherwise any.",
    ] = None,
    cors_origin: Annotated[
        list[str] | None,
        "Origin whose pages may call the server; repeatable; * is any.",
    ] = None,
    threads: options.ThreadsOption = None,
    max_batch: Annotated[
        int, "Most texts to encode at a time; 1 encodes each request alone."
    ] = 4_096,
    max_queue: Annotated[int, "Most waiting texts; beyond: 429."] = 65_536,
    max_body_bytes: Annotated[int, "Most bytes of a request; beyond: 413."] = 4 << 20,
    max_texts: Annotated[int, "Most texts of a request; beyond: 422."] = 2_048,
    drain_seconds: Annotated[float, "Seconds for requests to finish after SIGTERM."] = 8.0,
) -> None:
    """Serve a model over HTTP: the routes of text-embeddings-inference, of OpenAI, and a page."""
    require("serve", "fastapi", "uvicorn", "httptools", "orjson", "prometheus_client")
    from rejoinder.index.folder import TextIndex
    from rejoinder.scoring.scorer import shipped_scorer
    from rejoinder.serve.server import ServerSettings

    settings = ServerSettings(
        host=host,
        port=port,
        max_batch=max_batch,
        max_queue=max_queue,
        max_body_bytes=max_body_bytes,
        max_texts=max_texts,
        drain_seconds=drain_seconds,
        cors_origins=tuple(cors_origin or ()),
        allowed_hosts=tuple(allowed_host or ()),
        api_key=_api_key(api_key_file),
    )
    entries = list(messages.stream_entries(texts, columns)) if texts is not None else []
    opened = None if index is None else TextIndex(index)
    chosen = model_folder(model, model_sha256) if opened is None or model is not None else None
    run_server(
        settings, model=chosen, texts=entries, index=opened,
        scorer=shipped_scorer() if scorer and scorer_from is None else scorer_from,
        threads=threads,
    )  # fmt: skip


def run_server(
    settings: "ServerSettings",
    started: Callable[[str], None] = lambda _: None,
    *,
    model: Path | None = None,
    texts: "Sequence[Entry]" = (),
    index: "TextIndex | None" = None,
    scorer: Path | None = None,
    explored: "Explored | None" = None,
    threads: int | None = None,
) -> None:
    """Runs a server until it is asked to end.

    Args:
        settings: Its settings.
        started: Called with its address, after that was printed, when it can answer.
        model: Folder of the model; by default that of the index.
        texts: What it searches, if it has no index.
        index: The index that it searches.
        scorer: Folder of the scorer that `/rerank` takes, instead of the cosine.
        explored: What was found in the index.
        threads: CPU threads of the encoder.
    """
    from rejoinder.index.indexing import place_of_model, refuse_other_model
    from rejoinder.models.folder import read_model
    from rejoinder.serve.app import create_app
    from rejoinder.serve.server import open_socket, server_of, shown_host

    readable = "" if settings.is_local else _readable(index, len(texts))
    made = token_urlsafe(_KEY_BYTES) if readable and settings.api_key is None else None
    if made is not None:
        settings = replace(settings, api_key=made)
    with open_socket(settings.host, settings.port) as listening:
        if model is None and index is not None:
            model = place_of_model(index)
        contents = read_model(model or model_folder(None, None))
        if index is not None:
            refuse_other_model(index, contents.describe())
        app = create_app(
            contents, settings, texts=texts, index=index, scorer=scorer, explored=explored,
            threads=threads,
        )  # fmt: skip
        address = f"http://{shown_host(settings.host)}:{listening.getsockname()[1]}"
        address += f"/?key={made}" if made else ""
        show = partial(typer.echo, err=True) if made else output.status_line

        def begin() -> None:
            if explored is None:
                show(f"rejoinder: {contents.name} at {address}")
            else:
                if explored.read:
                    output.status_line(explored.read)
                show(f"{explored.name} at {address} (Ctrl-C ends it)")
            started(address)
            if readable:
                has = "this address" if made else "the key"
                output.note(f"whoever has {has} can read {readable}")

        server_of(app, begin).run(sockets=[listening])


def _readable(index: "TextIndex | None", texts: int) -> str:
    """Returns what a server lets others read, in words; empty if it has no texts."""
    from rejoinder.index.reader import MOST_NAMES, between_two

    if index is None:
        return _counted(texts, "text") if texts else ""
    found = index.summary()
    if not found.authors:
        return _counted(found.texts, "text")
    more = "at least " if len(found.authors) == MOST_NAMES else ""
    said = f"{_counted(found.texts, 'message')} by {more}{_counted(len(found.authors), 'author')}"
    private = between_two(index.segments)
    return f"{said}, {private:,} of them in chats of two" if private else said


def _counted(count: int, noun: str) -> str:
    return f"{count:,} {noun}{'s' * (count != 1)}"


def _api_key(file: Path | None) -> str | None:
    """Returns the key from a file or the environment; all users would see an argument."""
    key = os.environ.get(KEY_VARIABLE) or None
    if file is None:
        return key
    if key is not None:
        raise InputError(f"both --api-key-file and {KEY_VARIABLE} give an API key; give one.")
    try:
        return file.read_text("utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"--api-key-file {file} can't be read: {error}.") from None


EXPLORE_EXAMPLES = options.epilog(
    "rejoinder explore slack-export.zip",
    "rejoinder explore slack-export.zip --finetune",
    "rejoinder explore tickets.csv --columns text=subject,id=number",
    "rejoinder explore index/ --port 9000",
    "rejoinder explore slack-export.zip --host 0.0.0.0",
)


@options.prints()
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
    columns: options.ColumnsOption = None,
    model: options.ModelOption = None,
    model_sha256: options.ModelSha256Option = None,
    finetune: Annotated[
        bool, "Go on training the model on these conversations first; it is used if it got better."
    ] = False,
    minutes: Annotated[
        float, typer.Option(min=0.01, help="About how long to train with --finetune.")
    ] = 5.0,
    forget_gone: Annotated[
        bool, "Leave out messages of an earlier start that SOURCE no longer has."
    ] = False,
    port: Annotated[int, "Port of the page; 0 takes a free one."] = 0,
    host: HostOption = "127.0.0.1",
    api_key_file: ApiKeyFileOption = None,
    browser: Annotated[
        bool, typer.Option("--browser/--no-browser", help="Open the page in a browser.")
    ] = True,
    threads: options.ThreadsOption = None,
) -> None:
    """Prepare conversations, and open a page to search them. Only --host lets others in."""
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

    settings = ServerSettings(host=host, port=port, api_key=_api_key(api_key_file))
    place = given_model(model, model_sha256)
    with Bar("") as bar, encoding_bar() as encoding:
        watch = Watch(lambda stage, done, total: bar.show(stage, done, total, ""), encoding)
        ready = prepare(
            source, out=out, model=place, columns=columns, finetune=finetune, minutes=minutes,
            threads=threads, forget_gone=forget_gone, watch=watch,
        )  # fmt: skip
    output.note_left_out(ready.left_out)
    if not ready.better:
        output.note("fine-tuning did not find replies better, so the model is used as it was")
    if (changes := ready.changes) is not None:
        kept = "" if forget_gone or not changes.gone else "; these are kept, see --forget-gone"
        output.status_line(
            f"{changes.new:,} new, {changes.changed:,} changed, {changes.gone:,} gone{kept}"
        )
    if ready.fresh:
        output.status_line(f"wrote {ready.folder}, which the next start opens at once")

    explored = read_explored(ready, source.name, threads)

    def started(address: str) -> None:
        if browser and _has_screen():
            webbrowser.open(address)

    index = TextIndex(ready.index)
    if ready.fresh and len(index) >= LEAST_ROWS and find_spec(PACKAGE) is None:
        output.note(
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
