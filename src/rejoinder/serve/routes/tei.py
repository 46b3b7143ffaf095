"""The routes of text-embeddings-inference."""

from typing import Annotated, Any

from fastapi import APIRouter, Request, Response
from pydantic import BaseModel, Field

from rejoinder.serve import errors
from rejoinder.serve.service import service_of
from rejoinder.text.features import Token
from rejoinder.version import VERSION

router = APIRouter(tags=["text-embeddings-inference"], responses=errors.failures(errors.TeiError))

_AGES = ["How old are you?", "What is your age?"]


class Reading(errors.RequestBody):
    """How to read texts."""

    truncate: errors.Truncate = None
    truncation_direction: errors.CutRight = None
    prompt_name: errors.NoPrompt = None


class Embed(Reading):
    """Texts to encode."""

    inputs: Annotated[errors.Texts, Field(examples=[_AGES])]
    normalize: bool = True
    """Scale embeddings to length 1. If false, return the output of the last layer."""
    dimensions: errors.Dimensions = None
    """Keep this many first values, and scale embeddings to length 1 again."""


@router.post("/embed", response_model=list[list[float]])
@router.post("/", response_model=list[list[float]], include_in_schema=False)
async def embed(request: Request, body: Embed) -> Response:
    """Compute the embedding of each text."""
    service = service_of(request)
    texts = service.limited("inputs", body.inputs)
    dim = service.dimensions(body.dimensions)
    await service.check_lengths("inputs", texts, body.truncate)
    rows = await service.embed(texts, normalize=body.normalize, dim=dim)
    return errors.json_response(rows)


class Comparison(errors.RequestBody):
    """A sentence, and sentences to compare it with."""

    source_sentence: Annotated[errors.Text, Field(examples=[_AGES[0]])]
    sentences: Annotated[errors.Texts, Field(examples=[[_AGES[1], "Where do you live?"]])]


class Similarity(errors.RequestBody):
    """Input of `/similarity`."""

    inputs: Comparison
    parameters: Reading | None = None


@router.post("/similarity", response_model=list[float])
async def similarity(request: Request, body: Similarity) -> Response:
    """Compute the cosine of a sentence with each of the others."""
    service = service_of(request)
    sentences = service.limited("inputs.sentences", body.inputs.sentences)
    source = body.inputs.source_sentence
    truncate = None if body.parameters is None else body.parameters.truncate
    await service.check_lengths("inputs.source_sentence", [source], truncate)
    await service.check_lengths("inputs.sentences", sentences, truncate)
    return errors.json_response(await service.cosines(source, sentences))


class Rerank(errors.RequestBody):
    """A query, and texts to rank."""

    query: Annotated[errors.Text, Field(examples=[_AGES[0]])]
    texts: Annotated[errors.Texts, Field(examples=[["Where do you live?", _AGES[1]]])]
    raw_scores: bool = False
    """Return cosines, from -1 to 1, or with `--scorer` scores from 0 to 5. Otherwise from 0 to 1:
    (1 + cosine) / 2, or a fifth of the score."""
    return_text: bool = False
    truncate: errors.Truncate = None
    truncation_direction: errors.CutRight = None


class Reranked(BaseModel):
    """A text of `/rerank`."""

    index: int
    score: float
    text: str | None = None


@router.post("/rerank", response_model=list[Reranked], response_model_exclude_none=True)
async def rerank(request: Request, body: Rerank) -> Response:
    """Rank texts by their similarity to a query, best first: by the cosine, or by a scorer."""
    service = service_of(request)
    texts = service.limited("texts", body.texts)
    await service.check_lengths("query", [body.query], body.truncate)
    await service.check_lengths("texts", texts, body.truncate)
    scores = await service.scores(body.query, texts, raw=body.raw_scores)
    order = sorted(range(len(texts)), key=lambda index: -scores[index])
    answer: list[dict[str, Any]] = [{"index": index, "score": scores[index]} for index in order]
    if body.return_text:
        answer = [hit | {"text": texts[hit["index"]]} for hit in answer]
    return errors.json_response(answer)


class Tokenize(errors.RequestBody):
    """Texts to split."""

    inputs: Annotated[errors.Texts, Field(examples=[_AGES])]
    add_special_tokens: bool = True
    """No effect: rejoinder's models have no special tokens."""
    prompt_name: errors.NoPrompt = None


class TokenAnswer(BaseModel):
    """A token that the model reads."""

    id: int
    text: str
    special: bool
    start: int | None
    """Index of the first character in the text; null if normalisation moved characters."""
    stop: int | None


@router.post("/tokenize", response_model=list[list[TokenAnswer]])
async def tokenize(request: Request, body: Tokenize) -> Response:
    """List the tokens of each text that the model reads."""
    service = service_of(request)
    found = await service.tokens(service.limited("inputs", body.inputs))
    return errors.json_response([[_told(token) for token in tokens] for tokens in found])


def _told(token: Token) -> dict[str, Any]:
    names = ("id", "text", "start", "stop")
    return {**{name: getattr(token, name) for name in names}, "special": False}


class Facts(BaseModel):
    """Facts in addition to TEI's fields."""

    kind: str
    dim: int
    ranks: bool
    """Whether `/rank` works."""
    explains: bool
    """Whether `/explain` works."""
    language: str | None
    """`en` if the training data is known, since all known data is English; otherwise null."""
    texts: int
    """Number of texts that `/search` searches."""
    corpus: bool
    """Whether they are an index, so that `/corpus` and related routes work."""
    max_body_bytes: int
    needs_key: bool


class Info(BaseModel):
    """What the server serves."""

    model_id: str
    model_sha: str
    model_dtype: str
    model_type: dict[str, dict[str, str]]
    max_concurrent_requests: int
    """Largest number of waiting texts. (TEI counts requests.)"""
    max_input_length: int | None
    """Largest number of tokens that the model reads per text; null if it reads all."""
    max_batch_tokens: None
    max_batch_requests: int
    max_client_batch_size: int
    auto_truncate: bool
    version: str
    rejoinder: Facts


@router.get("/info", response_model=Info)
async def info(request: Request) -> Response:
    """Describe the model and the limits."""
    service = service_of(request)
    settings, description = service.settings, service.description
    answer = Info(
        model_id=service.name,
        model_sha=description["sha256"],
        model_dtype=service.model.weight_type,
        model_type={"embedding": {"pooling": "mean"}},
        max_concurrent_requests=settings.max_queue,
        max_input_length=description["max_tokens"],
        max_batch_tokens=None,
        max_batch_requests=settings.max_batch,
        max_client_batch_size=settings.max_texts,
        auto_truncate=True,
        version=VERSION,
        rejoinder=Facts(
            kind=description["kind"],
            dim=description["dim"],
            ranks=service.ranks,
            explains=service.model.is_sum_of_rows,
            language=service.language,
            texts=service.searched,
            corpus=service.index is not None,
            max_body_bytes=settings.max_body_bytes,
            needs_key=settings.api_key is not None,
        ),
    )
    return errors.json_response(answer.model_dump())


@router.get("/health", response_model=dict[str, str])
async def health() -> Response:
    """Answer if the server is up."""
    return errors.json_response({"status": "ok"})


@router.get("/metrics", response_class=Response, responses={200: {"content": {"text/plain": {}}}})
async def metrics(request: Request) -> Response:
    """Report counters in Prometheus' text format."""
    service = service_of(request)
    return Response(service.metrics.text(), media_type="text/plain; version=0.0.4; charset=utf-8")
