"""Building blocks of settings tables: a frozen base model and shared value types."""

from collections.abc import Callable, Mapping
from typing import Annotated, Any, Union

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field


class Settings(BaseModel):
    """A table of settings that cannot change.

    Unknown keys, values of another type ("3" for 3, true for 1), NaN and infinity are faults.
    Constructing a table with a faulty value raises Pydantic's `ValidationError`, a `ValueError`.
    `io.schema.faults.check` raises a `ConfigError` written for users instead. The docstring
    of a field is its description in `docs/config.md`.
    """

    model_config = ConfigDict(
        frozen=True, extra="forbid", strict=True, allow_inf_nan=False, use_attribute_docstrings=True
    )


def _as_tuple(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


AsTuple = BeforeValidator(_as_tuple)
"""Converts the lists of TOML to tuples, which frozen settings hold."""


def _printable(value: str) -> str:
    for character in value:
        if ord(character) < 32 or ord(character) == 127:
            raise ValueError(f"holds the control character U+{ord(character):04X}; leave it out")
    return value


Printable = AfterValidator(_printable)
"""Refuses control characters, which file names, lines of TOML and terminals cannot hold."""
Text = Annotated[str, Field(max_length=4_096), Printable]
FilledText = Annotated[str, Field(min_length=1, max_length=4_096), Printable]

Units = Annotated[int, Field(ge=1, le=16_384)]
"""Number of units in a layer."""
Layers = Annotated[tuple[Units, ...], Field(max_length=64), AsTuple]
"""Number of units in each of several consecutive layers."""
Probability = Annotated[float, Field(ge=0, lt=1)]
"""Probability of dropping an item, at least 0 and below 1."""


def tagged(kinds: tuple[type[Settings], ...], tag: str, default: str | None = None) -> Any:
    """Returns the type of a table that is one of `kinds`, told apart by the key `tag`.

    The kinds come as a tuple, so that a registry can pass whatever it holds at that moment. Each
    has a field `tag`, a literal string. A table without the key is of the kind `default`; None
    means that the key is required.
    """
    # type checkers can't follow a union that is built from a tuple
    union = Annotated[Union[kinds], Field(discriminator=tag)]  # type: ignore[valid-type]  # noqa: UP007
    return union if default is None else Annotated[union, BeforeValidator(_filled(tag, default))]


def _filled(tag: str, default: str) -> Callable[[Any], Any]:
    """Returns a validator that adds the default tag to a table without one."""

    def fill(value: Any) -> Any:
        return {tag: default, **value} if isinstance(value, Mapping) and tag not in value else value

    return fill
