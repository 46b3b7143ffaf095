"""Encoders made from functions, sentence-transformers models, files of vectors, and servers.

Servers have OpenAI's interface or the one of text-embeddings-inference. Requests are JSON, and are
repeated if they may succeed later. Errors explain what went wrong.
"""

import importlib
import json
import math
import os
import re
import ssl
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from http import HTTPStatus
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import SplitResult, urlsplit

import numpy as np
import polars as pl
from polars.exceptions import PanicException, PolarsError

from rejoinder.errors import InputError, require
from rejoinder.evaluation import encoding
from rejoinder.evaluation.vector_cache import VectorCache
from rejoinder.io.files.hashed import refuse_constant, sha256_of, sha256_of_folder
from rejoinder.io.formats.text_lines import replace_surrogates
from rejoinder.protocols import Embeddings, Encodes
from rejoinder.version import VERSION

if TYPE_CHECKING:
    import httpx
    from tenacity import RetryCallState


class Called:
    """An encoder that calls a function from sentences to vectors."""

    def __init__(self, encode: Callable[[Sequence[str]], Any], name: str) -> None:
        self._encode = encode
        self._name = name

    def describe(self) -> dict[str, object]:
        """Returns the name."""
        return {"name": self._name}

    def encode(self, sentences: Sequence[str]) -> Embeddings:
        """Returns the function's result, as an array if possible. The caller checks it."""
        returned: Embeddings = self._encode(list(sentences))
        try:
            return np.asarray(returned)
        except (ValueError, TypeError, RuntimeError):  # ragged rows, tensors on a device
            return returned


def open_function(reference: str) -> Encodes:
    """Returns the encoder at `MODULE:NAME`: a function, or an object with `encode`.

    Modules in the working folder can be imported, too. A class is called without arguments.

    Raises:
        InputError: the module or the name does not exist, or it is not an encoder.
    """
    module, _, name = reference.partition(":")
    form = "write py:MODULE:NAME, such as py:my_module:encode."
    if not (module and name):
        raise InputError(f"py:{reference} is not a function; {form}")
    sys.path.insert(0, str(Path.cwd()))
    try:
        target = getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError, ValueError) as error:
        raise InputError(f"py:{reference} is not a function: {error}; {form}") from None
    except Exception as error:
        if os.environ.get(encoding.TRACEBACK):
            raise
        raise InputError(f"py:{reference}: the module {module} {encoding.raised(error)}") from error
    finally:
        sys.path.pop(0)
    if isinstance(target, type):
        target = encoding.call(target, who=f"py:{reference}: the class {name}")
    if isinstance(target, Encodes):
        return target
    if not callable(target):
        raise InputError(
            f"py:{reference} is a {type(target).__name__}; a function, or an object with a method "
            "encode, is needed."
        )
    return Called(target, f"py:{reference}")


class SentenceTransformers:
    """An encoder that calls a model of the sentence-transformers library."""

    def __init__(self, name: str) -> None:
        try:
            from sentence_transformers import SentenceTransformer
        except ImportError:
            raise InputError("st: needs `pip install sentence-transformers`.") from None
        try:
            self._model: Any = SentenceTransformer(name)
        except (OSError, ValueError) as error:
            reason = str(error).split("\n", maxsplit=1)[0]
            raise InputError(f"st:{name} can't be loaded: {reason}.") from None
        self._name = name

    def describe(self) -> dict[str, object]:
        """Returns the name, the number of tokens read per text, and a folder's SHA-256."""
        most = self._model.max_seq_length  # infinite for StaticEmbedding
        most = None if most == math.inf else most
        about = {"name": f"st:{self._name}", "max_tokens": most}
        folder = Path(self._name)
        return {**about, "sha256": sha256_of_folder(folder)} if folder.is_dir() else about

    def encode(self, sentences: Sequence[str]) -> Embeddings:
        """Returns (N, D) float32 embeddings."""
        return np.asarray(self._model.encode(list(sentences), show_progress_bar=False), np.float32)


