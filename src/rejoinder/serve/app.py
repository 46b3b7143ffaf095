"""Creates the FastAPI app for a model, with the page at `/`.

Also counts requests, and checks their host, key and size before they reach a route.
"""

import hmac
import time
from collections.abc import AsyncIterator, Callable, Collection, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from importlib.resources import files
from pathlib import Path

from fastapi import FastAPI, Request, Response
from starlette.applications import Starlette
from starlette.datastructures import Headers
from starlette.middleware.cors import CORSMiddleware
from starlette.responses import RedirectResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from rejoinder.corpus.texts import Entry
from rejoinder.index.folder import TextIndex
from rejoinder.io.files.hashed import sha256_of
from rejoinder.models.folder import ModelContents
from rejoinder.serve.batching import Metrics
from rejoinder.serve.errors import RequestError, add_handlers, error_response
from rejoinder.serve.routes import ROUTERS
from rejoinder.serve.server import ServerSettings
from rejoinder.serve.service import Explored, Service
from rejoinder.version import VERSION


def create_app(
    model: ModelContents,
    settings: ServerSettings | None = None,
    *,
    texts: Sequence[Entry] = (),
    index: TextIndex | None = None,
    scorer: Path | None = None,
    explored: Callable[[], Explored] | None = None,
    assistants: Starlette | None = None,
    threads: int | None = None,
) -> FastAPI:
    """Returns the app that serves a model.

    Args:
        model: Result of `rejoinder.models.folder.read_model`.
        settings: The default is `ServerSettings()`.
        texts: Texts for `/search`.
        index: An index to search instead, made with the same model.
        scorer: Folder of a scorer fitted with the model, which `/rerank` uses instead of the
            cosine.
        explored: Returns the explored results of the index, see `service.Latest`.
        assistants: App of `serve.mcp.http_app`, whose routes are added.
        threads: CPU threads of the encoder; by default all.

    Raises:
        InputError: an argument is out of range.
        ModelError: the model can't be run, or the scorer is damaged or for another model.
        MissingExtraError: a package that the model needs is not installed.
    """
    settings = settings or ServerSettings()
    service = Service(model, settings, texts, index, threads, scorer)
    service.explored = explored

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        async with AsyncExitStack() as stack:
            if assistants is not None:
                await stack.enter_async_context(assistants.router.lifespan_context(assistants))
            yield
        service.files.close()

    app = FastAPI(
        lifespan=lifespan,
        redirect_slashes=False,  # it would redirect to any Host that a stranger sends
        title="rejoinder",
        version=VERSION,
        description=f"Sentence embeddings by `{service.name}`.",
        docs_url=None,  # it loads scripts from other servers
        redoc_url=None,
    )
    app.state.service = service
    add_handlers(app)
    for router in ROUTERS:
        app.include_router(router)
    if assistants is not None:
        app.router.routes.extend(assistants.routes)
    for path in _PAGE:
        app.add_api_route(path, page, methods=["GET", "HEAD"], include_in_schema=False)
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


_TYPES = {
    ".css": "text/css; charset=utf-8",
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
    ".txt": "text/plain; charset=utf-8",
}
_HEADERS = {
    "Cache-Control": "no-cache",
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
        "img-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "Cross-Origin-Opener-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}
_INDEX = "index.html"


def _read_page() -> dict[str, bytes]:
    """Returns the page's files, by path on the server."""
    folder = files("rejoinder").joinpath("serve", "page")
    read = {f"/page/{file.name}": file.read_bytes() for file in folder.iterdir()}
    return {"/": read.pop(f"/page/{_INDEX}"), **dict(sorted(read.items()))}


_PAGE = _read_page()
"""The page's files, read once, so that requests never access the file system."""
PUBLIC = ("/health", *_PAGE)
"""Paths that need no key: the health check, and the page without its data, which asks for the key.
Browsers omit strict cookies when a link in a chat opens the page, but not in its requests."""


async def page(request: Request) -> Response:
    """Return a file of the page."""
    path = request.scope["route"].path
    kind = _TYPES.get(path[path.rfind(".") :], _TYPES[".html"])
    return Response(_PAGE[path], headers=_HEADERS, media_type=kind)


