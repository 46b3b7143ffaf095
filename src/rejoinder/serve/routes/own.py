"""Our own routes: rank responses, search the server's texts, explain a similarity, draw a map.

The routes of `index_router` are for an index of messages: its contents, messages similar to and
around a message, and the explored results: questions, topics, replies to suggest.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Annotated

import numpy as np
from fastapi import APIRouter, Request, Response
from pydantic import Base64Bytes, BaseModel, Field
from starlette.concurrency import run_in_threadpool

from rejoinder.conversations.asked import Asked
from rejoinder.conversations.suggestions import Suggested
from rejoinder.conversations.topics import FoundTopics
from rejoinder.errors import ConditionError
from rejoinder.index.folder import TextIndex
from rejoinder.index.hits import IndexedText, IndexHit, linked_with
from rejoinder.index.reader import Summary
from rejoinder.index.state import Mode
from rejoinder.index.where import read_query
from rejoinder.inference.search import Hit
from rejoinder.inference.why import explain as explained
from rejoinder.protocols import Embeddings
from rejoinder.serve import errors
from rejoinder.serve.sent_files import SentTexts
from rejoinder.serve.service import ExplainedHit, Explored, MessageHit, service_of, with_answered
from rejoinder.text.features import Token

router = APIRouter(tags=["rejoinder"], responses=errors.failures(errors.TeiError))

_LONGEST = 500
"""Largest number of characters of an explained sentence: the answer has a number per token pair."""


class Rank(errors.RequestBody):
    """A message, and the responses to rank."""

    message: Annotated[errors.Text, Field(examples=["How old are you?"])]
    responses: Annotated[errors.Texts, Field(examples=[["In Oslo.", "I am twenty."]])]
    top_k: errors.TopK | None = None
    """How many responses to return; by default all."""
    context: errors.Texts | None = None
    """The turns before the message, oldest first; the last five are read."""


@router.post("/rank", response_model=list[Hit])
async def rank(request: Request, body: Rank) -> Response:
    """Rank responses by how well they answer a message, best first."""
    service = service_of(request)
    responses = service.limited("responses", body.responses)
    turns = [] if body.context is None else service.limited("context", body.context)
    work = partial(service.encoder.rank, body.message, responses, body.top_k, context=turns)
    return errors.json_response(await service.batcher.call(work, len(responses) + 1))


class Search(errors.RequestBody):
    """Queries, and how to search. Fields other than `queries` and `top_k` are for an index."""

    queries: Annotated[errors.Texts, Field(examples=[["How old are you?"]])]
    top_k: errors.TopK = 10
    mode: Mode = "semantic"
    """By meaning (cosine), by `words` (BM25), or by both."""
    weight: Annotated[float, Field(strict=True, ge=0, le=1)] | None = None
    """Share of meaning in a hybrid search. By default the share that `finetune` chose, else .25."""
    where: dict[str, errors.Text | list[errors.Text]] | None = None
    """Conditions on messages: `source`, `author`, `thread`; `since` and `until`, dates."""
    context: Annotated[int, Field(strict=True, ge=0)] = 0
    """Number of messages to return before and after each hit."""
    explain: bool = False
    """Return the words of each hit for which it was found."""
    typed: bool = False
    """Read the query as typed by a person: `"these words"` must occur, `-this` not; `from:ann`,
    `in:general`, `after:2024-01-31`, `before:2024-02-01` and `has:link` are conditions."""


@router.post(
    "/search",
    response_model=list[list[Hit]] | list[list[ExplainedHit]] | list[list[MessageHit]],
    responses={404: {"model": errors.TeiError}},
)
async def search(request: Request, body: Search) -> Response:
    """Find the best of the server's texts for each query."""
    service = service_of(request)
    queries = service.limited("queries", body.queries)
    if not service.searched:
        raise errors.RequestError(404, "no texts to search; start the server with --texts FILE.")
    if body.weight is not None and body.mode != "hybrid":
        raise errors.refused("weight", "it is for a hybrid search.")
    include = {"mode", "weight", "where", "context", "explain"}
    chosen = body.model_dump(include=include, exclude_defaults=True)
    if body.typed:
        try:
            read = [read_query(query) for query in queries]
        except ConditionError as error:
            raise errors.refused("queries", str(error)) from None
        queries, named = [text for text, _ in read], [where for _, where in read if where]
        if named and len(queries) > 1:
            raise errors.refused("typed", "conditions in a query are for one query at a time.")
        for where in named:
            chosen["where"] = {**(body.where or {}), **where}
    return errors.json_response(await service.search(queries, body.top_k, chosen))


