"""Creates the FastAPI app of a model."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

from fastapi import FastAPI
from starlette.middleware.cors import CORSMiddleware

from rejoinder.corpus.texts import Entry
from rejoinder.index.folder import TextIndex
from rejoinder.models.folder import ModelContents
from rejoinder.serve.errors import add_handlers
from rejoinder.serve.explored import Explored
from rejoinder.serve.middleware import Checked, CountRequests, LimitBody, host_check, key_check
from rejoinder.serve.routes import ROUTERS
from rejoinder.serve.routes.page import PATHS
from rejoinder.serve.service import Service
from rejoinder.serve.settings import ServerSettings
from rejoinder.version import VERSION

PUBLIC = ("/health", *PATHS)
"""Paths that need no key: the health check, and the page, which asks for the key."""


def create_app(
    model: ModelContents,
    settings: ServerSettings | None = None,
    *,
    texts: Sequence[Entry] = (),
    index: TextIndex | None = None,
    scorer: Path | None = None,
    explored: Explored | None = None,
    threads: int | None = None,
) -> FastAPI:
    """Returns the app that serves a model.

    Args:
        model: Result of `rejoinder.models.folder.read_model`.
        settings: By default those of `ServerSettings`.
        texts: The texts that `/search` searches.
        index: An index to search instead, made with the same model.
        scorer: Folder of a scorer fitted with the model, which `/rerank` takes instead of the
            cosine.
        explored: What was found in the index.
        threads: CPU threads of the encoder; by default all.

    Raises:
        InputError: an argument is out of range.
        ModelError: the model can't be run, or the scorer is damaged or for another model.
        MissingExtraError: it needs a package that is not installed.
    """
    settings = settings or ServerSettings()
    service = Service(model, settings, texts, index, threads, scorer)
    service.explored = explored

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        yield
        service.files.close()

    app = FastAPI(
        lifespan=lifespan,
        redirect_slashes=False,  # it would redirect to the Host that a stranger sent
        title="rejoinder",
        version=VERSION,
        description=f"Sentence embeddings by `{service.name}`.",
        docs_url=None,  # it loads scripts from elsewhere
        redoc_url=None,
    )
    app.state.service = service
    add_handlers(app)
    for router in ROUTERS:
        app.include_router(router)
    # the last one added is called first
    app.add_middleware(LimitBody, most=settings.max_body_bytes)
    if settings.api_key is not None:
        app.add_middleware(Checked, check=key_check(settings.api_key, PUBLIC))
    if settings.cors_origins:
        app.add_middleware(
            CORSMiddleware,
            allow_origins=settings.cors_origins,
            allow_methods=["GET", "POST"],
            allow_headers=["Authorization", "Content-Type"],
        )
    app.add_middleware(Checked, check=host_check(settings.serves))
    app.add_middleware(CountRequests, metrics=service.metrics)
    return app
