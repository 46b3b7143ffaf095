"""Connections that take too long, or are too many, end; the server stays there for the others.

Uvicorn closes idle connections, but waits for a request, and for a client that reads no answer, as
long as these like.
"""

import logging
import time
from asyncio import TimerHandle, Transport
from dataclasses import dataclass
from typing import Any, ClassVar

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

_MOST = 10_000
_SPARE_FILES = 64
"""Files that a server has open besides connections."""
_LOG_SECONDS = 60.0


def most_connections() -> int:
    """Returns how many connections may be open: as many as the process may open files, almost."""
    try:
        import resource
    except ImportError:  # Windows
        return _MOST
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return _MOST if soft == resource.RLIM_INFINITY else max(8, min(_MOST, soft - _SPARE_FILES))


@dataclass(frozen=True)
class Limits:
    """Limits of the connections of a server."""

    most: int
    """Connections that may be open at a time."""
    request_seconds: float = 20.0
    """Seconds from the first byte of a connection, or of its next request, to the request's end."""
    answer_seconds: float = 20.0
    """Seconds that a client may read nothing of an answer that waits for it."""


def limited_protocol(limits: Limits) -> type[HttpToolsProtocol]:
    """Returns uvicorn's protocol with limits, for one server."""
    return type("_Limited", (_LimitedProtocol,), {"limits": limits, "waiting": {}})


class _LimitedProtocol(HttpToolsProtocol):
    limits: ClassVar[Limits]
    waiting: "ClassVar[dict[_LimitedProtocol, None]]"
    """Connections whose request has not arrived, the oldest first."""

    _request: TimerHandle | None = None
    _answer: TimerHandle | None = None

    def connection_made(self, transport: Transport) -> None:  # type: ignore[override]
        """Begins to wait for a request; the longest waiting one makes room where it is too full."""
        super().connection_made(transport)
        self._expect()
        if len(self.connections) > self.limits.most:
            oldest = next(iter(self.waiting))
            oldest._arrived()
            oldest.transport.abort()

    def data_received(self, data: bytes) -> None:
        """Begins to wait for the next request of a connection at its first byte."""
        if self._request is None and (self.cycle is None or self.cycle.response_complete):
            self._expect()
        super().data_received(data)

    def on_message_complete(self) -> None:
        """Ends the wait for a request."""
        self._arrived()
        super().on_message_complete()

    def pause_writing(self) -> None:
        """Begins to watch a client that does not read as fast as it is answered."""
        super().pause_writing()
        self._watch(self.transport.get_write_buffer_size())

    def resume_writing(self) -> None:
        """Ends that."""
        super().resume_writing()
        self._read()

    def connection_lost(self, exc: Exception | None) -> None:
        """Forgets the connection."""
        self._arrived()
        self._read()
        super().connection_lost(exc)

    def _expect(self) -> None:
        self.waiting[self] = None
        self._request = self.loop.call_later(self.limits.request_seconds, self.transport.abort)

    def _arrived(self) -> None:
        self.waiting.pop(self, None)
        if self._request is not None:
            self._request.cancel()
            self._request = None

    def _watch(self, size: int) -> None:
        self._answer = self.loop.call_later(self.limits.answer_seconds, self._look, size)

    def _look(self, before: int) -> None:
        size = self.transport.get_write_buffer_size()
        if size < before:
            self._watch(size)  # slow, but it reads
        else:
            self.transport.abort()

    def _read(self) -> None:
        if self._answer is not None:
            self._answer.cancel()
            self._answer = None


class OncePerMinute(logging.Filter):
    """Lets a message through once a minute, whoever repeats it."""

    def __init__(self) -> None:
        super().__init__()
        self._last: dict[Any, float] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        """Returns whether to log a record."""
        key = (record.msg, record.exc_info[0] if record.exc_info else None)
        now = time.monotonic()
        if now - self._last.get(key, -_LOG_SECONDS) < _LOG_SECONDS:
            return False
        self._last[key] = now
        return True