class StoredVectors:
    """An encoder that looks up texts in a file with the columns `text` and `embedding`."""

    def __init__(self, path: str | Path) -> None:
        self._path = Path(path)
        try:
            content = self._path.read_bytes()
            json_lines = self._path.suffix in (".jsonl", ".ndjson")
            frame = pl.read_ndjson(content) if json_lines else pl.read_parquet(content)
            texts = frame.get_column("text").to_list()
            self._vectors = np.array(frame.get_column("embedding").to_list(), np.float32)
            if self._vectors.ndim != 2 or not self._vectors.size:
                raise ValueError(f"embeddings of shape {self._vectors.shape}")
        except (OSError, ValueError, PolarsError, PanicException) as error:
            raise InputError(
                f"{path} can't be read as vectors by text: {str(error).splitlines()[0]}; Parquet "
                "or JSON lines with the columns text and embedding are needed."
            ) from None
        self._index: dict[str, int] = {}
        for row, text in enumerate(texts):
            first = self._index.setdefault(text, row)
            if first != row and not np.array_equal(self._vectors[first], self._vectors[row]):
                raise InputError(f"{path}: rows {first} and {row} differ for {text[:60]!r}.")
        self._sha256 = sha256_of(content)

    def describe(self) -> dict[str, object]:
        """Returns the name of the file, the dimension and the SHA-256."""
        dim = int(self._vectors.shape[1])
        return {"name": f"vectors:{self._path.name}", "dim": dim, "sha256": self._sha256}

    def encode(self, sentences: Sequence[str]) -> Embeddings:
        """Returns (N, D) float32 embeddings.

        Raises:
            InputError: a sentence has no vector.
        """
        missing = [text for text in sentences if text not in self._index]
        if missing:
            count = f"{len(missing)} of {len(sentences)} sentences"
            raise InputError(f"{self._path} has no vector for {count}, as {missing[0][:60]!r}.")
        return self._vectors[[self._index[text] for text in sentences]]


_TIMEOUT = 60.0
"""Seconds without a byte."""
_LOOPBACK = ("localhost", "127.0.0.1", "::1")
_TOO_MUCH = (400, 413, 422)
"""Statuses that may mean too many texts in a request; it is then sent in halves."""


@dataclass(frozen=True)
class Wire:
    """How to request embeddings from a kind of server."""

    prefix: str
    """Prefix of the encoder's name."""
    texts: int
    """Largest number of texts in a request."""
    keys: tuple[str, ...]
    """Environment variables for the key; the first that is set is used."""
    route: Callable[[str], str]
    """Returns the address to request, from the address in the name, without a slash at its end."""
    body: Callable[[str, Sequence[str]], Mapping[str, Any]]
    """Returns the request for a model and texts."""
    rows: Callable[[Any, int], Any]
    """Returns the embeddings in an answer, in the order of the given number of texts. Raises
    InputError, or KeyError or TypeError if the answer has another form."""


def _openai_rows(answer: Any, count: int) -> list[Any]:
    items = answer["data"]
    indices = [item["index"] for item in items]
    if sorted(indices) != list(range(count)):
        raise InputError(f"the server sent {len(indices):,} embeddings for {count:,} texts.")
    by_index = {item["index"]: item["embedding"] for item in items}
    return [by_index[index] for index in range(count)]


OPENAI = Wire(
    prefix="openai",
    texts=256,
    keys=("REJOINDER_API_KEY", "OPENAI_API_KEY"),
    # clients of OpenAI take the address with /v1, and people give it without
    route=lambda address: f"{address}{'' if urlsplit(address).path else '/v1'}/embeddings",
    body=lambda model, texts: {"model": model, "input": list(texts), "encoding_format": "float"},
    rows=_openai_rows,
)
TEI = Wire(
    prefix="tei",
    texts=32,  # what the server allows by default
    keys=("REJOINDER_API_KEY",),
    route=lambda address: f"{address}/embed",
    body=lambda _model, texts: {"inputs": list(texts), "normalize": True, "truncate": True},
    rows=lambda answer, _count: answer,
)