class Queries(errors.RequestBody):
    """Queries as in a search."""

    queries: Annotated[errors.Texts, Field(examples=[["How do I reset my pasword?"]])]


@router.post("/read", response_model=list[dict[str, str]])
async def read(request: Request, body: Queries) -> Response:
    """List the words of a query that a search reads as other words, such as misspelt ones."""
    service = service_of(request)
    queries = service.limited("queries", body.queries)
    return errors.json_response(await service.read_as(queries))


class SentFile(errors.RequestBody):
    """A file: lines, a table, JSON lines, or an export of conversations."""

    name: Annotated[errors.Text, Field(examples=["chat.txt"])]
    content: Annotated[Base64Bytes, Field(examples=["SG93IG9sZCBhcmUgeW91Pw=="])]


@router.post("/texts", response_model=SentTexts)
async def texts(request: Request, body: SentFile) -> Response:
    """Read the texts of a file: its lines or rows, or the messages of an export."""
    content = await service_of(request).files.read(body.name, body.content)
    return Response(content, media_type="application/json")


class Explain(errors.RequestBody):
    """Two sentences."""

    first: Annotated[errors.Text, Field(max_length=_LONGEST, examples=["How old are you?"])]
    second: Annotated[errors.Text, Field(max_length=_LONGEST, examples=["What is your age?"])]


class Explanation(BaseModel):
    """What each pair of words adds to the cosine."""

    cosine: float
    first: list[Token]
    second: list[Token]
    contributions: list[list[float]]
    """A row per word of `first` and a column per word of `second`. The sum is `cosine`."""


@router.post("/explain", response_model=Explanation)
async def explain(request: Request, body: Explain) -> Response:
    """Explain exactly which words make two sentences similar."""
    service = service_of(request)
    work = partial(explained, service.model, body.first, body.second)
    return errors.json_response(await service.batcher.call(work, 2))


class Unknown(errors.RequestBody):
    """Texts to check."""

    inputs: Annotated[
        errors.Texts, Field(examples=[["How old are you?", "Wie geht es deiner Mutter?"]])
    ]


@router.post("/unknown", response_model=list[float])
async def unknown(request: Request, body: Unknown) -> Response:
    """Return the share of each text's words that the model does not know."""
    service = service_of(request)
    texts = service.limited("inputs", body.inputs)
    work = partial(service.encoder.unknown_share, texts)
    return errors.json_response(await service.batcher.call(work, len(texts)))


class Map(errors.RequestBody):
    """Texts to place on a map."""

    inputs: Annotated[errors.Texts, Field(examples=[["I like cats.", "I like dogs.", "It rains."]])]


class MapAnswer(BaseModel):
    """Points in a plane."""

    points: list[list[float]]
    """Two coordinates per text."""
    shares: list[float]
    """Share of the embeddings' variance that each axis shows."""


@router.post("/map", response_model=MapAnswer)
async def map_(request: Request, body: Map) -> Response:
    """Place texts in the plane that shows most of their differences (principal components)."""
    service = service_of(request)
    texts = service.limited("inputs", body.inputs)
    rows = await service.embed(texts)
    points, shares = await service.batcher.call(partial(plane_of, rows), len(texts))
    return errors.json_response({"points": points, "shares": shares})


