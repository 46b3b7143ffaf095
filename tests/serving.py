"""A real server on a free port of the loopback, in a thread, for tests of `rejoinder.serve`."""

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import httpx
from fastapi import FastAPI

from rejoinder.models.folder import ModelContents
from rejoinder.serve.app import create_app, open_socket, server_of
from rejoinder.serve.connections import Limits
from rejoinder.serve.service import Service
from rejoinder.serve.settings import ServerSettings

TEXTS = ("How old are you?", "Where do you live?", "I like pizza.", "How old are you?")


@dataclass(frozen=True)
class Running:
    """A server that runs."""

    client: httpx.Client
    service: Service
    address: str
    port: int


@contextmanager
def running(
    model: ModelContents, settings: ServerSettings | None = None, texts: Sequence[str] = TEXTS
) -> Iterator[Running]:
    """Runs a server until the context is left."""
    with running_app(create_app(model, settings, texts=texts)) as started:
        yield started


@contextmanager
def running_app(app: FastAPI, limits: Limits | None = None) -> Iterator[Running]:
    """Runs an app of `create_app` until the context is left."""
    started = threading.Event()
    with open_socket("127.0.0.1", 0) as listening:
        port = listening.getsockname()[1]
        server = server_of(app, started.set, limits)
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
        thread.start()
        assert started.wait(30)
        address = f"http://127.0.0.1:{port}"
        with httpx.Client(base_url=address, timeout=30, trust_env=False) as client:
            yield Running(client, app.state.service, address, port)
        app.state.service.drain.begin()
        thread.join(30)
        assert not thread.is_alive()
