"""Routes of what `rejoinder explore` found in an index."""

from fastapi import APIRouter, Request, Response
from pydantic import BaseModel

from rejoinder.serve.errors import RequestError
from rejoinder.serve.explored import Explored
from rejoinder.serve.fields import TeiError, failures
from rejoinder.serve.service import service_of

router = APIRouter(tags=["rejoinder"], responses={**failures(TeiError), 404: {"model": TeiError}})


class Reply(BaseModel):
    """Replies that say nearly the same."""

    id: str
    text: str
    author: str | None
    time: float | None
    """Seconds since 1970 in UTC."""
    count: int
    """How often it was said."""


class Asked(BaseModel):
    """Messages that ask the same."""

    id: str
    text: str
    count: int
    authors: int
    """Number of different authors; 0 if none is known."""
    first: float | None
    last: float | None
    ways: list[str]
    """Other ways in which it was asked."""
    ids: list[str]
    """Ids of the messages, at most 50."""
    replies: list[Reply]
    """The most frequent first."""
    replied: int
    """Number of all replies."""
    begins: bool
    """Whether they begin conversations, or answer messages."""


@router.get("/asked", response_model=list[Asked])
async def asked(request: Request) -> Response:
    """List the questions that were asked again and again, the most frequent first."""
    return _answer(_explored(request).asked)


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