def plane_of(embeddings: Embeddings) -> tuple[Embeddings, list[float]]:
    """Returns (N, 2) points of (N, D) embeddings on their first two principal components.

    Also returns the share of the variance that each axis shows. The points lie around the origin.
    Each axis points to where its largest coordinate is positive, so equal texts give equal maps.

    >>> plane_of(np.array([[0, 0], [4, 0], [0, 2], [4, 2]], np.float32))[1]
    [0.8, 0.2]
    """
    centred = embeddings.astype(np.float64)
    centred -= centred.mean(axis=0)
    few = len(centred) < centred.shape[1]
    # the smaller of the two products has the same eigenvalues as the larger
    values, vectors = np.linalg.eigh(centred @ centred.T if few else centred.T @ centred)
    variances, axes = values[:-3:-1].clip(0), vectors[:, :-3:-1]
    points = axes * np.sqrt(variances) if few else centred @ axes
    points *= np.where(points.max(axis=0) < -points.min(axis=0), -1, 1)
    missing = 2 - len(variances)
    shares = np.pad(variances / max(float(values.sum()), 1e-30), (0, missing)).round(6)
    return np.pad(points, ((0, 0), (0, missing))).astype(np.float32), shares.tolist()


index_router = APIRouter(
    tags=["rejoinder"],
    responses={**errors.failures(errors.TeiError), 404: {"model": errors.TeiError}},
)

_Id = Annotated[errors.Text, Field(examples=["1"])]
"""Id of a text of the index."""


@dataclass(frozen=True)
class Corpus(Summary):
    """Contents of the index."""

    name: str | None
    """Its source; null unless `rejoinder explore` made it."""
    command: str
    """The index, as written in a command."""
    read: str
    """Description of what was read; empty unless `rejoinder explore` read an export."""
    found: list[str]
    """Results of `rejoinder explore` for it: routes, without their slash."""


@index_router.get("/corpus", response_model=Corpus)
async def corpus(request: Request) -> Response:
    """Describe the index: how many texts, from when to when, by whom and where."""
    service = service_of(request)
    summary = await service.read_index(TextIndex.summary)
    found = Explored(None, "index/") if service.explored is None else service.explored()
    more = {name: getattr(found, name) for name in ("name", "command", "read", "found")}
    return errors.json_response(Corpus(**vars(summary), **more))


class Similar(errors.RequestBody):
    """A text of the index, and how many similar texts to find."""

    id: _Id
    top_k: Annotated[errors.TopK, Field(le=1_000)] = 10
    where: dict[str, errors.Text | list[errors.Text]] | None = None
    """As in `/search`."""


@index_router.post("/similar", response_model=list[MessageHit])
async def similar(request: Request, body: Similar) -> Response:
    """Find texts of the index that mean nearly the same as one of its texts."""

    def find(index: TextIndex) -> list[IndexHit]:
        _known(index, body.id)
        rows = index.embeddings([body.id])
        [hits] = index.nearest(rows, body.top_k + 1, where=body.where)
        others = [hit for hit in hits if hit.id != body.id][: body.top_k]
        return with_answered([others], index.find)[0]

    return errors.json_response(await service_of(request).read_index(find, body.top_k))


class Around(errors.RequestBody):
    """A message of the index."""

    id: _Id
    context: Annotated[int, Field(strict=True, ge=1, le=1_000)] = 5
    """Number of messages before and after it."""


@dataclass(frozen=True)
class MessageAround(MessageHit):
    """A message with its neighbours."""

    exchange: Sequence[IndexedText] = ()
    """The message and the nearest messages that links connect with it, even far ones, in order:
    what it answers and what that answers, and what answers any of these."""


_FAR, _MOST = 200, 30
"""Messages before and after one to search for its exchange, and its largest size. Of 196,570
messages of #ubuntu, each answered one of the 60 before it, and no exchange had more than 29."""


