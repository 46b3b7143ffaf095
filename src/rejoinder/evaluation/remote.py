"""Encoders on a server: OpenAI's interface, and that of text-embeddings-inference.

Posts JSON to a server, tries again what may succeed later, and says what went wrong.
"""

import json
import os
import re
import ssl
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from http import HTTPStatus
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import SplitResult, urlsplit

import numpy as np

from rejoinder.errors import InputError, require
from rejoinder.evaluation.encoding import VectorCache, embeddings_of, identity, quoted
from rejoinder.io.files.hashed import refuse_constant
from rejoinder.io.formats.text_lines import replace_surrogates
from rejoinder.protocols import Embeddings
from rejoinder.version import VERSION

if TYPE_CHECKING:
    import httpx
    from tenacity import RetryCallState


_TIMEOUT = 60.0
"""Seconds without a byte."""
_LOOPBACK = ("localhost", "127.0.0.1", "::1")
_TOO_MUCH = (400, 413, 422)
"""Statuses that a request of too many texts may be answered with; half of them are sent then."""


@dataclass(frozen=True)
class Wire:
    """How a kind of server is asked for embeddings."""

    prefix: str
    """Prefix of the encoder's name."""
    texts: int
    """Number of texts in a request, at most."""
    keys: tuple[str, ...]
    """Environment variables of the key; the first one that is set counts."""
    route: Callable[[str], str]
    """Returns the address that is asked, from that in the name, without a slash at its end."""
    body: Callable[[str, Sequence[str]], Mapping[str, Any]]
    """Returns the request, of a model and texts."""
    rows: Callable[[Any, int], Any]
    """Returns the embeddings in an answer, given the number of texts, in their order. Raises
    InputError, or KeyError or TypeError if the answer has another form."""


def _openai_rows(answer: Any, count: int) -> list[Any]:
    items = answer["data"]
    indices = [item["index"] for item in items]
    if sorted(indices) != list(range(count)):
        raise InputError(
            f"the server sent {len(indices):,} embeddings for {count:,} texts, or not one for each "
            "index."
        )
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
    texts=32,  # what the server allows unless it is told otherwise
    keys=("REJOINDER_API_KEY",),
    route=lambda address: f"{address}/embed",
    body=lambda _model, texts: {"inputs": list(texts), "normalize": True, "truncate": True},
    rows=lambda answer, _count: answer,
)


