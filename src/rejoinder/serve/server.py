"""The uvicorn server for an app: settings, socket, signals, log, and limits for connections.

Uvicorn closes idle connections, but waits indefinitely for a request to arrive and for a client to
read its answer.
"""

import logging
import multiprocessing
import os
import re
import signal
import socket
import time
from asyncio import TimerHandle, Transport
from collections.abc import Callable
from dataclasses import dataclass, field
from ipaddress import ip_address
from multiprocessing.connection import wait
from types import FrameType
from typing import Any, ClassVar

import uvicorn
from fastapi import FastAPI
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from rejoinder.errors import InputError, RejoinderError
from rejoinder.io.files.system import most_open_files


@dataclass(frozen=True, kw_only=True)
class ServerSettings:
    """Addresses, limits and the key of a server."""

    host: str = "127.0.0.1"
    """Address to listen on. Only this machine can reach the default address."""
    allowed_hosts: tuple[str, ...] = ()
    """Hosts that requests may name, in addition to loopback names. If empty, a server on the
    loopback allows only those, and a server on another address allows any host."""
    port: int = 8080
    """Port to listen on; 0 chooses a free one."""
    max_batch: int = 4_096
    """Largest number of texts to encode at once; 1 encodes each request alone."""
    max_queue: int = 65_536
    """Largest number of texts that wait for the encoder. Further texts get status 429."""
    max_body_bytes: int = 4 << 20
    """Largest size of a request body in bytes. A longer body gets status 413."""
    max_texts: int = 2_048
    """Largest number of texts in a request."""
    drain_seconds: float = 8.0
    """Seconds for current requests to finish after SIGTERM."""
    cors_origins: tuple[str, ...] = ()
    """Origins whose pages may call the server from a browser; `*` allows any origin."""
    api_key: str | None = field(default=None, repr=False)
    """Key that requests must send as `Authorization: Bearer KEY`, or in the page's cookie."""

    @property
    def is_local(self) -> bool:
        """Whether only this machine can reach the server; other names then come from a proxy."""
        return _is_loopback(_name_of(self.host)) and not self.allowed_hosts

    def serves(self, host: str) -> bool:
        """Returns whether a request may have this `Host` header."""
        if not self.allowed_hosts and not self.is_local:
            return True
        name = _name_of(host)
        return _is_loopback(name) or name in map(_name_of, self.allowed_hosts)

    def __post_init__(self) -> None:
        """Checks the ranges.

        Raises:
            InputError: a setting is out of range, or two settings contradict each other.
        """
        _within("port", self.port, 0, 65_535)
        _within("max_batch", self.max_batch, 1, 1 << 20)
        _within("max_body_bytes", self.max_body_bytes, 1, 1 << 30)
        _within("max_texts", self.max_texts, 1, 1 << 20)
        _within("max_queue", self.max_queue, 1, 1 << 24)
        _within("drain_seconds", self.drain_seconds, 0, 3_600)
        if self.max_queue < 2 * self.max_texts:
            least = f"{2 * self.max_texts:,} or more, for two requests of max_texts"
            raise InputError(f"max_queue {self.max_queue:,} is too small; it must be {least}.")
        if self.api_key is not None and not re.fullmatch("[!-~]{8,}", self.api_key):
            raise InputError(
                "the API key must be 8 or more visible ASCII characters without spaces; openssl "
                "rand -hex 32 makes one."
            )
        for name in self.allowed_hosts:
            if not re.fullmatch(r"\[[^/]*|[^/:]+", name):
                raise InputError(f"allowed host {name!r}: give a name such as search.example.org.")
        for origin in self.cors_origins:
            if not re.fullmatch(r"\*|https?://[^/]+", origin):
                raise InputError(
                    f"CORS origin {origin!r}: give a scheme, a host and maybe a port, such as "
                    "https://example.org, or * for any."
                )


def _name_of(host: str) -> str:
    """Returns the name or address in a `Host` header.

    >>> _name_of("[::1]:8080"), _name_of("LOCALHOST.:80"), _name_of("::1")
    ('::1', 'localhost', '::1')
    """
    if host.startswith("["):
        return host[1:].partition("]")[0].lower()
    name = host if host.count(":") > 1 else host.partition(":")[0]
    return name.lower().removesuffix(".")


