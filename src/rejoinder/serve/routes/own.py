"""Our own routes: rank responses, search the server's texts, explain a similarity, draw a map."""

from collections.abc import Sequence
from dataclasses import asdict
from typing import Annotated, Any

from fastapi import APIRouter, Request, Response
from pydantic import BaseModel, Field

from rejoinder.index.folder import IndexHit
from rejoinder.inference.search import Hit
from rejoinder.inference.tokens import Token
from rejoinder.serve.answers import json_response
from rejoinder.serve.errors import RequestError
from rejoinder.serve.fields import RequestBody, TeiError, Text, Texts, TopK, failures
from rejoinder.serve.service import service_of

router = APIRouter(tags=["rejoinder"], responses=failures(TeiError))

_LONGEST = 500
"""Most characters of a sentence that is explained: the answer has a number for each two tokens."""


class HitAnswer(BaseModel):
    """A text that was found."""

    index: int
    score: float
    text: str


class Rank(RequestBody):
    """A message, and the responses to order."""

    message: Annotated[Text, Field(examples=["How old are you?"])]
    responses: Annotated[Texts, Field(examples=[["In Oslo.", "I am twenty."]])]
    top_k: TopK | None = None
    """Number of responses to return; by default all."""


@router.post("/rank", response_model=list[HitAnswer])
async def rank(request: Request, body: Rank) -> Response:
    """Order responses by how well they answer a message, best first."""
    service = service_of(request)
    responses = service.limited("responses", body.responses)
    return json_response(_hits(await service.rank(body.message, responses, body.top_k)))


class IndexHitAnswer(BaseModel):
    """A text of an index that was found."""

    id: str
    score: float
    text: str


class Search(RequestBody):
    """Queries."""

    queries: Annotated[Texts, Field(examples=[["How old are you?"]])]
    top_k: TopK = 10


@router.post(
    "/search",
    response_model=list[list[HitAnswer]] | list[list[IndexHitAnswer]],
    responses={404: {"model": TeiError}},
)
async def search(request: Request, body: Search) -> Response:
    """Find for each query the nearest of the texts that the server was started with."""
    service = service_of(request)
    queries = service.limited("queries", body.queries)
    if not service.searched:
        raise RequestError(
            404, "this server has no texts to search; start it with --texts FILE or --index FOLDER."
        )
    return json_response([_hits(hits) for hits in await service.search(queries, body.top_k)])


class Explain(RequestBody):
    """Two sentences."""

    first: Annotated[Text, Field(max_length=_LONGEST, examples=["How old are you?"])]
    second: Annotated[Text, Field(max_length=_LONGEST, examples=["What is your age?"])]


class Word(BaseModel):
    """A token of a sentence."""

    text: str
    id: int
    start: int | None
    stop: int | None


class Explanation(BaseModel):
    """What each pair of words adds to the cosine."""

    cosine: float
    first: list[Word]
    second: list[Word]
    contributions: list[list[float]]
    """A row for each word of `first`, a number for each of `second`; they sum to `cosine`."""


@router.post("/explain", response_model=Explanation)
async def explain(request: Request, body: Explain) -> Response:
    """Tell which words carry the similarity of two sentences; exact."""
    found = await service_of(request).explain(body.first, body.second)
    return json_response(
        {
            "cosine": found.cosine,
            "first": _words(found.first),
            "second": _words(found.second),
            "contributions": found.contributions,
        }
    )


class Unknown(RequestBody):
    """Texts to judge."""

    inputs: Annotated[Texts, Field(examples=[["How old are you?", "Wie geht es deiner Mutter?"]])]


@router.post("/unknown", response_model=list[float])
async def unknown(request: Request, body: Unknown) -> Response:
    """Tell the share of each text's words that the model does not know; above a half, distrust."""
    service = service_of(request)
    return json_response(await service.unknown(service.limited("inputs", body.inputs)))


class Map(RequestBody):
    """Texts to draw."""

    inputs: Annotated[Texts, Field(examples=[["I like cats.", "I like dogs.", "It rains."]])]


class MapAnswer(BaseModel):
    """Points of a plane."""

    points: list[list[float]]
    """Two coordinates for each text."""
    shares: list[float]
    """The share of the variance of the embeddings that each axis shows."""


@router.post("/map", response_model=MapAnswer)
async def map_(request: Request, body: Map) -> Response:
    """Place texts in the plane that shows most of their differences (principal components)."""
    service = service_of(request)
    drawn = await service.map(service.limited("inputs", body.inputs))
    return json_response({"points": drawn.points, "shares": drawn.shares})


def _hits(hits: Sequence[Hit | IndexHit]) -> list[dict[str, Any]]:
    return [asdict(hit) for hit in hits]


def _words(tokens: tuple[Token, ...]) -> list[dict[str, Any]]:
    return [asdict(token) for token in tokens]