Check = Callable[[Scope], Response | None]
"""Returns the answer to a request that fails a check; None lets the request pass."""
_COOKIE_SECONDS = 30 * 86_400
_DISCARDED = 4
"""A too long body is read up to this multiple of the limit. If the server closed a connection
with unread bytes, the client might never see the answer."""


class Checked:
    """Answers requests that fail a check."""

    def __init__(self, app: ASGIApp, *, check: Check) -> None:
        self._app, self._check = app, check

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Passes a request on, or answers it."""
        answer = self._check(scope) if scope["type"] == "http" else None
        await (answer or self._app)(scope, receive, send)


def key_check(key: str, public: Collection[str]) -> Check:
    """Returns the check for the key, which may be in a header, a cookie, or the page's address.

    GET of `public` paths needs no key. The page's address with the key sets the cookie, and
    redirects to the address without it.
    """
    kept = sha256_of(key.encode())  # a key may have characters that a cookie may not

    def is_right(given: str, expected: str = key) -> bool:
        return hmac.compare_digest(given.encode("utf-8", "replace"), expected.encode())

    def check(scope: Scope) -> Response | None:
        request = Request(scope)
        # browsers send a host's cookies to all its ports
        cookie = f"rejoinder-{request.scope['server'][1]}"
        scheme, _, given = request.headers.get("authorization", "").partition(" ")
        # the page is at GET /, and TEI's embeddings at POST /
        is_public = scope["method"] in ("GET", "HEAD") and scope["path"] in public
        asked = request.query_params.get("key") if is_public and scope["path"] == "/" else None
        if asked is not None and is_right(asked):
            answer = RedirectResponse("/", 303, {"Cache-Control": "no-store"})
            has_tls = request.headers.get("x-forwarded-proto") == "https"  # set by a proxy
            answer.set_cookie(
                cookie, kept, _COOKIE_SECONDS, secure=has_tls, httponly=True, samesite="strict"
            )
            return answer
        has_key = scheme.lower() == "bearer" and is_right(given.strip())
        needs_none = is_public and asked is None
        if has_key or needs_none or is_right(request.cookies.get(cookie, ""), kept):
            return None
        said = "this server needs its API key; send it as Authorization: Bearer KEY."
        header = {"WWW-Authenticate": "Bearer"}
        error = RequestError(401, said, code="invalid_api_key", headers=header)
        return error_response(scope["path"], error)

    return check


def host_check(serves: Callable[[str], bool]) -> Check:
    """Returns the check for a request's `Host`.

    A web page can point its name at this machine (DNS rebinding). Its requests then carry
    that name.
    """

    def check(scope: Scope) -> Response | None:
        if serves(Headers(scope=scope).get("host", "")):
            return None
        error = RequestError(421, "the Host is not allowed; --allowed-host NAME allows one.")
        return error_response(scope["path"], error)

    return check


class LimitBody:
    """Refuses bodies that are too long."""

    def __init__(self, app: ASGIApp, *, most: int) -> None:
        self._app, self._most = app, most

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Passes a request on. Reading a too long body raises RequestError."""
        declared, size = 0, 0
        if scope["type"] == "http":
            declared = int(Headers(scope=scope).get("content-length", 0))  # uvicorn checked it

        async def limited() -> Message:
            nonlocal size
            message: Message = {"more_body": True}
            while message.get("more_body") and max(size, declared) <= self._most * _DISCARDED:
                message = await receive()
                size += len(message.get("body", b""))
                if size <= self._most:
                    return message
            sentence = f"the body is too long; at most {self._most:,} bytes are allowed."
            raise RequestError(413, sentence, headers={"Connection": "close"})

        await self._app(scope, limited, send)


class CountRequests:
    """Counts each request, with route, status and time."""

    def __init__(self, app: ASGIApp, *, metrics: Metrics) -> None:
        self._app, self._metrics = app, metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Passes a request on, and counts it once it is answered."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        begun, status = time.perf_counter(), 499  # if the client leaves before the answer

        async def noted(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        try:
            await self._app(scope, receive, noted)
        except Exception:  # Starlette answers any exception with 500, outside of this class
            status = 500
            raise
        finally:
            # unknown paths share a label, or strangers could create labels without end
            route = getattr(scope.get("route"), "path", "none")
            self._metrics.count(route, status, time.perf_counter() - begun)
