"""Reads fields of JSON lines as columns, and finds the invalid line if there is one."""

import io
import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import msgspec
import polars as pl

from rejoinder.errors import InputError
from rejoinder.io.formats.text_lines import BYTE_ORDER_MARK, replace_surrogates, shortened
from rejoinder.io.formats.texts import json_object

FieldType = Literal["text", "texts", "label"]
"""The type of a field: `text` is a string, `texts` a list of strings, and `label` a string, number
or boolean that is read as its JSON text."""

_TYPES: Mapping[FieldType, tuple[Any, Any]] = {
    "text": (str, pl.String()),
    "texts": (list[str], pl.List(pl.String())),
    "label": (str | int | float | bool, pl.String()),
}
"""What JSON holds, and the type of the column."""


def first_object(content: bytes, path: Path) -> Mapping[str, Any]:
    """Returns the object on the first line that is not blank.

    Raises:
        InputError: all lines are blank, or the first one is not an object.
    """
    for number, line in _numbered(content):
        return _object(line, path, number)
    raise InputError(f"{path} has no rows; a JSON object on each line is needed.")


def is_json_lines(content: bytes) -> bool:
    """Returns whether the first character that is not white space begins an object."""
    head = content.removeprefix(BYTE_ORDER_MARK)[: 1 << 16].lstrip()
    return head.startswith(b"{")


def json_rows(
    content: bytes,
    path: Path,
    fields: Mapping[str, FieldType],
    optional: str | None = None,
    *,
    first_line: int = 1,
) -> pl.DataFrame:
    """Returns `fields` of every line as String columns, `texts` as List(String).

    Blank lines and other fields are ignored. All lines may lack the field `optional`, whose column
    is null then. Messages count lines from `first_line`.

    Raises:
        InputError: a line is not an object, or a field is missing or of another type.
    """
    kinds = [
        (name, _TYPES[type_][0] | None, None) if name == optional else (name, _TYPES[type_][0])
        for name, type_ in fields.items()
    ]
    kind = msgspec.defstruct("_Line", kinds, kw_only=True)
    decode = msgspec.json.Decoder(kind).decode
    rows: list[Any] = []
    for number, line in _numbered(content, first_line):
        try:
            row = decode(line)
        except (ValueError, RecursionError):  # a fault, or Python alone reads it: NaN, half pairs
            found = _object(line, path, number)
            values = {
                name: _value(found.get(name), name, type_, path, number)
                for name, type_ in fields.items()
                if name != optional or found.get(name) is not None
            }
            row = kind(**values)
        rows.append(row)
        if optional and getattr(row, optional) is None is not getattr(rows[0], optional):
            _value(None, optional, fields[optional], path, number)
    columns = {name: [getattr(row, name) for row in rows] for name in fields}
    for name in [name for name, type_ in fields.items() if type_ == "label"]:
        columns[name] = [
            one if isinstance(one, str | None) else json.dumps(one) for one in columns[name]
        ]
    return pl.DataFrame(columns, schema={name: _TYPES[type_][1] for name, type_ in fields.items()})


def json_texts(content: bytes, path: Path, names: Sequence[str]) -> pl.Series:
    """Returns all texts of the fields `names` of every line, List(String).

    A field holds a string or a list of strings; a line may lack some of them, or all.

    Raises:
        InputError: a line is not an object, or a field has another type.
    """
    rows: list[list[str]] = []
    for number, line in _numbered(content):
        values = _object(line, path, number)
        rows.append([])
        for name in names:
            if (value := values.get(name)) is not None:
                value = [value] if isinstance(value, str) else value
                rows[-1] += _value(value, name, "texts", path, number)
    return pl.Series(rows, dtype=pl.List(pl.String))


def matching_rows(content: bytes, path: Path, where: Mapping[str, str]) -> pl.Series:
    """Returns for every line whether its fields have the values `where`, (N,) Boolean.

    Values are compared as text: `1` is that of the number 1, `true` that of the boolean.

    Raises:
        InputError: a line lacks one of the fields, or no line matches.
    """
    fields: dict[str, FieldType] = dict.fromkeys(where, "label")
    frame = json_rows(content, path, fields)
    wanted_values = pl.all_horizontal(pl.col(name) == value for name, value in where.items())
    matches = frame.select(wanted_values).to_series()
    if not matches.any():
        wanted = " and ".join(f"{name} = {value}" for name, value in where.items())
        seen = "; ".join(
            f"{name} is {', '.join(frame[name].unique().sort().head(5))}" for name in where
        )
        raise InputError(f"{path} has no row with {wanted}; {seen}.")
    return matches


def line_of(content: bytes, row: int) -> int:
    """Returns the number, from 1, of the line with index `row` among those that are not blank."""
    for index, (number, _) in enumerate(_numbered(content)):
        if index == row:
            return number
    raise IndexError(row)


def _numbered(content: bytes, first_line: int = 1) -> Iterator[tuple[int, bytes]]:
    for number, line in enumerate(io.BytesIO(content.removeprefix(BYTE_ORDER_MARK)), first_line):
        if line.strip():
            yield number, line


def _object(line: bytes, path: Path, number: int) -> Mapping[str, Any]:
    try:
        text = line.decode("utf-8")
    except UnicodeDecodeError:
        said = shortened(line.decode("utf-8", "replace"))
        raise InputError(f"{path} line {number}: {said} is not JSON: it is not UTF-8.") from None
    return json_object(text, f"{path} line {number}")


def _value(value: Any, name: str, type_: FieldType, path: Path, number: int) -> Any:
    """Returns a value converted to the type of its field, or refuses it."""
    if type_ == "label" and isinstance(value, int | float):
        return value
    if type_ == "texts" and isinstance(value, list):
        if all(isinstance(text, str) for text in value):
            return [replace_surrogates(text) for text in value]
    elif type_ != "texts" and isinstance(value, str):
        return replace_surrogates(value)
    needed = {"texts": "a list of strings", "text": "a string", "label": "a string or a number"}
    problem = f"no {name!r}" if value is None else f"{name!r} is {shortened(json.dumps(value))}"
    raise InputError(f"{path} line {number}: {problem}; {needed[type_]} is needed.")
