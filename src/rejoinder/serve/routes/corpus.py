"""Routes of an index of messages: what it holds, messages like one, and those around one."""

from dataclasses import dataclass
from typing import Annotated

from fastapi import APIRouter, Request, Response
from pydantic import Field

from rejoinder.index.folder import TextIndex
from rejoinder.index.hits import IndexHit
from rejoinder.index.reader import Summary
from rejoinder.serve.errors import (
    RequestBody,
    RequestError,
    TeiError,
    Text,
    TopK,
    failures,
    json_response,
)
from rejoinder.serve.searched import Explored, MessageHit, with_answered
from rejoinder.serve.service import service_of

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
