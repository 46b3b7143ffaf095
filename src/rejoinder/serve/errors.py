"""JSON answers. An error is one sentence, in the form of the called interface.

Also defines the types of request fields. Lone surrogates become U+FFFD, as in the library.
"""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal

import orjson
from fastapi import FastAPI, HTTPException, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import Response
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field
from starlette.exceptions import HTTPException as RoutingError

from rejoinder.errors import RejoinderError
from rejoinder.io.formats.text_lines import replace_surrogates

OPENAI = "/v1/"
"""Paths of OpenAI's interface. On all other paths, errors have TEI's form."""
_RETRY_SECONDS = "1"
_LONGEST_FIELD = 100
_OPENAI_TYPES = {401: "authentication_error", 429: "rate_limit_error"}
_TEI_TYPES = {401: "Unauthorized", 429: "Overloaded", 503: "Unhealthy"}
_HTTP = {
    404: "{path} is not a route of this server; GET /openapi.json lists them.",
    405: "{method} {path} is not allowed; GET /openapi.json lists the allowed methods.",
    400: "the body is not valid JSON in UTF-8.",
}


class RequestError(HTTPException):
    """A request that can't be answered: the status, and a sentence with the reason."""

    def __init__(
        self,
        status: int,
        sentence: str,
        *,
        field: str | None = None,
        code: str | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(status, sentence, headers)
        self.field, self.code = field, code


def refused(field: str, sentence: str) -> RequestError:
    """Returns the error for a field with a wrong value."""
    return RequestError(422, f"{field}: {sentence}", field=field)


def json_response(
    content: Any, status: int = 200, headers: Mapping[str, str] | None = None
) -> Response:
    """Returns `content` as JSON. It may hold dataclasses, and NumPy arrays in C order.

    Numbers of embeddings are written as the shortest text of a float32.
    """
    body = orjson.dumps(content, option=orjson.OPT_SERIALIZE_NUMPY)
    return Response(body, status, headers, media_type="application/json")


def error_response(path: str, error: RequestError) -> Response:
    """Returns an error as JSON, in the form of the interface that `path` belongs to."""
    status, content = error.status_code, dict[str, Any]()
    sentence, field = replace_surrogates(error.detail), error.field
    if path.startswith(OPENAI):
        kind = "server_error" if status >= 500 else "invalid_request_error"
        kind, field = _OPENAI_TYPES.get(status, kind), field and replace_surrogates(field)
        content["error"] = {"message": sentence, "type": kind, "param": field, "code": error.code}
    else:
        kind = "Backend" if status >= 500 else "Validation"
        content |= {"error": sentence, "error_type": _TEI_TYPES.get(status, kind)}
    retry = {"Retry-After": _RETRY_SECONDS} if status in (429, 503) else {}
    return json_response(content, status, {**retry, **(error.headers or {})})


def add_handlers(app: FastAPI) -> None:
    """Registers the handlers of all errors."""

    @app.exception_handler(RoutingError)
    async def on_http_error(request: Request, error: RoutingError) -> Response:
        path = request.url.path
        if not isinstance(error, RequestError):
            sentence = _HTTP.get(error.status_code, str(error.detail))
            sentence = sentence.format(path=path[:100], method=request.method)
            error = RequestError(error.status_code, sentence, headers=error.headers)
        return error_response(path, error)

    @app.exception_handler(RequestValidationError)
    async def on_validation_error(request: Request, error: RequestValidationError) -> Response:
        field, sentence = _first_fault(error.errors())
        return error_response(request.url.path, RequestError(422, sentence, field=field))

    @app.exception_handler(RejoinderError)
    async def on_model_error(request: Request, error: RejoinderError) -> Response:
        """Answers when the library raises an error, for example because the model can't do it."""
        return error_response(request.url.path, RequestError(422, str(error)))

    @app.exception_handler(Exception)
    async def on_fault(request: Request, _: Exception) -> Response:
        sentence = "the server failed on this request; its log has the reason."
        return error_response(request.url.path, RequestError(500, sentence))


def _first_fault(faults: Sequence[Any]) -> tuple[str | None, str]:
    """Returns the field of the first of Pydantic's errors, and a sentence that names it."""
    fault = faults[0]
    location = [part for part in fault["loc"] if part != "body"]
    kind, told = fault["type"], str(fault["msg"])
    if kind == "json_invalid":
        return None, f"the body is not valid JSON: {fault['ctx']['error']} at byte {location[0]}."
    field = ".".join(map(str, location))[:_LONGEST_FIELD] or None
    if kind == "string_unicode" and field is None:
        return None, "the name of a field holds half of a surrogate pair."
    if field is None:
        return None, "the body must be a JSON object, sent with Content-Type: application/json."
    told = {"missing": "this field is required", "extra_forbidden": "no such field"}.get(kind, told)
    told = told.removeprefix("Value error, ").removesuffix(".")
    return field, f"{field}: {told[:1].lower()}{told[1:]}."


class RequestBody(BaseModel):
    """A request's body. An unknown field is an error."""

    model_config = ConfigDict(extra="forbid", frozen=True)


def _clean(value: Any) -> Any:
    if isinstance(value, str) and not value.isascii():
        return replace_surrogates(value)
    return value


def _as_list(value: Any) -> list[str]:
    """Returns a string or a list of strings as a list."""
    if isinstance(value, str):
        return [_clean(value)]
    if not isinstance(value, list):
        raise ValueError("a string or a list of strings is needed")
    for index, item in enumerate(value):
        if not isinstance(item, str):
            raise ValueError(f"a list of strings is needed; element {index} is not a string")
    if not value:
        raise ValueError("the list is empty; send at least one text")
    return [_clean(item) for item in value]


def _no_prompt(value: Any) -> None:
    if value is not None:
        raise ValueError("rejoinder's models have no prompts; leave this out")


def _right(value: Any) -> Any:
    if isinstance(value, str) and value.lower() == "left":
        raise ValueError("texts are cut only at their end; leave this out, or send 'Right'")
    return value.capitalize() if isinstance(value, str) else value


Text = Annotated[str, BeforeValidator(_clean)]
"""A string."""
STATED_TEXTS = str | Annotated[list[str], Field(min_length=1)]
"""Description of `Texts` in the OpenAPI schema."""
Texts = Annotated[list[str], BeforeValidator(_as_list, json_schema_input_type=STATED_TEXTS)]
"""A string or a list of strings, as a list. `Service.limited` counts them."""
NoPrompt = Annotated[None, BeforeValidator(_no_prompt)]
"""TEI's `prompt_name`, which clients may send as null."""
CutRight = Annotated[Literal["Right"] | None, BeforeValidator(_right)]
"""TEI's `truncation_direction`."""
Truncate = bool | None
"""TEI's `truncate`: false refuses texts with more tokens than the model reads."""
Dimensions = Annotated[int | None, Field(strict=True, ge=1)]
"""How many first entries of embeddings to keep."""
TopK = Annotated[int, Field(strict=True, ge=1)]
"""Number of hits."""


class TeiError(BaseModel):
    """An error in text-embeddings-inference's form."""

    error: str
    error_type: str


class OpenAIFault(BaseModel):
    """The content of an error in OpenAI's form."""

    message: str
    type: str
    param: str | None
    code: str | None


class OpenAIError(BaseModel):
    """An error in OpenAI's form."""

    error: OpenAIFault


def failures(model: type[BaseModel]) -> dict[int | str, dict[str, Any]]:
    """Returns the errors that any route can have, for the OpenAPI schema."""
    meanings = {
        400: "The body is not JSON in UTF-8",
        401: "The API key is missing or wrong",
        413: "The body is too long",
        422: "A field is not valid; the sentence names it",
        429: "Too many texts are waiting",
    }
    return {
        status: {"model": model, "description": meaning} for status, meaning in meanings.items()
    }
