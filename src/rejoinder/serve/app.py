"""Creates the FastAPI app of a model, and the uvicorn server that runs it."""

import logging
import os
import socket
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager

import uvicorn
from fastapi import FastAPI
from starlette.middleware.cors import CORSMiddleware

from rejoinder.errors import InputError
from rejoinder.index.folder import TextIndex
from rejoinder.models.folder import ModelContents
from rejoinder.serve.connections import Limits, OncePerMinute, limited_protocol, most_connections
from rejoinder.serve.errors import add_handlers
from rejoinder.serve.lifecycle import DrainingServer, RefuseWhileStopping
from rejoinder.serve.limits import LimitBody, RequireHost, RequireKey
from rejoinder.serve.metrics import CountRequests
from rejoinder.serve.routes import all_routers
from rejoinder.serve.routes.page import PATHS
from rejoinder.serve.service import Service
from rejoinder.serve.settings import ServerSettings
from rejoinder.version import VERSION

PUBLIC = ("/health", *PATHS)
"""Paths that need no key: whether the server lives, and the page, which asks for the key."""
_BACKLOG = 2_048


def create_app(
    model: ModelContents,
    settings: ServerSettings | None = None,
    *,
    texts: Sequence[str] = (),
    index: TextIndex | None = None,
    threads: int | None = None,
) -> FastAPI:
    """Returns the app that serves a model.

    Args:
        model: Result of `rejoinder.models.folder.read_model`.
        settings: By default those of `ServerSettings`.
        texts: What `/search` searches.
        index: What it searches in place of texts; made with the same model.
        threads: CPU threads of the encoder, by default all.

    Raises:
        InputError: an argument is out of range.
        ModelError: the model can't be run.
        MissingExtraError: it needs a package that is not installed.
    """
    settings = settings or ServerSettings()
    service = Service(model, settings, texts, index, threads)

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        yield
        service.close()

    app = FastAPI(
        redirect_slashes=False,  # the address would be made of the Host that a stranger sent
        title="rejoinder",
        version=VERSION,
        description=f"Sentence embeddings by `{service.name}`.",
        docs_url=None,  # these pages load scripts from elsewhere
        redoc_url=None,
        lifespan=lifespan,
    )
    app.state.service = service
    add_handlers(app)
    for router in all_routers():
        app.include_router(router)
    # the last one added is called first
    app.add_middleware(LimitBody, most=settings.max_body_bytes)
    if settings.api_key is not None:
        app.add_middleware(RequireKey, key=settings.api_key, public=PUBLIC)
    if settings.cors_origins:
        app.add_middleware(
            CORSMiddleware,
            allow_origins=settings.cors_origins,
            allow_methods=["GET", "POST"],
            allow_headers=["Authorization", "Content-Type"],
        )
    if settings.served_hosts:
        app.add_middleware(RequireHost, names=settings.served_hosts)
    app.add_middleware(CountRequests, metrics=service.metrics)
    app.add_middleware(RefuseWhileStopping, drain=service.drain)
    return app


def open_socket(host: str, port: int) -> socket.socket:
    """Returns a socket that listens on an address; port 0 is a free one.

    Raises:
        InputError: the address is not one of this machine, or the port is taken.
    """
    listening: socket.socket | None = None
    try:
        [(family, kind, protocol, _, address), *_] = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM
        )
        # asyncio sends small answers at once only where the socket names its protocol; without
        # that each waits 40 ms for the client's acknowledgement
        listening = socket.socket(family, kind, protocol)
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind(address)
        listening.listen(_BACKLOG)
        return listening
    except OSError as error:
        if listening is not None:
            listening.close()
        # Python adds the address to the text of the operating system
        number = error.errno or 0
        reason = (os.strerror(number) if number > 0 else str(error.strerror or error)).lower()
        raise InputError(f"can't listen on {host} port {port}: {reason}.") from None


def server_of(
    app: FastAPI, started: Callable[[], None] = lambda: None, limits: Limits | None = None
) -> DrainingServer:
    """Returns a server for an app of `create_app`; `run(sockets=[…])` answers until it is stopped.

    SIGTERM and SIGINT stop it where it runs in the main thread, `service.drain.begin()` anywhere.
    `started` is called when the first request can be answered. `limits` are those of connections.
    """
    service: Service = app.state.service
    for name in ("asyncio", "uvicorn.error"):
        logger = logging.getLogger(name)
        if not any(isinstance(known, OncePerMinute) for known in logger.filters):
            logger.addFilter(OncePerMinute())
    config = uvicorn.Config(
        app,
        http=limited_protocol(limits or Limits(most_connections())),
        access_log=False,
        log_level="error",  # a warning for each malformed request would let strangers fill the log
        server_header=False,
        proxy_headers=False,
        timeout_keep_alive=30,
        timeout_graceful_shutdown=1,
    )
    return DrainingServer(config, service.drain, service.settings.drain_seconds, started)
