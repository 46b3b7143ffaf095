"""How a server ends: requests under way finish, new ones are answered with status 503."""

import signal
import socket
import time
from collections.abc import Callable
from types import FrameType

import uvicorn
from starlette.types import ASGIApp, Receive, Scope, Send

from rejoinder.serve.errors import STOPPING, error_response


class Drain:
    """Counts the requests under way, and knows since when the server is stopping."""

    def __init__(self) -> None:
        self.under_way = 0
        self.since: float | None = None

    def begin(self) -> None:
        """From now on new requests are refused."""
        if self.since is None:
            self.since = time.monotonic()

    def is_over(self, most_seconds: float) -> bool:
        """Returns whether the server may end: it is stopping, and nobody waits, or for too long."""
        if self.since is None:
            return False
        return not self.under_way or time.monotonic() - self.since > most_seconds


class RefuseWhileStopping:
    """Answers 503 to requests that begin after the server was told to stop."""

    def __init__(self, app: ASGIApp, *, drain: Drain) -> None:
        self._app, self._drain = app, drain

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Passes a request on and counts it as under way, or refuses it."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        if self._drain.since is not None:
            answer = error_response(scope["path"], 503, STOPPING, headers={"Connection": "close"})
            await answer(scope, receive, send)
            return
        self._drain.under_way += 1
        try:
            await self._app(scope, receive, send)
        finally:
            self._drain.under_way -= 1


class DrainingServer(uvicorn.Server):
    """A uvicorn server that a first signal lets finish, and a second one ends at once.

    While requests are under way it still accepts connections, to answer them with 503.
    """

    def __init__(
        self,
        config: uvicorn.Config,
        drain: Drain,
        most_seconds: float,
        started: Callable[[], None] = lambda: None,
    ) -> None:
        """Prepares a server.

        Args:
            config: What to serve.
            drain: Knows the requests under way.
            most_seconds: How long these have to finish.
            started: Called when the first request can be answered.
        """
        super().__init__(config)
        self._drain, self._most_seconds, self._started = drain, most_seconds, started

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Starts, and says so."""
        await super().startup(sockets)
        self._started()

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:  # noqa: ARG002
        """Begins to stop, or stops at once if it is stopping already and SIGINT comes again."""
        if self._drain.since is not None and sig == signal.SIGINT:
            self.should_exit = self.force_exit = True
        self._drain.begin()

    async def on_tick(self, counter: int) -> bool:
        """Returns whether to end; uvicorn asks ten times a second."""
        if self._drain.is_over(self._most_seconds):
            self.should_exit = True
        return await super().on_tick(counter)
