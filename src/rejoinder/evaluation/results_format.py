"""Converts results to JSON and back. What is read is checked key by key."""

import json
import math
from collections.abc import Callable, Mapping
from dataclasses import asdict, fields, replace
from typing import Any

from rejoinder.errors import InputError
from rejoinder.evaluation.calls import short
from rejoinder.evaluation.metrics import find_metric
from rejoinder.evaluation.results import Group, Result

FORMAT = 3


def as_tree(result: Result) -> dict[str, Any]:
    """Returns a result as JSON holds it, without its items."""
    tree = asdict(replace(result, items=None))
    del tree["items"]
    return tree


def results_of(tree: object, path: str) -> list[Any]:
    """Returns the list of results in the content of the file `path`.

    Raises:
        InputError: it is no results file, or has another format version.
    """
    if not isinstance(tree, Mapping) or "format_version" not in tree:
        raise InputError(f"{path} is no results file of `rejoinder evaluate`.")
    version = tree["format_version"]
    if version != FORMAT:
        raise InputError(
            f"{path} is a results file of format version {short(version)}; this version of "
            f"rejoinder reads {FORMAT}, in which every result carries its settings. Evaluate "
            "again."
        )
    rows: list[Any] = _list(tree.get("results"), f"{path}: results")
    return rows


def result_of(tree: object, where: str) -> Result:
    """Returns the result of what `as_tree` returned, with or without its seal.

    Messages begin with `where`: the file and the key.

    Raises:
        InputError: a key is missing or unknown, or its value has the wrong type.
    """
    row = _mapping(tree, where)
    for name in _CHECKS:
        if name not in row:
            raise InputError(f"{where} has no {name!r}; it is damaged. Evaluate again.")
    for name in row:
        if name not in (*_CHECKS, "sha256"):
            raise InputError(f"{where} has an unknown key {name!r}. Evaluate again.")
    values = {name: check(row[name], f"{where}.{name}") for name, check in _CHECKS.items()}
    if values["main"] not in values["scores"]:
        raise InputError(f"{where}.main is {values['main']!r}, which is not among its scores.")
    if find_metric(values["main"]) is None:
        raise InputError(f"{where}.main is {values['main']!r}, which is no main score of a task.")
    return Result(**values)


def _wrong(value: object, where: str, needed: str) -> InputError:
    what = "missing" if value is None else short(value)
    return InputError(f"{where} is {what}; {needed} is needed. Evaluate again.")


def _typed(type_: type, needed: str) -> Callable[[object, str], Any]:
    """Returns a check of a value's type."""

    def checked(value: object, where: str) -> Any:
        if not isinstance(value, type_):
            raise _wrong(value, where, needed)
        return value

    return checked


_text = _typed(str, "a string")
_list = _typed(list, "a list")
_mapping = _typed(Mapping, "an object")


def _number(value: object, where: str) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise _wrong(value, where, "a finite number")
    return value


def _count(value: object, where: str) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise _wrong(value, where, "a whole number from 0 on")
    return value


def _plain(value: object, where: str) -> Mapping[str, Any]:
    """Returns an object that can be written as JSON again: Python also reads NaN and Infinity."""
    plain: Mapping[str, Any] = _mapping(value, where)
    try:
        json.dumps(plain, allow_nan=False)
    except ValueError:
        raise _wrong(value, where, "an object without NaN and infinities") from None
    return plain


def _each(check: Callable[[object, str], Any]) -> Callable[[object, str], dict[str, Any]]:
    """Returns a check of an object with values that `check` accepts."""

    def checked(value: object, where: str) -> dict[str, Any]:
        values = _mapping(value, where).items()
        return {name: check(entry, f"{where}.{name}") for name, entry in values}

    return checked


def _interval(value: object, where: str) -> tuple[float, ...]:
    ends = _list(value, where)
    if len(ends) != 2:
        raise _wrong(value, where, "a pair of numbers")
    return tuple(_number(end, where) for end in ends)


def _group(value: object, where: str) -> Group:
    group = _mapping(value, where)
    scores = _each(_number)(group.get("scores"), f"{where}.scores")
    return Group(_count(group.get("n"), f"{where}.n"), scores)


def _notes(value: object, where: str) -> tuple[str, ...]:
    rows = _list(value, where)
    return tuple(_text(note, f"{where}[{row}]") for row, note in enumerate(rows))


def _predictions(value: object, where: str) -> dict[str, str]:
    texts = _each(_text)(value, where)
    if texts and set(texts) != {"file", "sha256"}:
        raise _wrong(value, where, "an object of file and sha256")
    return texts


def _encoder(value: object, where: str) -> Mapping[str, Any]:
    encoder = _plain(value, where)
    if encoder:
        _text(encoder.get("name"), f"{where}.name")
    return encoder


_CHECKS: Mapping[str, Callable[[object, str], Any]] = {
    "task": _text,
    "split": _text,
    "n": _count,
    "main": _text,
    "scores": _each(_number),
    "intervals": _each(_interval),
    "groups": _each(_group),
    "seed": _count,
    "data": _plain,
    "notes": _notes,
    "seconds": _number,
    "encoder": _encoder,
    "dtype": lambda value, where: None if value is None else _text(value, where),
    "date": _text,
    "versions": _each(_text),
    "machine": _plain,
    "predictions": _predictions,
    "settings": _plain,
    "run": _plain,
}
if set(_CHECKS) != {field.name for field in fields(Result)} - {"items"}:
    raise TypeError("every field of Result except items needs a check here")