class RemoteEncoder:
    """An encoder that requests embeddings from a server, a batch at a time.

    Broken connections and the answers 408, 429 and 5xx are retried later. If the server needs
    a key, it is read from the environment. It is sent over https, or to this machine.
    """

    def __init__(self, wire: Wire, model: str, address: str) -> None:
        """Creates the encoder without a request.

        Raises:
            InputError: the address is not valid.
            MissingExtraError: a package for requests is not installed.
        """
        require("data", "httpx", "tenacity")
        name = f"{wire.prefix}:{model}@{address}" if model else f"{wire.prefix}:{address}"
        parts = _checked_address(address)
        self._name, self._wire, self._model = name, wire, model
        self._route = wire.route(address.rstrip("/"))
        self._batch = wire.texts
        self._dim: int | None = None
        self._cache: VectorCache | None = None
        key = next((os.environ[name] for name in wire.keys if os.environ.get(name)), None)
        safe = parts.scheme == "https" or parts.hostname in _LOOPBACK
        self._key = key if safe else None

    def describe(self) -> dict[str, object]:
        """Returns the name, which is all that is known about the server's model."""
        return {"name": self._name}

    def cache_in(self, folder: Path) -> None:
        """Stores embeddings in a folder as soon as they arrive, and reads them from there."""
        # the model on the server may have changed under the same name
        name = json.dumps(encoding.identity(self), sort_keys=True)
        self._cache = VectorCache(folder / "remote.sqlite", name)

    def encode(self, sentences: Sequence[str]) -> Embeddings:
        """Returns (N, D) float32 embeddings.

        Raises:
            InputError: the server can't be reached, answers with an error, or does not send
                finite vectors of one dimension, one for each text.
        """
        texts = [replace_surrogates(text) for text in sentences]
        row_of = {text: row for row, text in enumerate(dict.fromkeys(texts))}
        if not row_of:
            return np.empty((0, 0), np.float32)
        if self._cache is None:
            embeddings = np.concatenate(list(self._batches(row_of)))
        else:
            embeddings = self._cache.completed(list(row_of), self._batches)
        return embeddings[[row_of[text] for text in texts]]

    def _batches(self, texts: Iterable[str]) -> Iterator[Embeddings]:
        """Yields the embeddings of texts, a batch at a time."""
        rest = iter(texts)
        with self._client() as client:
            while batch := list(islice(rest, self._batch)):
                yield self._embed(client, batch)

    def _client(self) -> "httpx.Client":
        import httpx

        headers = {"User-Agent": f"rejoinder/{VERSION}", "Content-Type": "application/json"}
        if self._key is not None:
            headers["Authorization"] = f"Bearer {self._key}"
        return httpx.Client(
            headers=headers,
            timeout=_TIMEOUT,
            verify=ssl.create_default_context(),  # trusts the certificates of this machine
        )

    def _embed(self, client: "httpx.Client", texts: list[str]) -> Embeddings:
        """Returns the embeddings of a batch, which is halved if the server finds it too large."""
        body = json.dumps(self._wire.body(self._model, texts)).encode()
        try:
            rows = self._wire.rows(post(client, self._route, body), len(texts))
        except RefusedError as error:
            if error.status in _TOO_MUCH and len(texts) > 1:
                half = len(texts) // 2
                self._batch = min(self._batch, half)
                parts = [texts[:half], texts[half:]]
                return np.concatenate([self._embed(client, part) for part in parts])
            said = error.said.replace(self._key or "\0", "…")
            reason = f"{error.status}: {said}." if said else f"{error.status}."
            if error.status in _TOO_MUCH:
                reason += f" The text was {texts[0][:60]!r}."
            elif error.status in (401, 403):
                keys = " or ".join(self._wire.keys)
                reason += f" A key is read from {keys}, and sent over https or to this machine."
            raise InputError(f"{self._route} answers {reason}") from None
        except (KeyError, TypeError):
            kind = self._wire.prefix
            raise InputError(f"{self._route} sent JSON in another form than {kind}.") from None
        embeddings, _ = encoding.embeddings_of(rows, texts, self._route)
        dim = embeddings.shape[1]
        if self._dim not in (None, dim):
            widths = f"of {dim} numbers, and earlier of {self._dim}"
            raise InputError(f"{self._route} sent vectors {widths}; one width is needed.")
        self._dim = dim
        return embeddings


def open_openai(name: str) -> RemoteEncoder:
    """Returns the encoder at `MODEL@URL`, a model of a server with OpenAI's interface.

    A URL without a path means `/v1` there.

    Raises:
        InputError: the name has another form, or the address is not valid.
        MissingExtraError: a package for requests is not installed.
    """
    match = re.fullmatch(r"(?>(.+?)@(?=https?://))(.+)", name)
    if match is None:
        form = "openai:MODEL@URL, such as openai:rejoinder-base@http://localhost:8080/v1"
        raise InputError(f"an encoder of OpenAI's interface is named {form}.")
    return RemoteEncoder(OPENAI, match[1], match[2])


def open_tei(address: str) -> RemoteEncoder:
    """Returns the encoder at the address of a text-embeddings-inference server, or a similar one.

    Raises:
        InputError: the address is not valid.
        MissingExtraError: a package for requests is not installed.
    """
    return RemoteEncoder(TEI, "", address)


