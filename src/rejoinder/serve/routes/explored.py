"""Routes of what `rejoinder explore` found in an index."""

from typing import Annotated

from fastapi import APIRouter, Request, Response
from pydantic import Field
from starlette.concurrency import run_in_threadpool

from rejoinder.conversations.asked import Asked
from rejoinder.conversations.suggestions import Suggested
from rejoinder.conversations.topics import FoundTopics
from rejoinder.index.hits import IndexedText
from rejoinder.serve.errors import (
    RequestBody,
    RequestError,
    TeiError,
    Text,
    TopK,
    failures,
    json_response,
    refused,
)
from rejoinder.serve.searched import Explored
from rejoinder.serve.service import service_of

router = APIRouter(tags=["rejoinder"], responses={**failures(TeiError), 404: {"model": TeiError}})


@router.get("/asked", response_model=list[Asked])
async def asked(request: Request) -> Response:
    """List the questions that were asked again and again, the most frequent first."""
    return _answer(_explored(request).asked)


@router.get("/topics", response_model=FoundTopics)
async def topics(request: Request) -> Response:
    """List what the messages are about."""
    return _answer(_explored(request).topics)


@router.get("/points")
async def points(request: Request) -> Response:
    """Return where the N messages are on the map of topics.

    Little-endian: N float32 x and N float32 y from -1 to 1, N int32 topics (-1: none), and N int32
    months since January 1970 (-1: not known).
    """
    return Response(_explored(request).points, media_type="application/octet-stream")


class Rows(RequestBody):
    """Messages by their places among the points."""

    rows: Annotated[
        list[Annotated[int, Field(strict=True, ge=0)]], Field(max_length=200, examples=[[0]])
    ]


@router.post("/messages", response_model=list[IndexedText])
async def messages(request: Request, body: Rows) -> Response:
    """Return messages of the map. Those that were deleted from the index are left out."""
    ids = _explored(request).ids
    if any(row >= len(ids) for row in body.rows):
        raise refused("rows", f"there are {len(ids):,} points.")
    names = [ids[row] for row in body.rows]
    found = await service_of(request).read_index(lambda index: index.known(names), len(names))
    return json_response(found)


class Suggest(RequestBody):
    """A message, and how many replies to suggest."""

    message: Annotated[Text, Field(examples=["How old are you?"])]
    top_k: Annotated[TopK, Field(le=100)] = 5
    author: Text | None = None
    """Suggest only replies that this author gave."""


@router.post("/suggest", response_model=Suggested)
async def suggest(request: Request, body: Suggest) -> Response:
    """Suggest replies to a message, by what was answered to similar ones.

    The first one for an author fits confidences to these replies, which may take seconds.
    """
    find = _explored(request).suggest
    if find is None:
        raise RequestError(404, "no message of this server is known to answer another.")
    return json_response(await run_in_threadpool(find, body.message, body.top_k, body.author))


def _explored(request: Request) -> Explored:
    found = service_of(request).explored
    if found is None:
        raise RequestError(
            404, "nothing was looked for in the texts of this server; start rejoinder explore."
        )
    return found


def _answer(content: bytes | None) -> Response:
    if content is None:
        raise RequestError(404, "this was not looked for in the texts of this server.")
    return Response(content, media_type="application/json")
