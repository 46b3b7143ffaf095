"""A real server on a free port of the loopback, in a thread, for tests of `rejoinder.serve`."""

import asyncio
import ssl
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import httpx
from fastapi import FastAPI

from rejoinder.inference.sentence_stream import given_texts
from rejoinder.models.folder import ModelContents
from rejoinder.serve.app import create_app
from rejoinder.serve.server import Limits, ServerSettings, open_socket, server_of
from rejoinder.serve.service import Service

_PLAIN = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
"""Not used; httpx would load the certificates of all authorities for each client."""
TEXTS = ("How old are you?", "Where do you live?", "I like pizza.", "How old are you?")


@dataclass(frozen=True)
class Running:
    """A server that runs."""

    client: httpx.Client
    service: Service
    address: str
    port: int
    loop: asyncio.AbstractEventLoop

    @contextmanager
    def held(self) -> Iterator[None]:
        """Keeps the worker busy until the context is left."""
        begun, leave = threading.Event(), threading.Event()

        def wait() -> None:
            begun.set()
            assert leave.wait(120)

        call = self.service.batcher.call(wait, 0)
        done = asyncio.run_coroutine_threadsafe(call, self.loop)
        assert begun.wait(120)
        try:
            yield
        finally:
            leave.set()
            done.result(30)


@contextmanager
def running(
    model: ModelContents, settings: ServerSettings | None = None, texts: Sequence[str] = TEXTS
) -> Iterator[Running]:
    """Runs a server until the context is left."""
    with running_app(create_app(model, settings, texts=[*given_texts(texts)])) as started:
        yield started


@contextmanager
def running_app(app: FastAPI, limits: Limits | None = None) -> Iterator[Running]:
    """Runs an app of `create_app` until the context is left."""
    started, loops = threading.Event(), list[asyncio.AbstractEventLoop]()

    def on_start() -> None:
        loops.append(asyncio.get_running_loop())
        started.set()

    with open_socket("127.0.0.1", 0) as listening:
        port = listening.getsockname()[1]
        server = server_of(app, on_start, limits)
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
        thread.start()
        assert started.wait(120)
        address = f"http://127.0.0.1:{port}"
        client = httpx.Client(base_url=address, timeout=120, trust_env=False, verify=_PLAIN)
        try:
            with client:
                yield Running(client, app.state.service, address, port, loops[0])
        finally:
            server.should_exit = True
            thread.join(120)
        assert not thread.is_alive()
