"""Pydantic's errors in our words: the key, what was found there, what is allowed."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from pydantic import ValidationError
from pydantic_core import ErrorDetails, PydanticCustomError

from rejoinder.errors import ConfigError, nearest
from rejoinder.schema.base import Settings
from rejoinder.schema.nodes import Node, choices
from rejoinder.schema.toml import toml_value

Kind = TypeVar("Kind", bound=Settings)
_SEVERAL = "several"
_OF_KEY = "[key]"
"""Pydantic's mark behind a key of a table of strings that is itself at fault."""
_LONGEST = 60


def check(kind: type[Kind], values: object, where: str) -> Kind:
    """The settings in a tree of plain values.

    Raises:
        ConfigError: all faults, one a line; `where` names the tree in the message.
    """
    try:
        return kind.model_validate(values)
    except ValidationError as error:
        raise refused(where, faults(kind, error)) from None


def refused(where: str, lines: Sequence[str]) -> ConfigError:
    """The error that tells these faults: one as a sentence, several one a line."""
    if len(lines) == 1:
        said = f"{where}: {lines[0]}" + ("" if lines[0].endswith("?") else ".")
    else:
        said = "\n  ".join([f"{where} has {len(lines)} faults:", *lines])
    # an argument that is not UTF-8 comes with surrogates, which a terminal can't print
    return ConfigError(said.encode("utf-8", "backslashreplace").decode("utf-8"))


def several(lines: Sequence[str]) -> PydanticCustomError:
    """What a validator raises that has found several faults, each with its key."""
    return PydanticCustomError(_SEVERAL, "several faults", {"lines": list(lines)})


def faults(kind: type[Settings], error: ValidationError) -> list[str]:
    """One line a fault."""
    root = Node.of(kind)
    lines: list[str] = []
    for details in error.errors(include_url=False):
        if details["type"] == _SEVERAL:
            lines += details["ctx"]["lines"]
        elif not _is_long_enough(details):
            lines.append(_line(root, details))
    return lines


def _is_long_enough(details: ErrorDetails) -> bool:
    """Whether a list is called too short only because values of it are at fault, each told."""
    found = details["input"]
    return (
        details["type"] == "too_short"
        and isinstance(found, list | tuple)
        and len(found) >= details["ctx"]["min_length"]
    )


@dataclass
class _Spot:
    """Where an error lies."""

    path: list[str]
    """The keys that lead there."""
    node: Node | None
    """What the schema says of it; none for a key that it does not know."""
    table: Node | None = None
    """The table that holds it."""
    union: Node | None = None
    """What that table could have been, where there are several kinds of it."""
    kind: str = ""
    """Which of them it is."""


def _spot(root: Node, location: tuple[int | str, ...]) -> _Spot:
    """Follow an error's location; behind a table of several kinds it names the table's kind."""
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
    path, found = ".".join(spot.path), details["input"]
    match details["type"]:
        case "extra_forbidden":
            return _unknown(path, spot)
        case "missing":
            allowed = "" if spot.node is None else f"; allowed: {spot.node.allowed()}"
            return f"{path} is missing{allowed}"
        case "union_tag_not_found" if spot.node is not None:
            needed = _tag_path(spot.path, spot.node)
            return f"{needed} is missing; allowed: {choices([*spot.node.kinds])}"
        case "union_tag_invalid" if spot.node is not None:
            return _wrong_kind(spot.path, spot.node, found)
        case "value_error":  # raised by a validator of ours
            said = str(details["ctx"]["error"])
            own = spot.node is None or not spot.node.keys
            return f"{path} {said}" if own else ".".join(filter(None, [path, said]))
        case "invalid_key":
            return f"{path} is no key; keys are strings"
    allowed = "a string" if spot.node is None else spot.node.allowed()
    options = [] if spot.node is None else spot.node.options
    return f"{path or 'the config'} is {shown(found)}; allowed: {allowed}{_hint(found, options)}"


def _unknown(path: str, spot: _Spot) -> str:
    """A key that is not of the table: of another kind of that table, misspelt, or invented."""
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
    found = table.get(union.tag) if isinstance(table, Mapping) else table
    kinds = [*union.kinds]
    return (
        f"{_tag_path(path, union)} is {shown(found)}; allowed: {choices(kinds)}"
        f"{_hint(found, kinds)}"
    )


def _hint(found: object, words: Sequence[str]) -> str:
    """The nearest of some words; nothing where none is near."""
    hint = nearest(found, words) if isinstance(found, str) and words else ""
    return f"; {hint}" if hint.endswith("?") else ""


def _tag_path(path: Sequence[str], union: Node) -> str:
    return ".".join([*path, str(union.tag)])


def shown(value: object) -> str:
    """A value as TOML writes it, cut where it is long.

    >>> shown([1.5, True, "a"])
    '[1.5, true, "a"]'
    """
    try:
        said = toml_value(value)
    except (RecursionError, ValueError):  # nested or of more digits than Python will print
        return "a value too large to show"
    return said if len(said) <= _LONGEST else f"{said[:_LONGEST]}…"
