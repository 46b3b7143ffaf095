"""Answers every error with JSON: one sentence, in the form of the interface that was called."""

from collections.abc import Mapping, Sequence
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import Response
from starlette.exceptions import HTTPException

from rejoinder.errors import RejoinderError
from rejoinder.io.formats.surrogates import replace_surrogates
from rejoinder.serve.answers import json_response
from rejoinder.serve.batching import OverloadedError, StoppedError

OPENAI = "/v1/"
"""Paths below it belong to OpenAI's interface; errors of all others have the form of TEI's."""
STOPPING = "the server is stopping; send the request to another one."
_RETRY_SECONDS = "1"
_LONGEST_FIELD = 100
_OPENAI_TYPES = {401: "authentication_error", 429: "rate_limit_error"}
_TEI_TYPES = {401: "Unauthorized", 424: "Backend", 429: "Overloaded", 503: "Unhealthy"}
_HTTP = {
    404: "{path} is not a route of this server; GET /openapi.json lists them.",
    405: "{method} {path} is not allowed; GET /openapi.json lists what is.",
    400: "the body is not valid JSON in UTF-8.",
}


class RequestError(Exception):
    """A request that can't be answered, with the status and the sentence that say why."""

    def __init__(
        self, status: int, sentence: str, *, field: str | None = None, code: str | None = None
    ) -> None:
        super().__init__(sentence)
        self.status, self.sentence, self.field, self.code = status, sentence, field, code


def refused(field: str, sentence: str) -> RequestError:
    """Returns the error of a field whose value is not allowed."""
    return RequestError(422, f"{field}: {sentence}", field=field)


def error_response(
    path: str,
    status: int,
    sentence: str,
    *,
    field: str | None = None,
    code: str | None = None,
    headers: Mapping[str, str] | None = None,
) -> Response:
    """Returns the JSON of an error, in the form of the interface that `path` belongs to."""
    content: dict[str, Any]
    sentence, field = replace_surrogates(sentence), field and replace_surrogates(field)
    if path.startswith(OPENAI):
        kind = "server_error" if status >= 500 else "invalid_request_error"
        kind = _OPENAI_TYPES.get(status, kind)
        content = {"error": {"message": sentence, "type": kind, "param": field, "code": code}}
    else:
        kind = "Backend" if status >= 500 else "Validation"
        content = {"error": sentence, "error_type": _TEI_TYPES.get(status, kind)}
    added = dict(headers or {})
    if status in (429, 503):
        added.setdefault("Retry-After", _RETRY_SECONDS)
    return json_response(content, status, added)


def add_handlers(app: FastAPI) -> None:
    """Registers the handlers of all errors."""
    for kind, handler in (
        (RequestError, _on_request_error),
        (RequestValidationError, _on_validation_error),
        (HTTPException, _on_http_error),
        (OverloadedError, _on_overload),
        (StoppedError, _on_stop),
        (RejoinderError, _on_model_error),
        (Exception, _on_fault),
    ):
        app.exception_handler(kind)(handler)


async def _on_request_error(request: Request, error: RequestError) -> Response:
    return error_response(
        request.url.path, error.status, error.sentence, field=error.field, code=error.code
    )


async def _on_validation_error(request: Request, error: RequestValidationError) -> Response:
    field, sentence = first_fault(error.errors())
    return error_response(request.url.path, 422, sentence, field=field)


async def _on_http_error(request: Request, error: HTTPException) -> Response:
    sentence = _HTTP.get(error.status_code, str(error.detail))
    path = request.url.path
    sentence = sentence.format(path=path[:100], method=request.method)
    return error_response(path, error.status_code, sentence, headers=error.headers)


async def _on_overload(request: Request, _error: Exception) -> Response:
    sentence = "the queue of texts is full; send the request again in a second."
    return error_response(request.url.path, 429, sentence)


async def _on_stop(request: Request, _error: Exception) -> Response:
    return error_response(request.url.path, 503, STOPPING)


async def _on_model_error(request: Request, error: Exception) -> Response:
    """Answers what the library refuses, such as a model that can't do what is asked."""
    return error_response(request.url.path, 422, str(error))


async def _on_fault(request: Request, _error: Exception) -> Response:
    sentence = "the server failed on this request; its log has the reason."
    return error_response(request.url.path, 500, sentence)


def first_fault(faults: Sequence[Any]) -> tuple[str | None, str]:
    """Returns the field of the first of Pydantic's faults, and a sentence that names it."""
    fault = faults[0]
    location = [part for part in fault["loc"] if part != "body"]
    kind, told = fault["type"], str(fault["msg"])
    if kind == "json_invalid":
        return None, f"the body is not valid JSON: {fault['ctx']['error']} at byte {location[0]}."
    field = ".".join(map(str, location))[:_LONGEST_FIELD] or None
    if kind == "string_unicode" and field is None:
        return None, "the name of a field holds half of a surrogate pair, which is no character."
    if field is None:
        return None, "the body must be a JSON object, sent with Content-Type: application/json."
    told = told.removeprefix("Value error, ")
    if kind == "missing":
        told = "this field is required"
    elif kind == "extra_forbidden":
        told = "no such field"
    told = told[:1].lower() + told[1:]
    return field, f"{field}: {told.removesuffix('.')}."