class RemoteEncoder:
    """An encoder that asks a server for the embeddings of texts, a batch at a time.

    Connections that break, and answers 408, 429 and 5xx, are tried again after a while. The key, if
    the server wants one, is in the environment. It is sent over https, and to this machine.
    """

    def __init__(self, wire: Wire, model: str, address: str) -> None:
        """Creates the encoder without asking anything.

        Raises:
            InputError: the address is not valid.
            MissingExtraError: a package that asks is not installed.
        """
        require("data", "httpx", "tenacity")
        name = f"{wire.prefix}:{model}@{address}" if model else f"{wire.prefix}:{address}"
        parts = _checked(address)
        self._name, self._wire, self._model = name, wire, model
        self._route = wire.route(address.rstrip("/"))
        self._batch = wire.texts
        self._dim: int | None = None
        self._cache: VectorCache | None = None
        key = next((os.environ[name] for name in wire.keys if os.environ.get(name)), None)
        safe = parts.scheme == "https" or parts.hostname in _LOOPBACK
        self._key = key if safe else None
        self._advice = (
            f"A key is read from {' or '.join(wire.keys)} in the environment, and sent over https "
            "or to this machine only."
        )

    def describe(self) -> dict[str, object]:
        """Returns the name, all that is known of the server's model."""
        return {"name": self._name}

    def cache_in(self, folder: Path) -> None:
        """Keeps embeddings in a folder as soon as they arrive, and reads them from there."""
        # what the server computes with may have changed under its name
        name = json.dumps(identity(self), sort_keys=True)
        self._cache = VectorCache(folder / "remote.sqlite", name)

    def encode(self, sentences: Sequence[str]) -> Embeddings:
        """Returns (N, D) float32 embeddings.

        Raises:
            InputError: the server can't be reached, answers with an error, or sends anything but a
                finite vector for each text, all of one dimension.
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
            hint = f" {self._advice}" if error.status in (401, 403) else ""
            hint = f" The text was {quoted(texts, 0)}." if error.status in _TOO_MUCH else hint
            reason = f"{error.status}: {said}." if said else f"{error.status}."
            raise InputError(f"{self._route} answers {reason}{hint}") from None
        except (KeyError, TypeError):
            raise InputError(
                f"{self._route} sent JSON in another form than {self._wire.prefix} uses."
            ) from None
        embeddings, _ = embeddings_of(rows, texts, self._route)
        dim = embeddings.shape[1]
        if self._dim not in (None, dim):
            raise InputError(
                f"{self._route} sent vectors of {dim} numbers, and earlier of {self._dim}; one "
                "width for all texts is needed."
            )
        self._dim = dim
        return embeddings


def open_openai(name: str) -> RemoteEncoder:
    """Returns the encoder that `MODEL@URL` names, a model of a server with OpenAI's interface.

    A URL without a path means its `/v1`.

    Raises:
        InputError: the name has another form, or the address is not valid.
        MissingExtraError: a package that asks is not installed.
    """
    match = re.fullmatch(r"(?>(.+?)@(?=https?://))(.+)", name)
    if match is None:
        raise InputError(
            "an encoder of OpenAI's interface is named openai:MODEL@URL, such as "
            "openai:rejoinder-base@http://localhost:8080/v1."
        )
    return RemoteEncoder(OPENAI, match[1], match[2])


def open_tei(address: str) -> RemoteEncoder:
    """Returns the encoder at an address of text-embeddings-inference, or of a server like it.

    Raises:
        InputError: the address is not valid.
        MissingExtraError: a package that asks is not installed.
    """
    return RemoteEncoder(TEI, "", address)


def _checked(address: str) -> SplitResult:
    """Returns the parts of an address, which must be http or https and hold no password."""
    try:
        parts = urlsplit(address)
        _ = parts.port  # may be no number
    except ValueError as error:
        raise InputError(f"the address of the server is not valid: {error}.") from None
    if parts.username is not None or parts.password is not None:  # not repeated in the message
        raise InputError(
            "the address of the server holds a user name or a password; a key is given by "
            "REJOINDER_API_KEY in the environment."
        )
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.query or parts.fragment:
        raise InputError(
            f"{address!r} is not the address of a server; http://HOST:PORT or https://HOST is "
            "needed, with a path where the server has one."
        )
    return parts


_ATTEMPTS = 6
_PAUSE = 1.0
"""Seconds before the second attempt. The pause doubles with each attempt."""
_LONGEST_PAUSE = 120.0
"""Seconds that a server may ask for before the next attempt (`Retry-After`)."""
_TRANSIENT = frozenset({408, 429, 500, 502, 503, 504})
"""Statuses after which another attempt may succeed."""
MOST_BYTES = 1 << 28
"""Bytes of an answer, some hundred times those of a batch of embeddings."""
_LONGEST = 200
"""Number of characters of a server's message that are quoted."""


class RefusedError(Exception):
    """A server's answer with another status than 200."""

    def __init__(self, status: int, content: bytes, retry_after: str) -> None:
        super().__init__(status)
        self.status = status
        self.said = _message(content)
        """The server's own message, shortened; may be empty."""
        self.pause = float(retry_after) if retry_after.strip().isdecimal() else None
        """Seconds that the server asks to wait for, if it says so."""


def post(client: "httpx.Client", address: str, body: bytes) -> Any:
    """Returns the JSON that a server answers with, after several attempts if need be.

    Raises:
        RefusedError: the server answers with another status than 200.
        InputError: it can't be reached, breaks off, or sends too much or something other than JSON.
    """
    import httpx
    from tenacity import Retrying, retry_if_exception, stop_after_attempt

    # a host that can't be reached at all is more likely misspelt than absent for a while
    broken = (httpx.ReadError, httpx.WriteError, httpx.RemoteProtocolError, httpx.ReadTimeout)

    def passes(error: BaseException) -> bool:
        if isinstance(error, RefusedError):
            return error.status in _TRANSIENT and (error.pause or 0) <= _LONGEST_PAUSE
        return isinstance(error, broken)

    attempts = Retrying(
        stop=stop_after_attempt(_ATTEMPTS),
        wait=_pause,
        retry=retry_if_exception(passes),
        reraise=True,
    )
    try:
        content = attempts(_attempt, client, address, body)
    except broken as error:
        raise InputError(
            f"{address} broke off {_ATTEMPTS} times: {str(error) or type(error).__name__}."
        ) from None
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        reason = str(error) or type(error).__name__
        raise InputError(f"{address} can't be reached: {reason}.") from None
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
    """Returns the seconds before the next attempt: what the server asks for, or a doubling time."""
    error = None if state.outcome is None else state.outcome.exception()
    asked = error.pause if isinstance(error, RefusedError) else None
    return _PAUSE * 2 ** (state.attempt_number - 1) if asked is None else asked


def _message(content: bytes) -> str:
    """Returns the message in the answer of a server: that of its JSON, or its first words."""
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
