"""`results.json` as JSON: a result to a tree, and a tree, checked part by part, to a result."""

import json
import math
from collections.abc import Callable, Mapping
from dataclasses import asdict, fields, replace
from typing import Any

from rejoinder.errors import InputError
from rejoinder.evaluation.metrics import find_metric
from rejoinder.evaluation.results import Group, Result

FORMAT = 3


def as_tree(result: Result) -> dict[str, Any]:
    """A result as JSON holds it."""
    tree = asdict(replace(result, items=None))
    del tree["items"]
    return tree


def results_of(tree: object, path: str) -> list[Any]:
    """The list of results within the tree of a file.

    Raises:
        InputError: it is no results file, or one of another format version.
    """
    if not isinstance(tree, Mapping) or "format_version" not in tree:
        raise InputError(f"{path} is no results file of `rejoinder evaluate`.")
    version = tree["format_version"]
    if version != FORMAT:
        raise InputError(
            f"{path} is a results file of format version {_short(version)}; this version of "
            f"rejoinder reads {FORMAT}, in which every result carries its settings. Evaluate "
            "again."
        )
    rows: list[Any] = _list(tree.get("results"), f"{path}: results")
    return rows


def result_of(tree: object, where: str) -> Result:
    """A result from its tree.

    Args:
        tree: what `as_tree` gave, with or without its seal.
        where: the file and the key, for messages.

    Raises:
        InputError: a part is missing, unknown, or of another kind.
    """
    row = _mapping(tree, where)
    for name in _PARTS:
        if name not in row:
            raise InputError(f"{where} has no {name!r}; it is damaged. Evaluate again.")
    for name in row:
        if name not in (*_PARTS, "sha256"):
            raise InputError(f"{where} has an unknown key {name!r}. Evaluate again.")
    found = {name: check(row[name], f"{where}.{name}") for name, check in _PARTS.items()}
    if found["main"] not in found["scores"]:
        raise InputError(f"{where}.main is {found['main']!r}, which is not among its scores.")
    if find_metric(found["main"]) is None:
        raise InputError(f"{where}.main is {found['main']!r}, which is no main score of a task.")
    return Result(**found)


def _wrong(value: object, where: str, needed: str) -> InputError:
    return InputError(f"{where} is {_short(value)}; {needed} is needed. Evaluate again.")


def _short(value: object) -> str:
    said = "missing" if value is None else repr(value)
    return said if len(said) <= 60 else f"{said[:57]}..."


def _text(value: object, where: str) -> str:
    if not isinstance(value, str):
        raise _wrong(value, where, "a string")
    return value


def _number(value: object, where: str) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise _wrong(value, where, "a finite number")
    return value


def _count(value: object, where: str) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise _wrong(value, where, "a whole number from 0 on")
    return value


def _list(value: object, where: str) -> list[Any]:
    if not isinstance(value, list):
        raise _wrong(value, where, "a list")
    return value


def _mapping(value: object, where: str) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise _wrong(value, where, "an object")
    return value


def _plain(value: object, where: str) -> Mapping[str, Any]:
    """An object that can be written as JSON again: Python reads NaN and Infinity, too."""
    found = _mapping(value, where)
    try:
        json.dumps(found, allow_nan=False)
    except ValueError:
        raise _wrong(value, where, "an object without NaN and infinities") from None
    return found


def _scores(value: object, where: str) -> dict[str, float]:
    return {
        name: _number(score, f"{where}.{name}") for name, score in _mapping(value, where).items()
    }


def _intervals(value: object, where: str) -> dict[str, tuple[float, float]]:
    found = {}
    for name, pair in _mapping(value, where).items():
        ends = _list(pair, f"{where}.{name}")
        if len(ends) != 2:
            raise _wrong(pair, f"{where}.{name}", "a pair of numbers")
        low, high = (_number(end, f"{where}.{name}") for end in ends)
        found[name] = (low, high)
    return found


def _groups(value: object, where: str) -> dict[str, Group]:
    found = {}
    for name, entry in _mapping(value, where).items():
        group = _mapping(entry, f"{where}.{name}")
        found[name] = Group(
            _count(group.get("n"), f"{where}.{name}.n"),
            _scores(group.get("scores"), f"{where}.{name}.scores"),
        )
    return found


def _notes(value: object, where: str) -> tuple[str, ...]:
    rows = _list(value, where)
    return tuple(_text(note, f"{where}[{row}]") for row, note in enumerate(rows))


def _texts(value: object, where: str) -> dict[str, str]:
    return {name: _text(text, f"{where}.{name}") for name, text in _mapping(value, where).items()}


def _predictions(value: object, where: str) -> dict[str, str]:
    found = _texts(value, where)
    if found and set(found) != {"file", "sha256"}:
        raise _wrong(value, where, "an object of file and sha256")
    return found


def _dtype(value: object, where: str) -> str | None:
    return None if value is None else _text(value, where)


def _encoder(value: object, where: str) -> Mapping[str, Any]:
    found = _plain(value, where)
    if found:
        _text(found.get("name"), f"{where}.name")
    return found


_PARTS: Mapping[str, Callable[[object, str], Any]] = {
    "task": _text,
    "split": _text,
    "n": _count,
    "main": _text,
    "scores": _scores,
    "intervals": _intervals,
    "groups": _groups,
    "seed": _count,
    "data": _plain,
    "notes": _notes,
    "seconds": _number,
    "encoder": _encoder,
    "dtype": _dtype,
    "date": _text,
    "versions": _texts,
    "machine": _plain,
    "predictions": _predictions,
    "settings": _plain,
    "run": _plain,
}
if set(_PARTS) != {part.name for part in fields(Result)} - {"items"}:
    raise TypeError("every field of Result, but for its items, needs a check here")