@index_router.post("/around", response_model=MessageAround)
async def around(request: Request, body: Around) -> Response:
    """Return a message with its neighbours in its thread or channel."""

    def find(index: TextIndex) -> IndexHit:
        _known(index, body.id)
        far = index.around(body.id, max(body.context, _FAR))
        before, after = far.before[-body.context :], far.after[: body.context]
        [[hit]] = with_answered([[replace(far, before=before, after=after)]], index.find)
        return MessageAround(**vars(hit), exchange=_exchange(index, far))

    return errors.json_response(await service_of(request).read_index(find, body.context))


def _exchange(index: TextIndex, hit: IndexHit) -> list[IndexedText]:
    """Returns the messages linked with a message, as in `MessageAround`."""
    own = IndexedText(hit.id, hit.text, hit.about)
    linked = linked_with(hit.id, [*hit.before, own, *hit.after])
    before, after = ([one for one in some if one.id in linked] for some in (hit.before, hit.after))
    # the answered message may be further away
    earlier = index.known(sorted(linked - {one.id for one in (*before, own, *after)}))
    earlier.sort(key=lambda one: one.about.get("time") or 0.0)
    return [*[*earlier, *before][-_MOST:], own, *after[:_MOST]]


def _known(index: TextIndex, name: str) -> None:
    """Checks that the index has a text.

    Raises:
        RequestError: it does not.
    """
    if name not in index:  # opens its latest state
        raise errors.RequestError(404, f"the index has no id {name[:100]!r}.", field="id")


@index_router.get("/asked", response_model=list[Asked])
async def asked(request: Request) -> Response:
    """List the questions that were asked again and again, the most frequent first."""
    return _answer(_explored(request).asked)


@index_router.get("/topics", response_model=FoundTopics)
async def topics(request: Request) -> Response:
    """List the topics of the messages."""
    return _answer(_explored(request).topics)


@index_router.get("/points")
async def points(request: Request) -> Response:
    """Return where the N messages are on the map of topics.

    Little-endian: N float32 x and N float32 y from -1 to 1, N int32 topics (-1: none), and N int32
    months since January 1970 (-1: not known).
    """
    return Response(_explored(request).points, media_type="application/octet-stream")


class Rows(errors.RequestBody):
    """Messages by their position among the points."""

    rows: Annotated[
        list[Annotated[int, Field(strict=True, ge=0)]], Field(max_length=200, examples=[[0]])
    ]


@index_router.post("/messages", response_model=list[IndexedText])
async def messages(request: Request, body: Rows) -> Response:
    """Return messages of the map. Messages deleted from the index are left out."""
    ids = _explored(request).ids
    if any(row >= len(ids) for row in body.rows):
        raise errors.refused("rows", f"there are {len(ids):,} points.")
    names = [ids[row] for row in body.rows]
    found = await service_of(request).read_index(lambda index: index.known(names), len(names))
    return errors.json_response(found)


class Suggest(errors.RequestBody):
    """A message, and how many replies to suggest."""

    message: Annotated[errors.Text, Field(examples=["How old are you?"])]
    top_k: Annotated[errors.TopK, Field(le=100)] = 5
    author: errors.Text | None = None
    """Suggest only replies by this author."""


@index_router.post("/suggest", response_model=Suggested)
async def suggest(request: Request, body: Suggest) -> Response:
    """Suggest replies to a message, from the answers to similar ones.

    The first request for an author fits confidences to these replies, which may take seconds.
    """
    find = _explored(request).suggest
    if find is None:
        raise errors.RequestError(404, "no message of this server is known to answer another.")
    return errors.json_response(
        await run_in_threadpool(find, body.message, body.top_k, body.author)
    )


def _explored(request: Request) -> Explored:
    found = service_of(request).explored
    if found is None:
        raise errors.RequestError(404, "nothing was explored; start it with rejoinder explore.")
    return found()


def _answer(content: bytes | None) -> Response:
    if content is None:
        raise errors.RequestError(404, "this was not computed for the server's texts.")
    return Response(content, media_type="application/json")
