"""What tables of settings are made of: a frozen model, and the types of its values."""

from collections.abc import Callable, Mapping
from typing import Annotated, Any, Union

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field


class Settings(BaseModel):
    """A table: unknown keys, converted types ("3" for 3, true for 1), NaN and infinity are faults.

    Constructed directly, a faulty value raises Pydantic's `ValidationError`, which is a
    `ValueError`; `faults.check` tells a user what is wrong instead.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False)


def _as_tuple(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


AsTuple = BeforeValidator(_as_tuple)
"""TOML has lists; settings that can't change have tuples."""


def _printable(value: str) -> str:
    for character in value:
        if ord(character) < 32 or ord(character) == 127:
            raise ValueError(f"holds the control character U+{ord(character):04X}; leave it out")
    return value


Printable = AfterValidator(_printable)
"""Of a string that a file name, a line of TOML and a terminal can hold."""
Text = Annotated[str, Field(max_length=4_096), Printable]
FilledText = Annotated[str, Field(min_length=1, max_length=4_096), Printable]

Units = Annotated[int, Field(ge=1, le=16_384)]
"""Units of a layer."""
Layers = Annotated[tuple[Units, ...], Field(max_length=64), AsTuple]
"""Units of consecutive layers."""
Probability = Annotated[float, Field(ge=0, lt=1)]
"""A share of what is dropped."""


def tagged(kinds: tuple[type[Settings], ...], tag: str, default: str | None = None) -> Any:
    """The type of a table that is one of `kinds`, told apart by the key `tag`.

    Built from a list, so that a registry of kinds can hand over its own.

    Args:
        kinds: each with a field `tag` of a literal string.
        tag: the key that says which of them a table is.
        default: the kind of a table without that key; none: the key is needed.
    """
    # a union of what a tuple holds, which type checkers can't follow
    union = Annotated[Union[kinds], Field(discriminator=tag)]  # type: ignore[valid-type]  # noqa: UP007
    return union if default is None else Annotated[union, BeforeValidator(_filled(tag, default))]


def _filled(tag: str, default: str) -> Callable[[Any], Any]:
    def fill(value: Any) -> Any:
        return {tag: default, **value} if isinstance(value, Mapping) and tag not in value else value

    return fill