def _is_loopback(name: str) -> bool:
    try:
        return name == "localhost" or ip_address(name).is_loopback
    except ValueError:
        return False


def _within(name: str, value: float, least: int, most: int) -> None:
    if not least <= value <= most:
        raise InputError(f"{name} must be from {least:,} to {most:,}; got {value}.")


_BACKLOG = 2_048
_MOST = 10_000
_SPARE_FILES = 64
"""Open files of a server, not counting connections."""
_LOG_SECONDS = 60.0


def open_socket(host: str, port: int) -> socket.socket:
    """Returns a socket that listens on an address; port 0 chooses a free one.

    Raises:
        InputError: the address does not belong to this machine, or the port is taken.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        listening = socket.create_server((host, port), family=family, backlog=_BACKLOG)
    except OSError as error:
        # Python adds the address to the operating system's text
        number = error.errno or 0
        reason = (os.strerror(number) if number > 0 else str(error.strerror or error)).lower()
        raise InputError(f"can't listen on {host} port {port}: {reason}.") from None
    # for all connections: small answers would wait 40 ms for the client's acknowledgement
    listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return listening


def shown_host(host: str) -> str:
    """Returns the host as URLs write it, such that other machines can open it, too.

    >>> shown_host("::1")
    '[::1]'
    """
    try:
        if host and ip_address(host).is_unspecified:
            family = socket.AF_INET6 if ":" in host else socket.AF_INET
            with socket.socket(family, socket.SOCK_DGRAM) as probe:
                # for documentation (RFC 5737, 3849): nothing is sent, but a route is chosen
                probe.connect(("2001:db8::1" if ":" in host else "192.0.2.1", 9))
                host = probe.getsockname()[0]
    except (OSError, ValueError):  # a name, or this machine has no network
        pass
    return f"[{host}]" if ":" in host else host


class Server(uvicorn.Server):
    """A uvicorn server that finishes its requests after a signal, and ends at a second SIGINT."""

    def __init__(self, config: uvicorn.Config, started: Callable[[], None]) -> None:
        super().__init__(config)
        self._started = started

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Starts, and calls `started`."""
        await super().startup(sockets)
        self._started()

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:  # noqa: ARG002
        """Begins to stop, and ends with status 0. Uvicorn would end the process by the signal."""
        self.should_exit = True
        signal.signal(signal.SIGINT, signal.SIG_DFL)


def run_workers(
    work: Callable[[socket.socket], None],
    listening: socket.socket,
    count: int,
    started: Callable[[], None],
) -> None:
    """Calls `work` in `count` processes that share a socket, until a signal ends them.

    Raises:
        RejoinderError: a process ended without a signal; the others are ended, too.
    """
    context = multiprocessing.get_context("spawn")
    workers = [context.Process(target=work, args=(listening,), daemon=True) for _ in range(count)]
    stopped: list[int] = []

    def stop(number: int, _: FrameType | None) -> None:
        stopped.append(number)
        for worker in workers:
            worker.terminate()
        signal.signal(signal.SIGINT, signal.SIG_DFL)

    for worker in workers:
        worker.start()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, stop)
    started()
    ended = wait([worker.sentinel for worker in workers])
    failed = [] if stopped else [worker for worker in workers if worker.sentinel in ended]
    stop(0, None)
    for worker in workers:
        worker.join()
    if failed:
        raise RejoinderError(
            f"one of {count} processes of the server ended with status {failed[0].exitcode}; the "
            "others were ended, too. Start it again; if memory was short, with fewer --workers."
        )


@dataclass(frozen=True)
class Limits:
    """Limits of a server's connections."""

    most: int
    """Largest number of open connections."""
    request_seconds: float = 20.0
    """Seconds for a request to arrive, from the connection's start or the request's first byte."""
    answer_seconds: float = 20.0
    """Seconds that a client may take without reading any of its answer."""


