"""`rejoinder serve`: an HTTP server with interfaces that other programs already use."""

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rejoinder.cli import options
from rejoinder.cli.messages import stream_entries
from rejoinder.cli.models import model_folder
from rejoinder.cli.output import note
from rejoinder.errors import InputError, require

if TYPE_CHECKING:
    from rejoinder.corpus.texts import Entry
    from rejoinder.index.folder import TextIndex
    from rejoinder.serve.server import ServerSettings
    from rejoinder.serve.service import Explored

KEY_VARIABLE = "REJOINDER_API_KEY"

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
    host: Annotated[str, "Address to listen on; 0.0.0.0 lets other machines in."] = "127.0.0.1",
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
    api_key_file: Annotated[
        Path | None,
        f"File with the key that requests need. Or set ${KEY_VARIABLE}.",
    ] = None,
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
    entries = list(stream_entries(texts, columns)) if texts is not None else []
    opened = None if index is None else TextIndex(index)
    chosen = model_folder(model, model_sha256) if opened is None or model is not None else None
    run_server(
        settings, None, model=chosen, texts=entries, index=opened,
        scorer=shipped_scorer() if scorer and scorer_from is None else scorer_from,
        threads=threads,
    )  # fmt: skip


def run_server(
    settings: "ServerSettings",
    started: Callable[[str], None] | None,
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
        started: Called with its address when it can answer. Default: prints it.
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
    from rejoinder.serve.server import open_socket, server_of

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
        host = f"[{settings.host}]" if ":" in settings.host else settings.host
        address = f"http://{host}:{listening.getsockname()[1]}"

        def begin() -> None:
            if started is None:
                note(f"{contents.name} at {address}")
            else:
                started(address)

        server_of(app, begin).run(sockets=[listening])


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
