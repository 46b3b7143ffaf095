"""Posts JSON to a server, tries again what may succeed later, and says what went wrong."""

import json
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

from rejoinder.errors import InputError
from rejoinder.io.files.hashed import refuse_constant

if TYPE_CHECKING:
    import httpx
    from tenacity import RetryCallState

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

    def __init__(self, status: int, said: str) -> None:
        super().__init__(status, said)
        self.status = status
        self.said = said
        """The server's own message, shortened; may be empty."""


def post(client: "httpx.Client", address: str, body: bytes) -> Any:
    """Returns the JSON that a server answers with, after several attempts if need be.

    Raises:
        RefusedError: the server answers with another status than 200.
        InputError: it can't be reached, breaks off, or sends no JSON or too much of it.
    """
    import httpx
    from tenacity import Retrying, retry_if_exception, stop_after_attempt

    attempts = Retrying(
        stop=stop_after_attempt(_ATTEMPTS),
        wait=_pause,
        retry=retry_if_exception(_is_transient),
        reraise=True,
    )
    try:
        response = attempts(_attempt, client, address, body)
    except httpx.HTTPStatusError as error:
        raise RefusedError(error.response.status_code, _message(error.response)) from None
    except _broken() as error:
        raise InputError(
            f"{address} broke off {_ATTEMPTS} times: {str(error) or type(error).__name__}."
        ) from None
    except (httpx.HTTPError, httpx.InvalidURL, ValueError, ImportError) as error:
        # the last two are about the proxy that the environment names
        reason = str(error) or type(error).__name__
        raise InputError(f"{address} can't be reached: {reason}.") from None
    try:
        return json.loads(response.content, parse_constant=refuse_constant)
    except (ValueError, RecursionError) as error:
        raise InputError(f"{address} sent what is no JSON: {error}.") from None


def _attempt(client: "httpx.Client", address: str, body: bytes) -> "httpx.Response":
    import httpx

    with client.stream("POST", address, content=body) as streamed:
        content = bytearray()
        for part in streamed.iter_bytes():
            content += part
            if len(content) > MOST_BYTES:
                raise InputError(f"{address} sent more than {MOST_BYTES:,} bytes in an answer.")
    asked = streamed.headers.get("Retry-After")
    response = httpx.Response(
        streamed.status_code,
        headers={} if asked is None else {"Retry-After": asked},
        content=bytes(content),
        request=streamed.request,
    )
    if response.status_code != HTTPStatus.OK:
        raise httpx.HTTPStatusError("", request=response.request, response=response)
    return response


def _is_transient(error: BaseException) -> bool:
    import httpx

    if isinstance(error, httpx.HTTPStatusError):
        asked = _asked_pause(error.response)
        return error.response.status_code in _TRANSIENT and (asked or 0) <= _LONGEST_PAUSE
    # a host that can't be reached at all is more likely misspelt than absent for a while
    return isinstance(error, _broken())


def _broken() -> tuple[type[Exception], ...]:
    """Returns the errors of connections that were there and broke."""
    import httpx

    return (httpx.ReadError, httpx.WriteError, httpx.RemoteProtocolError, httpx.ReadTimeout)


def _pause(state: "RetryCallState") -> float:
    """Returns the seconds before the next attempt: what the server asks for, or a doubling time."""
    import httpx

    error = None if state.outcome is None else state.outcome.exception()
    if isinstance(error, httpx.HTTPStatusError):
        asked = _asked_pause(error.response)
        if asked is not None:
            return asked
    return float(min(_PAUSE * 2 ** (state.attempt_number - 1), _LONGEST_PAUSE))


def _asked_pause(response: "httpx.Response") -> float | None:
    """Returns the seconds that `Retry-After` asks for, in seconds or as a date, or None."""
    asked = response.headers.get("Retry-After", "").strip()
    if asked.isascii() and asked.isdecimal():
        return float(asked)
    try:
        when = parsedate_to_datetime(asked)
    except ValueError:
        return None
    if when.tzinfo is None:
        when = when.replace(tzinfo=UTC)
    return max(0.0, (when - datetime.now(UTC)).total_seconds())


def _message(response: "httpx.Response") -> str:
    """Returns the message in the answer of a server: that of its JSON, or its first words."""
    try:
        tree: Any = json.loads(response.content)
    except (ValueError, RecursionError):
        tree = response.text
    for key in ("error", "detail", "message"):
        if isinstance(tree, dict) and key in tree:
            tree = tree[key]
    text = tree if isinstance(tree, str) else json.dumps(tree)
    words = " ".join("".join(c if c.isprintable() else " " for c in text).split())
    return words if len(words) <= _LONGEST else f"{words[:_LONGEST]}…"
