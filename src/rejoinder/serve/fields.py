"""Types of the fields of requests. Lone surrogates become U+FFFD, as in the library."""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from rejoinder.io.formats.surrogates import replace_surrogates


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
            raise ValueError(
                f"a string or a list of strings is needed; element {index} is not a string"
            )
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
"""How the OpenAPI describes `Texts`."""
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
    """Returns the errors of any route, for the OpenAPI."""
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