def _checked_address(address: str) -> SplitResult:
    """Returns the parts of an address, which must be http or https and contain no password."""
    try:
        parts = urlsplit(address)
        _ = parts.port  # may not be a number
    except ValueError as error:
        raise InputError(f"the address of the server is not valid: {error}.") from None
    if parts.username is not None or parts.password is not None:  # not repeated in the message
        raise InputError(
            "the address of the server holds a user name or a password; REJOINDER_API_KEY gives a "
            "key in the environment."
        )
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.query or parts.fragment:
        raise InputError(
            f"{address!r} is not the address of a server, such as http://HOST:PORT or https://HOST."
        )
    return parts


_ATTEMPTS = 6
_PAUSE = 1.0
"""Seconds before the second attempt. The pause doubles with each attempt."""
_LONGEST_PAUSE = 120.0
"""Longest time in seconds that a server may ask to wait before the next attempt (`Retry-After`)."""
_TRANSIENT = frozenset({408, 429, 500, 502, 503, 504})
"""Statuses after which another attempt may succeed."""
MOST_BYTES = 1 << 28
"""Largest size of an answer in bytes, some hundred times that of a batch of embeddings."""
_LONGEST = 200
"""Number of quoted characters of a server's message."""


class RefusedError(Exception):
    """A server answered with another status than 200."""

    def __init__(self, status: int, content: bytes, retry_after: str) -> None:
        super().__init__(status)
        self.status = status
        self.said = _message(content)
        """The server's own message, shortened; may be empty."""
        self.pause = float(retry_after) if retry_after.strip().isdecimal() else None
        """Seconds that the server asks to wait, if it does."""


def post(client: "httpx.Client", address: str, body: bytes) -> Any:
    """Returns a server's JSON answer, after several attempts if needed.

    Raises:
        RefusedError: the server answers with another status than 200.
        InputError: it can't be reached, breaks off, or sends too much or something other than JSON.
    """
    import httpx
    from tenacity import Retrying, retry_if_exception, stop_after_attempt

    # a host that can't be reached at all is more likely misspelt than temporarily down
    broken = (httpx.ReadError, httpx.WriteError, httpx.RemoteProtocolError, httpx.ReadTimeout)

    def passes(error: BaseException) -> bool:
        if isinstance(error, RefusedError):
            return error.status in _TRANSIENT and (error.pause or 0) <= _LONGEST_PAUSE
        return isinstance(error, broken)

    stop, retry = stop_after_attempt(_ATTEMPTS), retry_if_exception(passes)
    attempts = Retrying(stop=stop, wait=_pause, retry=retry, reraise=True)
    try:
        content = attempts(_attempt, client, address, body)
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        what = f"broke off {_ATTEMPTS} times" if isinstance(error, broken) else "can't be reached"
        raise InputError(f"{address} {what}: {str(error) or type(error).__name__}.") from None
    try:
        return json.loads(content, parse_constant=refuse_constant)
    except (ValueError, RecursionError) as error:
        raise InputError(f"{address} did not send JSON: {error}.") from None


def _attempt(client: "httpx.Client", address: str, body: bytes) -> bytes:
    content = bytearray()
    with client.stream("POST", address, content=body) as response:
        for part in response.iter_bytes():
            content += part
            if len(content) > MOST_BYTES:
                raise InputError(f"{address} sent more than {MOST_BYTES:,} bytes in an answer.")
    if response.status_code != HTTPStatus.OK:
        asked = response.headers.get("Retry-After", "")
        raise RefusedError(response.status_code, bytes(content), asked)
    return bytes(content)


def _pause(state: "RetryCallState") -> float:
    """Returns the seconds before the next attempt: as the server asks, or a doubling time."""
    error = None if state.outcome is None else state.outcome.exception()
    asked = error.pause if isinstance(error, RefusedError) else None
    return _PAUSE * 2 ** (state.attempt_number - 1) if asked is None else asked


def _message(content: bytes) -> str:
    """Returns the message in a server's answer: from its JSON, or its first words."""
    try:
        tree: Any = json.loads(content)
    except (ValueError, RecursionError):
        tree = content.decode("utf-8", "replace")
    for key in ("error", "detail", "message"):
        if isinstance(tree, dict) and key in tree:
            tree = tree[key]
    text = tree if isinstance(tree, str) else json.dumps(tree)
    words = " ".join("".join(c if c.isprintable() else " " for c in text).split())
    return words if len(words) <= _LONGEST else f"{words[:_LONGEST]}…"
