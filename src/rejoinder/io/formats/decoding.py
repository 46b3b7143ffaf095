"""Makes dataclasses of values read from JSON: their annotations say what is allowed."""

import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import MISSING, dataclass, fields, is_dataclass
from functools import cache
from reprlib import repr as short
from types import NoneType, UnionType
from typing import Annotated, Any, TypeVar, Union, get_args, get_origin, get_type_hints

T = TypeVar("T")


@dataclass(frozen=True)
class Between:
    """A rule for numbers, in `Annotated`."""

    least: float
    most: float = sys.maxsize

    def __str__(self) -> str:
        return f"a number from {self.least} to {self.most}"

    def allows(self, value: Any) -> bool:
        """Returns whether a number keeps the rule."""
        return bool(self.least <= value <= self.most)


@dataclass(frozen=True)
class Matching:
    """A rule for strings, in `Annotated`."""

    pattern: str
    said: str

    def __str__(self) -> str:
        return self.said

    def allows(self, value: str) -> bool:
        """Returns whether the whole string matches."""
        return re.fullmatch(self.pattern, value) is not None


Count = Annotated[int, Between(0)]
Seconds = Annotated[float, Between(0.0, sys.float_info.max)]
FileName = Annotated[str, Matching(r"[^/\\\0]*[^/\\\0.][^/\\\0]*", "the name of a file")]
Digest = Annotated[str, Matching("[0-9a-f]{64}", "a SHA-256 in hexadecimal")]


def decoded(kind: type[T], tree: object) -> T:
    """Returns a dataclass made of a JSON object. Lists become tuples where a sequence is annotated.

    >>> @dataclass
    ... class Shard:
    ...     rows: Count
    >>> decoded(Shard, {"rows": 3})
    Shard(rows=3)
    >>> decoded(Shard, {"rows": -1})
    Traceback (most recent call last):
    ValueError: rows is -1; a number from 0 to 9223372036854775807 is needed

    Raises:
        ValueError: a key is missing or unknown, or its value is not what is annotated.
    """
    made: T = _object(kind, tree, "")
    return made


def _object(kind: Any, tree: object, at: str) -> Any:
    if not isinstance(tree, Mapping):
        raise _fault(at.rstrip(".") or "the content", tree, "an object")
    hints = _hints(kind)
    unknown = sorted(map(str, tree.keys() - hints.keys()))
    missing = [name for name in hints if name not in tree and not _has_default(kind, name)]
    if unknown or missing:
        state = f"{at}{missing[0]} is missing" if missing else f"{at}{unknown[0]} is unknown"
        raise ValueError(state)
    return kind(**{name: _value(hints[name], value, f"{at}{name}") for name, value in tree.items()})


@cache
def _hints(kind: Any) -> Mapping[str, Any]:
    hints = get_type_hints(kind, include_extras=True)
    return {field.name: hints[field.name] for field in fields(kind) if field.init}


def _has_default(kind: Any, name: str) -> bool:
    field = kind.__dataclass_fields__[name]
    return field.default is not MISSING or field.default_factory is not MISSING


def _value(hint: Any, value: Any, at: str) -> Any:
    origin, inner = get_origin(hint), get_args(hint)
    if hint is Any or hint is object:
        return value
    if origin is Annotated:
        made = _value(inner[0], value, at)
        for rule in inner[1:]:
            if not rule.allows(made):
                raise _fault(at, value, str(rule))
        return made
    if origin in (Union, UnionType):
        if value is None and NoneType in inner:
            return None
        return _value(next(one for one in inner if one is not NoneType), value, at)
    if is_dataclass(hint):
        return _object(hint, value, f"{at}.")
    if origin is Mapping:
        if not isinstance(value, Mapping):
            raise _fault(at, value, "an object")
        return {
            _value(inner[0], key, f"a key of {at}"): _value(inner[1], each, f"{at}.{key}")
            for key, each in value.items()
        }
    if origin in (tuple, Sequence):
        if not isinstance(value, list | tuple):
            raise _fault(at, value, "a list")
        return tuple(_value(inner[0], each, f"{at}.{n}") for n, each in enumerate(value))
    return _plain(hint, value, at)


def _plain(hint: Any, value: Any, at: str) -> Any:
    kinds = (int, float) if hint is float else (hint,)
    if type(value) not in kinds or value != value or (hint is str and _is_half(value)):
        names = {int: "a whole number", float: "a number", str: "a string", bool: "true or false"}
        raise _fault(at, value, names.get(hint, hint.__name__))
    return value


def _is_half(text: str) -> bool:
    """Returns whether a string has half of a surrogate pair, which no file can hold."""
    return not text.isascii() and any("\ud800" <= sign <= "\udfff" for sign in text)


def _fault(at: str, value: object, needed: str) -> ValueError:
    return ValueError(f"{at} is {short(value)}; {needed} is needed")
