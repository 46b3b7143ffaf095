"""`rejoinder serve`: an HTTP server with interfaces that other programs already use.

`rejoinder explore`: prepares conversations, and opens a page to search and read them.
`rejoinder mcp`: lets assistants search and read archives, by the Model Context Protocol.
"""

import os
import sys
import time
import webbrowser
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from secrets import token_urlsafe
from socket import socket
from threading import Thread
from typing import TYPE_CHECKING, Annotated

import typer

from rejoinder.cli import options, output
from rejoinder.cli.progress import Bar, encoding_bar
from rejoinder.errors import InputError, RejoinderError, require

if TYPE_CHECKING:
    from fastapi import FastAPI
    from starlette.applications import Starlette

    from rejoinder.conversations.explore import Prepared
    from rejoinder.serve.server import ServerSettings
    from rejoinder.serve.service import Explored, Service


KEY_VARIABLE = "REJOINDER_API_KEY"
HostOption = Annotated[
    str,
    "Address to listen on; 0.0.0.0 lets other machines in. A server of texts then needs a key, and "
    "makes one unless you set it.",
]
ApiKeyFileOption = Annotated[
    Path | None, f"File with the key that requests need. Or set ${KEY_VARIABLE}."
]

_KEY_BYTES = 24


@options.prints(needs={"--texts FILE": ("--columns",)}, excludes=[("--texts", "--index")])
def serve(
    model: Annotated[str | None, typer.Argument(metavar="[MODEL]", show_default=False)] = None,
    model_sha256: options.ModelSha256Option = None,
    port: int = 8080,
    host: HostOption = "127.0.0.1",
    texts: str | None = None,
    columns: options.ColumnsOption = None,
    index: Path | None = None,
    scorer: bool = False,
    scorer_from: options.ScorerFromOption = None,
    api_key_file: ApiKeyFileOption = None,
    allowed_host: list[str] | None = None,
    cors_origin: list[str] | None = None,
    workers: Annotated[int, typer.Option(min=1, max=256)] = 1,
    threads: options.ThreadsOption = None,
    max_batch: int = 4_096,
    max_queue: int = 65_536,
    max_body_bytes: int = 4 << 20,
    max_texts: int = 2_048,
    drain_seconds: float = 8.0,
) -> None:
    """Serve a model over HTTP: the APIs of text-embeddings-inference and OpenAI, and a page.

    Args:
        model: Name from `rejoinder models`, folder such as RUN/model, or https address. Default:
            rejoinder-base.
        port: Port to listen on; 0 takes a free port.
        texts: File of texts, one per line, or an export of conversations, for /search.
        index: Folder of `rejoinder index` or `rejoinder explore`, for /search, with its own model.
        scorer: Let /rerank also score word by word.
        allowed_host: Host that requests may name; repeatable. Default: loopback names with --host
            127.0.0.1, otherwise any.
        cors_origin: Origin whose pages may call the server; repeatable; * is any.
        workers: Number of server processes, each with --threads.
        max_batch: Maximum texts to encode at a time; 1 encodes each request alone.
        max_queue: Maximum waiting texts; beyond that, 429.
        max_body_bytes: Maximum bytes of a request; beyond that, 413.
        max_texts: Maximum texts per request; beyond that, 422.
        drain_seconds: Seconds for requests to finish after SIGTERM.

    Examples:
        rejoinder serve
        rejoinder serve model/ --port 9000 --texts questions.txt
        rejoinder serve --index index/
        rejoinder serve --index slack-export.zip.explore --host 0.0.0.0 --workers 2
        rejoinder serve --scorer
    """
    require("serve", "fastapi", "uvicorn", "httptools", "orjson", "prometheus_client")
    from rejoinder.conversations.explore import SUFFIX, prepared_in
    from rejoinder.index.folder import TextIndex
    from rejoinder.io.files.system import usable_cores
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
        api_key=api_key(api_key_file),
    )
    if workers > 1:
        if texts == "-":
            raise InputError("--workers: each process reads the texts; name a file, not -.")
        threads = threads or max(1, usable_cores() // workers)
    chosen = (
        options.model_folder(model, model_sha256) if index is None or model is not None else None
    )
    ready = None if index is None else prepared_in(index)
    if index is not None and ready is None and TextIndex(index).has_messages:
        output.note(f"run rejoinder explore {index} to add topics and replies to the page")
    served = Served(
        settings, chosen, texts, columns, ready.index if ready else index, ready,
        name=ready.folder.name.removesuffix(SUFFIX) if ready else None,
        scorer=shipped_scorer() if scorer and scorer_from is None else scorer_from,
        threads=threads,
    )  # fmt: skip
    run_server(served, workers=workers)


@dataclass(frozen=True)
class Served:
    """What a server serves; each of its processes reads it."""

    settings: "ServerSettings"
    model: Path | None = None
    """Folder of the model; by default that of the index."""
    texts: str | None = None
    """File of the texts that it searches, if it has no index."""
    columns: str | None = None
    index: Path | None = None
    ready: "Prepared | None" = None
    """What was found in the index."""
    archives: tuple[Path, ...] = ()
    """What assistants search at `/mcp`; by default the index, if the extra is installed."""
    name: str | None = None
    """What the index is of, as the page calls it."""
    scorer: Path | None = None
    """Folder of the scorer that `/rerank` takes, instead of the cosine."""
    threads: int | None = None

    def app(self) -> "FastAPI":
        """Returns the app."""
        from rejoinder.conversations.explore import FILE
        from rejoinder.index.folder import TextIndex
        from rejoinder.index.indexing import place_of_model
        from rejoinder.models.folder import read_model
        from rejoinder.serve.app import create_app
        from rejoinder.serve.service import Latest

        index = None if self.index is None else TextIndex(self.index)
        model = place_of_model(index) if self.model is None and index is not None else self.model
        contents = read_model(model or options.model_folder(None, None))
        texts = () if self.texts is None else [*options.stream_entries(self.texts, self.columns)]
        explored = None
        if self.ready is not None:
            read = partial(read_explored, self.ready, self.name, self.threads)
            explored = Latest(self.ready.folder / FILE, read)
        return create_app(
            contents, self.settings, texts=texts, index=index, scorer=self.scorer,
            explored=explored, assistants=self._assistants(), threads=self.threads,
        )  # fmt: skip

    def _assistants(self) -> "Starlette | None":
        archives = self.archives or ([self.index] if self.index else [])
        if not archives or find_spec("mcp") is None:
            return None
        from rejoinder.serve.mcp import Archive, http_app

        return http_app(map(Archive, archives))

    def run(self, listening: socket) -> None:
        """Runs one of several processes."""
        from rejoinder.serve.server import server_of

        with suppress(KeyboardInterrupt):  # before it serves
            server_of(self.app()).run(sockets=[listening])


def run_server(
    served: Served, started: Callable[[str], None] = lambda _: None, workers: int = 1
) -> None:
    """Runs a server until it is asked to end.

    Args:
        served: What it serves.
        started: Called with its address, after that was printed, when it can answer.
        workers: Number of processes.
    """
    from rejoinder.serve.server import open_socket, run_workers, server_of, shown_host

    settings, made = served.settings, None
    has_texts = served.texts is not None or served.index is not None
    if has_texts and settings.api_key is None and not settings.is_local:
        made = token_urlsafe(_KEY_BYTES)
        served = replace(served, settings=replace(settings, api_key=made))
    with open_socket(settings.host, settings.port) as listening:
        app = served.app()  # with several processes, to say what is wrong only once
        service: Service = app.state.service
        address = f"http://{shown_host(settings.host)}:{listening.getsockname()[1]}"
        address += f"/?key={made}" if made else ""
        show = partial(typer.echo, err=True) if made else output.status_line

        def begin() -> None:
            if service.explored is None:
                show(f"rejoinder: {service.name} at {address}")
            else:
                found = service.explored()
                if found.read:
                    output.status_line(found.read)
                show(f"{found.name} at {address} (Ctrl-C ends it)")
            started(address)
            if has_texts and not settings.is_local:
                has = "this address" if made else "the key"
                output.note(f"anyone with {has} can read {_readable(service)}")

        if workers == 1:
            server_of(app, begin).run(sockets=[listening])
        else:
            run_workers(served.run, listening, workers, begin)


def _readable(service: "Service") -> str:
    """Returns what a server lets others read, in words."""
    from rejoinder.index.reader import MOST_NAMES, between_two

    index = service.index
    if index is None or not (found := index.summary()).authors:
        return _counted(service.searched, "text")
    more = "at least " if len(found.authors) == MOST_NAMES else ""
    said = f"{_counted(found.texts, 'message')} by {more}{_counted(len(found.authors), 'author')}"
    private = sum(between_two(index.segments).values())
    return f"{said}, {private:,} of them in chats of two" if private else said


def _counted(count: int, noun: str) -> str:
    return f"{count:,} {noun}{'s' * (count != 1)}"


def api_key(file: Path | None) -> str | None:
    """Returns the key from a file or the environment; all users would see an argument."""
    key = os.environ.get(KEY_VARIABLE) or None
    if file is None:
        return key
    if key is not None:
        raise InputError(f"both --api-key-file and {KEY_VARIABLE} set an API key; use one of them.")
    try:
        return file.read_text("utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"--api-key-file {file} can't be read: {error}.") from None


@options.prints(
    needs={"--to FILE": ("--only", "--without-private", "--pseudonyms")},
    excludes=[("--to", one) for one in ("--host", "--port", "--api-key-file", "--watch")],
)
def explore(
    source: Annotated[list[Path] | None, typer.Argument(show_default=False)] = None,
    out: Path | None = None,
    columns: options.ColumnsOption = None,
    model: options.ModelOption = None,
    model_sha256: options.ModelSha256Option = None,
    finetune: bool = False,
    minutes: Annotated[float, typer.Option(min=0.01)] = 5.0,
    links: options.LinksOption = None,
    forget_gone: bool = False,
    watch: bool = False,
    port: int = 0,
    host: HostOption = "127.0.0.1",
    api_key_file: ApiKeyFileOption = None,
    browser: Annotated[bool, typer.Option("--browser/--no-browser")] = True,
    to: Path | None = None,
    only: list[str] | None = None,
    without_private: bool = False,
    pseudonyms: Annotated[bool | None, typer.Option("--pseudonyms/--real-names")] = None,
    threads: options.ThreadsOption = None,
) -> None:
    """Prepare conversations, and open a page to search them. Only --host lets others in.

    Args:
        source: Export of conversations, file of texts, folder of `rejoinder extract` or of
            `rejoinder index`. Several exports become one archive. Default: a made-up export.
        out: Folder that keeps the prepared conversations. Default: next to the (first) SOURCE,
            SOURCE.explore.
        finetune: Fine-tune the model on these conversations first; it is used if it got better.
        minutes: About how long to train with --finetune.
        forget_gone: Drop messages from earlier starts that SOURCE no longer has.
        watch: Pick up changes in SOURCE while the page is open.
        port: Port of the page; 0 takes a free port.
        browser: Open the page in a browser.
        to: HTML file to write instead of opening a page. It searches without rejoinder or a
            network.
        only: With --to: write only the messages of this channel. Repeatable.
        without_private: With --to: leave out channels with at most two authors.
        pseudonyms: With --to: call people Person 1, Person 2 and so on, and mask addresses and
            numbers. Default: if there are channels with at most two authors.

    Examples:
        rejoinder explore
        rejoinder explore slack-export.zip
        rejoinder explore slack-export.zip mails.mbox --out archive/
        rejoinder explore slack-export.zip --finetune
        rejoinder explore tickets.csv --columns text=subject,id=number
        rejoinder explore index/ --port 9000
        rejoinder explore slack-export.zip --host 0.0.0.0
        rejoinder explore slack-export.zip --to archive.html
    """
    require(
        "explore", "polars", "sklearn", "graspologic_native", "fastapi", "uvicorn",
        "httptools", "orjson", "prometheus_client",
    )  # fmt: skip
    if finetune:
        require("train", "torch", "pydantic")
    from rejoinder.conversations.explore import MADE_UP, SUFFIX, Watch
    from rejoinder.conversations.explore import explore as prepare
    from rejoinder.conversations.one_file import Choice, write_one_file
    from rejoinder.index.folder import TextIndex
    from rejoinder.index.lists import LEAST_ROWS, PACKAGE
    from rejoinder.serve.server import ServerSettings

    settings = ServerSettings(host=host, port=port, api_key=api_key(api_key_file))
    if not source:
        source = [MADE_UP]
        out = out or Path(f"{MADE_UP.name}{SUFFIX}")
        output.note("these messages are made up; name your own export to search it")
    if piped := next(filter(options.is_stream, map(str, source)), None):
        raise InputError(f"{piped} is a pipe or standard input; write the messages to a file.")
    name = source[0].name + (f" and {len(source) - 1} more" if source[1:] else "")
    place = options.given_model(model, model_sha256)
    prepared = partial(
        prepare, *source, out=out, model=place, columns=columns, finetune=finetune, minutes=minutes,
        links=links, threads=threads,
    )  # fmt: skip
    with Bar("") as bar, encoding_bar() as encoding:
        shown = Watch(lambda stage, done, total: bar.show(stage, done, total, ""), encoding)
        ready = prepared(forget_gone=forget_gone, watch=shown)
    output.note_left_out(ready.left_out)
    if not ready.better:
        output.note("fine-tuning did not find replies better, so the original model is used")
    _say_changes(ready, forgotten=forget_gone)
    if ready.fresh:
        output.status_line(f"wrote {ready.folder}, which the next start opens at once")

    if to is not None:
        with Bar("") as bar:
            shown = Watch(lambda stage, done, total: bar.show(stage, done, total, ""))
            choice = Choice(only or (), without_private, pseudonyms)
            written = write_one_file(ready, to, name, choice, shown)
        private = f", {written.private:,} of them in chats of two" if written.private else ""
        names = "pseudonyms" if written.pseudonyms else "real names"
        told = f"{_counted(written.messages, 'message')}{private}, with {names}"
        output.status_line(f"wrote {to}: {told}, {to.stat().st_size / 1e6:,.1f} MB")
        return

    def started(address: str) -> None:
        if browser and _has_screen():
            webbrowser.open(address)
        if watch:
            Thread(target=_keep_up, args=[prepared], daemon=True).start()

    count = len(TextIndex(ready.index))
    if ready.fresh and count >= LEAST_ROWS and find_spec(PACKAGE) is None:
        output.note(
            f"a search compares all {count:,} texts; FAISS (rejoinder[index]) makes it fast"
        )
    served = Served(settings, index=ready.index, ready=ready, name=name, threads=threads)
    run_server(served, started)


def _say_changes(ready: "Prepared", *, forgotten: bool = False) -> None:
    if (changes := ready.changes) is not None:
        kept = "" if forgotten or not changes.gone else "; these are kept, see --forget-gone"
        new, changed, gone = changes.new, changes.changed, changes.gone
        output.status_line(f"{new:,} new, {changed:,} changed, {gone:,} gone{kept}")


_PAUSE = 5.0
"""Seconds between two looks at what is explored."""


def _keep_up(prepare: Callable[[], "Prepared"]) -> None:
    """Prepares what changed, again and again. What can't be read is told once."""
    told = ""
    while True:
        time.sleep(_PAUSE)
        try:
            _say_changes(prepare())
            told = ""
        except RejoinderError as error:  # such as half of a file that is being copied
            if str(error) != told:
                told = str(error)
                output.note(told)


def read_explored(ready: "Prepared", name: str | None, threads: int | None) -> "Explored":
    """Returns what was found in the conversations with a name."""
    from rejoinder.conversations.explore import ASKED, POINTS, TOPICS, read_facts
    from rejoinder.conversations.suggest import Suggester
    from rejoinder.serve.service import Explored

    facts = read_facts(ready.folder)
    asked, topics, points = ((ready.folder / one).read_bytes() for one in (ASKED, TOPICS, POINTS))
    suggest = Suggester(ready.index, threads) if facts.suggests else None
    return Explored(name, str(ready.index), facts.read, asked, topics, points, facts.ids, suggest)


def _has_screen() -> bool:
    """Returns whether a browser would open in a window, not in this terminal."""
    named = {"DISPLAY", "WAYLAND_DISPLAY"} & {*os.environ}
    return sys.stderr.isatty() and (sys.platform != "linux" or bool(named))


@options.prints(needs={"--port N": ("--host", "--api-key-file", "--allowed-host")})
def mcp(
    index: Annotated[list[Path], typer.Argument()],
    port: int | None = None,
    host: HostOption = "127.0.0.1",
    api_key_file: ApiKeyFileOption = None,
    allowed_host: list[str] | None = None,
) -> None:
    """Let assistants search and read archives, by the Model Context Protocol (MCP).

    Args:
        index: Indexes, or exports that `rejoinder explore` has prepared.
        port: Answer over HTTP at /mcp on this port instead of standard input and output.
        allowed_host: Host that requests may name; repeatable, see `rejoinder serve`.

    Examples:
        rejoinder mcp slack-export.zip
        rejoinder mcp slack-export.zip mails/index --port 8080
    """
    require("mcp", "mcp", "fastapi", "httptools", "orjson", "prometheus_client")
    from rejoinder.serve.mcp import Archive, answer_on_stdio
    from rejoinder.serve.server import ServerSettings

    archives = [*map(Archive, index)]
    if port is None:
        answer_on_stdio(archives)
        return
    settings = ServerSettings(
        host=host, port=port, api_key=api_key(api_key_file), allowed_hosts=tuple(allowed_host or ())
    )
    first, places = archives[0], tuple(index)
    served = Served(
        settings, index=first.index.folder, ready=first.ready, archives=places, name=first.name
    )
    run_server(served)
