"""Pydantic's errors in plain words: the key, its value, and what is allowed."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from pydantic import ValidationError
from pydantic_core import ErrorDetails, PydanticCustomError

from rejoinder.errors import ConfigError, nearest
from rejoinder.io.schema.base import Settings
from rejoinder.io.schema.nodes import Node, choices
from rejoinder.io.schema.toml import toml_value

Table = TypeVar("Table", bound=Settings)
_SEVERAL = "several"
_OF_KEY = "[key]"
"""Pydantic's mark in an error's location for a fault of a key itself, not of its value."""
_LONGEST = 60
"""Number of characters of a value that a message shows."""


def check(model: type[Table], values: object, where: str) -> Table:
    """Returns plain values, such as TOML or JSON holds, as a table of settings.

    `where` is the name of the values in error messages.

    Raises:
        ConfigError: The values have faults. The message lists all of them, one per line.
    """
    try:
        return model.model_validate(values)
    except ValidationError as error:
        raise refused(where, faults(model, error)) from None


def refused(where: str, lines: Sequence[str]) -> ConfigError:
    """Returns the error for some faults: a single fault as a sentence, several one per line."""
    if len(lines) == 1:
        message = f"{where}: {lines[0]}" + ("" if lines[0].endswith("?") else ".")
    else:
        message = "\n  ".join([f"{where} has {len(lines)} faults:", *lines])
    # an argument that is not UTF-8 contains surrogates, which a terminal can't print
    return ConfigError(message.encode("utf-8", "backslashreplace").decode("utf-8"))


def several(lines: Sequence[str]) -> PydanticCustomError:
    """Returns the error that a validator raises for several faults, one line for each."""
    return PydanticCustomError(_SEVERAL, "several faults", {"lines": list(lines)})


def faults(model: type[Settings], error: ValidationError) -> list[str]:
    """Returns one line for each fault of a table that is not a `model`."""
    root = Node.of(model)
    lines: list[str] = []
    for details in error.errors(include_url=False):
        if details["type"] == _SEVERAL:
            lines += details["ctx"]["lines"]
        elif not _is_long_enough(details):
            lines.append(_line(root, details))
    return lines


def _is_long_enough(details: ErrorDetails) -> bool:
    """Whether a list is reported as too short only because of faulty values in it.

    Each of these values has an error of its own.
    """
    values = details["input"]
    return (
        details["type"] == "too_short"
        and isinstance(values, list | tuple)
        and len(values) >= details["ctx"]["min_length"]
    )


@dataclass
class _Spot:
    """The location of an error in a config and in its schema."""

    path: list[str]
    node: Node | None
    """The schema at that path. None for an unknown key."""
    table: Node | None = None
    """The table that holds the key."""
    union: Node | None = None
    """The union that the table belongs to, where it has several kinds."""
    kind: str = ""


def _spot(root: Node, location: tuple[int | str, ...]) -> _Spot:
    """Follows an error's location, in which the kind of a tagged table is a step of its own."""
    spot = _Spot([], root)
    union, kind = None, ""
    for step in map(str, location):
        if step == _OF_KEY:
            spot.node = None
            break
        node = spot.node
        if node is not None and node.tag is not None:
            union, kind, spot.node = node, step, node.kinds[step]
            continue
        spot.path.append(step)
        if node is None:
            continue
        if node.item is not None:
            spot.node = node.item
        else:
            spot.table, spot.node = node, node.keys.get(step, node.values)
            spot.union, spot.kind = union, kind
        union, kind = None, ""
    return spot


def _line(root: Node, details: ErrorDetails) -> str:
    spot = _spot(root, details["loc"])
    path, value = ".".join(spot.path), details["input"]
    match details["type"]:
        case "extra_forbidden":
            return _unknown(path, spot)
        case "missing":
            allowed = "" if spot.node is None else f"; allowed: {spot.node.allowed()}"
            return f"{path} is missing{allowed}"
        case "union_tag_not_found" if spot.node is not None:
            required = _tag_path(spot.path, spot.node)
            return f"{required} is missing; allowed: {choices([*spot.node.kinds])}"
        case "union_tag_invalid" if spot.node is not None:
            return _wrong_kind(spot.path, spot.node, value)
        case "value_error":  # raised by one of our own validators
            message = str(details["ctx"]["error"])
            is_value = spot.node is None or not spot.node.keys
            # the validator of a whole table names the key itself
            return f"{path} {message}" if is_value else ".".join(filter(None, [path, message]))
        case "invalid_key":
            return f"{path} is no key; keys are strings"
    allowed = "a string" if spot.node is None else spot.node.allowed()
    options = [] if spot.node is None else spot.node.options
    return f"{path or 'the config'} is {shown(value)}; allowed: {allowed}{_hint(value, options)}"


def _unknown(path: str, spot: _Spot) -> str:
    """Describes an unknown key: one of another kind of the table, or a misspelt one."""
    name, table, union = spot.path[-1], spot.table, spot.union
    if union is not None:
        others = [kind for kind, node in union.kinds.items() if name in node.keys]
        if others:
            return (
                f"{path} has no effect with {_tag_path(spot.path[:-1], union)} = "
                f"{toml_value(spot.kind)}, only with {choices(others)}; leave it out"
            )
    return f"unknown key {path!r}, {nearest(name, [] if table is None else table.keys)}"


def _wrong_kind(path: Sequence[str], union: Node, table: object) -> str:
    kind = table.get(union.tag) if isinstance(table, Mapping) else table
    kinds = [*union.kinds]
    return (
        f"{_tag_path(path, union)} is {shown(kind)}; allowed: {choices(kinds)}{_hint(kind, kinds)}"
    )


def _hint(value: object, words: Sequence[str]) -> str:
    """Suggests the word nearest to a value. Empty where no word is near."""
    hint = nearest(value, words) if isinstance(value, str) and words else ""
    return f"; {hint}" if hint.endswith("?") else ""


def _tag_path(path: Sequence[str], union: Node) -> str:
    return ".".join([*path, str(union.tag)])


def shown(value: object) -> str:
    """Returns a value as TOML, shortened if it is long.

    >>> shown([1.5, True, "a"])
    '[1.5, true, "a"]'
    """
    try:
        text = toml_value(value)
    except (RecursionError, ValueError):  # nested too deeply, or more digits than Python prints
        return "a value too large to show"
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"
