"""Posts JSON to a server, tries again what may succeed later, and says what went wrong."""

import json
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