def limited_protocol(limits: Limits) -> type[HttpToolsProtocol]:
    """Returns uvicorn's protocol class with limits, for one server."""
    return type("_Limited", (_LimitedProtocol,), {"limits": limits, "waiting": {}})


class _LimitedProtocol(HttpToolsProtocol):
    limits: ClassVar[Limits]
    waiting: "ClassVar[dict[_LimitedProtocol, TimerHandle]]"
    """Connections that wait for a request, oldest first, with their timeouts."""

    _answer: TimerHandle | None = None

    def connection_made(self, transport: Transport) -> None:  # type: ignore[override]
        """Starts to wait for a request. If there are too many connections, cuts the oldest."""
        super().connection_made(transport)
        self._expect()
        if len(self.connections) > self.limits.most:
            oldest = next(iter(self.waiting))
            oldest._arrived()
            oldest.transport.abort()

    def data_received(self, data: bytes) -> None:
        """Starts to wait for the connection's next request at its first byte."""
        if self not in self.waiting and (self.cycle is None or self.cycle.response_complete):
            self._expect()
        super().data_received(data)

    def on_message_complete(self) -> None:
        """Stops waiting: the request has arrived."""
        self._arrived()
        super().on_message_complete()

    def pause_writing(self) -> None:
        """Starts to watch a client that reads slower than it is answered."""
        super().pause_writing()
        self._watch(self.transport.get_write_buffer_size())

    def resume_writing(self) -> None:
        """Stops watching: the client has read its answer."""
        super().resume_writing()
        self._read()

    def connection_lost(self, exc: Exception | None) -> None:
        """Forgets the connection."""
        self._arrived()
        self._read()
        super().connection_lost(exc)

    def _expect(self) -> None:
        cut = self.loop.call_later(self.limits.request_seconds, self.transport.abort)
        self.waiting[self] = cut

    def _arrived(self) -> None:
        if self in self.waiting:
            self.waiting.pop(self).cancel()

    def _watch(self, size: int) -> None:
        self._answer = self.loop.call_later(self.limits.answer_seconds, self._look, size)

    def _look(self, before: int) -> None:
        size = self.transport.get_write_buffer_size()
        if size < before:
            self._watch(size)  # slow, but reading
        else:
            self.transport.abort()

    def _read(self) -> None:
        if self._answer is not None:
            self._answer.cancel()


class OncePerMinute(logging.Filter):
    """Logs each kind of error at most once a minute."""

    def __init__(self) -> None:
        super().__init__()
        self._last: dict[Any, float] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        """Returns whether to log a record. Errors raised by one line of code are one kind."""
        kind, _, trace = record.exc_info or (None, None, None)
        while trace is not None and trace.tb_next is not None:
            trace = trace.tb_next
        line = None if trace is None else (trace.tb_frame.f_code, trace.tb_lineno)
        fault = (record.msg, kind, line)
        now = time.monotonic()
        if now - self._last.get(fault, -_LOG_SECONDS) < _LOG_SECONDS:
            return False
        self._last[fault] = now
        return True


def server_of(
    app: FastAPI, started: Callable[[], None] = lambda: None, limits: Limits | None = None
) -> Server:
    """Returns a server for an app of `create_app`; call `run(sockets=[…])`.

    SIGTERM and SIGINT stop it in the main thread, `should_exit = True` in any thread.
    `started` is called when the server can answer. `limits` apply to its connections.
    """
    for name in ("asyncio", "uvicorn.error"):
        logger = logging.getLogger(name)
        if not any(isinstance(known, OncePerMinute) for known in logger.filters):
            logger.addFilter(OncePerMinute())
    files = most_open_files()
    most = _MOST if files < 0 else max(8, min(_MOST, files - _SPARE_FILES))
    config = uvicorn.Config(
        app,
        http=limited_protocol(limits or Limits(most)),
        access_log=False,
        log_level="error",  # uvicorn warns of each malformed request: strangers could fill the log
        server_header=False,
        proxy_headers=False,
        timeout_keep_alive=30,
        timeout_graceful_shutdown=app.state.service.settings.drain_seconds,
    )
    return Server(config, started)
