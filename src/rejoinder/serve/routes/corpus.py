"""Routes of an index of messages: what it holds, messages like one, and those around one.

Those of what `rejoinder explore` found in it: questions, topics, and replies to suggest.
"""

from dataclasses import dataclass
from typing import Annotated

from fastapi import APIRouter, Request, Response
from pydantic import Field
from starlette.concurrency import run_in_threadpool

from rejoinder.conversations.asked import Asked
from rejoinder.conversations.suggestions import Suggested
from rejoinder.conversations.topics import FoundTopics
from rejoinder.index.folder import TextIndex
from rejoinder.index.hits import IndexedText, IndexHit
from rejoinder.index.reader import Summary
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
from rejoinder.serve.service import Explored, MessageHit, service_of, with_answered

router = APIRouter(tags=["rejoinder"], responses={**failures(TeiError), 404: {"model": TeiError}})

_Id = Annotated[Text, Field(examples=["1"])]
"""Id of a text of the index."""


@dataclass(frozen=True)
class Corpus(Summary):
    """What the index holds."""

    name: str | None
    """What it was made from; null unless `rejoinder explore` made it."""
    command: str
    """The index, as a command names it."""
    found: list[str]
    """What `rejoinder explore` found in it: routes, without their slash."""


@router.get("/corpus", response_model=Corpus)
async def corpus(request: Request) -> Response:
    """Tell what the index holds: how many texts, from when to when, by whom and where."""
    service = service_of(request)
    summary = await service.read_index(TextIndex.summary)
    found = service.explored or Explored(None, "index/")
    return json_response(
        Corpus(**vars(summary), name=found.name, command=found.command, found=found.found)
    )


class Similar(RequestBody):
    """A text of the index, and how many like it to find."""

    id: _Id
    top_k: Annotated[TopK, Field(le=1_000)] = 10
    where: dict[str, Text | list[Text]] | None = None
    """As in `/search`."""


@router.post("/similar", response_model=list[MessageHit])
async def similar(request: Request, body: Similar) -> Response:
    """Find the texts of the index that mean nearly the same as one of them."""

    def find(index: TextIndex) -> list[IndexHit]:
        _known(index, body.id)
        rows = index.embeddings([body.id])
        [hits] = index.nearest(rows, body.top_k + 1, where=body.where)
        others = [hit for hit in hits if hit.id != body.id][: body.top_k]
        return with_answered([others], index.find)[0]

    return json_response(await service_of(request).read_index(find, body.top_k))


class Around(RequestBody):
    """A message of the index."""

    id: _Id
    context: Annotated[int, Field(strict=True, ge=1, le=1_000)] = 5
    """Number of messages before and after it."""


@router.post("/around", response_model=MessageHit)
async def around(request: Request, body: Around) -> Response:
    """Return a message and those around it, in its thread or channel."""

    def find(index: TextIndex) -> IndexHit:
        _known(index, body.id)
        [[hit]] = with_answered([[index.around(body.id, body.context)]], index.find)
        return hit

    return json_response(await service_of(request).read_index(find, body.context))


def _known(index: TextIndex, name: str) -> None:
    """Checks that the index has a text.

    Raises:
        RequestError: it has not.
    """
    if name not in index:  # opens its latest state
        raise RequestError(404, f"the index has no text with the id {name[:100]!r}.", field="id")


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
    """Messages by their indices among the points."""

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
