"""The routes of OpenAI's interface: embeddings and the list of models."""

import base64
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Request, Response
from pydantic import BaseModel, BeforeValidator, Field

from rejoinder.serve import errors
from rejoinder.serve.service import Service, service_of

router = APIRouter(prefix="/v1", tags=["OpenAI"], responses=errors.failures(errors.OpenAIError))


def _no_token_ids(value: Any) -> Any:
    if isinstance(value, list) and value and isinstance(value[0], int | list):
        raise ValueError("token ids mean other words to this model; send strings")
    return value


class EmbeddingsRequest(errors.RequestBody):
    """Texts to encode."""

    # validators run from the last to the first
    input: Annotated[
        errors.Texts,
        BeforeValidator(_no_token_ids, json_schema_input_type=errors.STATED_TEXTS),
        Field(examples=["How old are you?"]),
    ]
    model: Annotated[errors.Text | None, Field(examples=["rejoinder-base"])] = None
    """The served model's name, as in `/v1/models`; may be left out."""
    encoding_format: Literal["float", "base64"] = "float"
    dimensions: errors.Dimensions = None
    """Keep this many first values, and scale embeddings to length 1 again."""
    user: errors.Text | None = None
    """Ignored."""


class Embedding(BaseModel):
    """The embedding of one text."""

    object: Literal["embedding"]
    index: int
    embedding: list[float] | str
    """Numbers, or little-endian float32 in base64."""


class Usage(BaseModel):
    """Number of tokens in the texts."""

    prompt_tokens: int
    total_tokens: int


class EmbeddingsAnswer(BaseModel):
    """The embeddings of all texts, in order."""

    object: Literal["list"]
    data: list[Embedding]
    model: str
    usage: Usage


@router.post(
    "/embeddings", response_model=EmbeddingsAnswer, responses={404: {"model": errors.OpenAIError}}
)
async def embeddings(request: Request, body: EmbeddingsRequest) -> Response:
    """Compute the embedding of each text."""
    service = service_of(request)
    _check_model(service, body.model)
    texts = service.limited("input", body.input)
    rows, tokens = await service.embed_counted(texts, dim=service.dimensions(body.dimensions))
    values: list[Any] = list(rows)
    if body.encoding_format == "base64":
        little = rows.astype("<f4", copy=False)
        values = [base64.b64encode(row.tobytes()).decode() for row in little]
    data = [
        {"object": "embedding", "index": index, "embedding": value}
        for index, value in enumerate(values)
    ]
    usage = {"prompt_tokens": tokens, "total_tokens": tokens}
    return errors.json_response(
        {"object": "list", "data": data, "model": service.name, "usage": usage}
    )


class Model(BaseModel):
    """A served model."""

    id: str
    object: Literal["model"]
    created: int
    owned_by: str


class Models(BaseModel):
    """All served models."""

    object: Literal["list"]
    data: list[Model]


@router.get("/models", response_model=Models)
async def models(request: Request) -> Response:
    """List the served model."""
    return errors.json_response({"object": "list", "data": [_model(service_of(request))]})


@router.get("/models/{name}", response_model=Model, responses={404: {"model": errors.OpenAIError}})
async def model(request: Request, name: str) -> Response:
    """Describe the served model."""
    service = service_of(request)
    _check_model(service, name)
    return errors.json_response(_model(service))


def _model(service: Service) -> dict[str, Any]:
    return {"id": service.name, "object": "model", "created": 0, "owned_by": "rejoinder"}


def _check_model(service: Service, name: str | None) -> None:
    if name is not None and name != service.name:
        said = f"model: {name[:100]!r} is not served here; {service.name!r} is."
        raise errors.RequestError(404, said, field="model", code="model_not_found")
