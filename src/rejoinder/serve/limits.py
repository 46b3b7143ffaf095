"""What is checked before a request reaches its route: the key, and the size of the body."""

import hmac
from collections.abc import Collection

from starlette.datastructures import Headers
from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from rejoinder.serve.errors import error_response

_DISCARDED = 4
"""A body that is too long is read up to this many times the limit before the answer: a connection
that is closed with bytes unread is reset, and the client may never see the answer."""
_DIGITS = 18
"""Digits of a length that is too long whatever the limit is."""


class RequireKey:
    """Answers 401 to requests without the key, except GET of `public` paths."""

    def __init__(self, app: ASGIApp, *, key: str, public: Collection[str]) -> None:
        self._app, self._key, self._public = app, key.encode(), frozenset(public)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Passes a request on, or refuses it."""
        if scope["type"] != "http" or self._is_public(scope) or self._is_known(scope):
            await self._app(scope, receive, send)
            return
        answer = error_response(
            scope["path"],
            401,
            "this server needs its API key, sent as Authorization: Bearer KEY.",
            code="invalid_api_key",
            headers={"WWW-Authenticate": "Bearer"},
        )
        await answer(scope, receive, send)

    def _is_public(self, scope: Scope) -> bool:
        # the page is at GET /, and TEI's embeddings at POST /
        return scope["method"] in ("GET", "HEAD") and scope["path"] in self._public

    def _is_known(self, scope: Scope) -> bool:
        scheme, _, given = Headers(scope=scope).get("authorization", "").partition(" ")
        right = hmac.compare_digest(given.strip().encode("latin-1", "replace"), self._key)
        return right and scheme.lower() == "bearer"


class RequireHost:
    """Answers 421 to requests for other hosts than those of `names`.

    A page elsewhere can make its own name lead to this machine (DNS rebinding); its requests then
    carry that name.
    """

    def __init__(self, app: ASGIApp, *, names: Collection[str]) -> None:
        self._app, self._names = app, frozenset(names)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Passes a request on, or refuses it."""
        if scope["type"] != "http" or host_of(Headers(scope=scope)) in self._names:
            await self._app(scope, receive, send)
            return
        sentence = "this server is not one of that host; --allowed-host NAME lets it be."
        await error_response(scope["path"], 421, sentence)(scope, receive, send)


def host_of(headers: Headers) -> str:
    """Returns the host that a request names, in lower case and without its port.

    >>> host_of(Headers({"host": "[::1]:8080"})), host_of(Headers({"host": "LOCALHOST"}))
    ('[::1]', 'localhost')
    """
    host = headers.get("host", "").lower()
    return host.partition("]")[0] + "]" if host.startswith("[") else host.partition(":")[0]


class LimitBody:
    """Reads the body of a request, and answers 413 to one that is too long."""

    def __init__(self, app: ASGIApp, *, most: int) -> None:
        self._app, self._most = app, most

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Passes a request on with its whole body, or refuses it."""
        if scope["type"] != "http" or scope["method"] in ("GET", "HEAD", "OPTIONS"):
            await self._app(scope, receive, send)
            return
        declared = Headers(scope=scope).get(
            "content-length", "0"
        )  # uvicorn checks that it is digits
        if len(declared) > _DIGITS or int(declared) > self._most * _DISCARDED:
            await self._refuse(scope, receive, send)
            return
        try:
            body = await self._read(receive)
        except ClientDisconnect:
            return
        if body is None:
            await self._refuse(scope, receive, send)
            return
        waiting: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

        async def replay() -> Message:
            return waiting.pop() if waiting else await receive()

        await self._app(scope, replay, send)

    async def _read(self, receive: Receive) -> bytes | None:
        """Returns the body, or None if it is too long.

        Raises:
            ClientDisconnect: the client went away.
        """
        parts: list[bytes] = []
        size = 0
        while True:
            message = await receive()
            if message["type"] == "http.disconnect":
                raise ClientDisconnect
            part: bytes = message.get("body", b"")
            size += len(part)
            if size <= self._most:
                parts.append(part)
            if size > self._most * _DISCARDED or not message.get("more_body", False):
                return b"".join(parts) if size <= self._most else None

    async def _refuse(self, scope: Scope, receive: Receive, send: Send) -> None:
        sentence = f"the body is too long; at most {self._most:,} bytes are allowed."
        answer = error_response(scope["path"], 413, sentence, headers={"Connection": "close"})
        await answer(scope, receive, send)
