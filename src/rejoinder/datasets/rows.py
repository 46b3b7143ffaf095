"""Rows of JSON lines and of tables as columns: by Polars, line by line only to name a fault."""

import io
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Literal

import polars as pl

from rejoinder.datasets.files import text_lines
from rejoinder.errors import InputError

Kind = Literal["text", "texts", "label"]
"""A string; a list of strings; a string, number or boolean, that is read as its JSON text."""

_BOM = b"\xef\xbb\xbf"
_HEAD_LINES = 1_000
_OTHER_THAN_TEXT = r"^\s*(?:[\[{]|-?\d[\d.eE+-]*$|true$|false$)|\x00"
"""What Polars makes of JSON that is no string, or of half a surrogate pair: looked at again."""


def first_object(content: bytes, path: Path) -> Mapping[str, Any]:
    """The object of the first line that is not blank.

    Raises:
        InputError: there is none.
    """
    for number, line in _numbered(content):
        return _object(line, path, number)
    raise InputError(f"{path} has no rows; a JSON object a line is needed.")


def is_json_lines(content: bytes) -> bool:
    """Whether the first character that is not blank begins an object."""
    head = content.removeprefix(_BOM)[: 1 << 16].lstrip()
    return head.startswith(b"{")


def json_rows(
    content: bytes,
    path: Path,
    kinds: Mapping[str, Kind],
    optional: str | None = None,
    *,
    first_line: int = 1,
) -> pl.DataFrame:
    """The fields named by `kinds` of every line; blank lines and other fields are left out.

    Args:
        content: JSON lines.
        path: where they are from, for messages.
        kinds: what each field has to be.
        optional: a field that all lines may lack; its column is null then.
        first_line: number of the first line, for messages: not 1 for a later piece of a file.

    Returns:
        (N rows,) String columns; List(String) for `texts`.

    Raises:
        InputError: a line is no object, or a field is missing or of another kind.
    """
    schema = {name: _TYPES[kind] for name, kind in kinds.items()}
    try:
        frame = pl.read_ndjson(io.BytesIO(content.removeprefix(_BOM)), schema=schema)
    except (pl.exceptions.PolarsError, OSError):
        frame = None
    if frame is not None and _is_sound(frame, kinds, optional):
        return frame
    return _line_by_line(content, path, kinds, optional, first_line)


def table_rows(content: bytes, path: Path, columns: tuple[str, ...]) -> pl.DataFrame:
    """Columns of a table with tabs and a header, as strings; quotes are plain characters.

    Raises:
        InputError: the header lacks a column, or a line is too short.
    """
    header = content.removeprefix(_BOM).split(b"\n", 1)[0].decode("utf-8", "replace")
    names = header.rstrip("\r").split("\t")
    missing = [name for name in columns if name not in names]
    if missing:
        raise InputError(
            f"{path} line 1: {_short(header)} is neither a JSON object nor a header, between tabs, "
            f"with {' and '.join(map(repr, columns))}."
        )
    try:
        frame = pl.read_csv(
            content.removeprefix(_BOM),
            separator="\t",
            quote_char=None,
            infer_schema=False,
            truncate_ragged_lines=True,
            columns=list(dict.fromkeys(columns)),
        )
        if not any(frame.get_column(name).null_count() for name in columns):
            return frame
    except pl.exceptions.PolarsError:
        pass
    places = [names.index(name) for name in columns]
    rows = []
    for number, line in enumerate(text_lines(content, path), 1):
        fields = line.split("\t")
        if number == 1 or not line.strip():
            continue
        if len(fields) <= max(places):
            raise InputError(
                f"{path} line {number}: {len(fields)} columns between tabs; the header has "
                f"{len(names)}."
            )
        rows.append([fields[place] for place in places])
    return pl.DataFrame(rows, schema=dict.fromkeys(columns, pl.String), orient="row")


def line_of(content: bytes, row: int) -> int:
    """The number, from 1, of the line that holds row `row`, from 0: blank lines are no rows."""
    for place, (number, _) in enumerate(_numbered(content)):
        if place == row:
            return number
    raise IndexError(row)


_TYPES: dict[str, pl.DataType] = {
    "text": pl.String(),
    "texts": pl.List(pl.String()),
    "label": pl.String(),
}


def _is_sound(frame: pl.DataFrame, kinds: Mapping[str, Kind], optional: str | None) -> bool:
    for name, kind in kinds.items():
        column = frame.get_column(name)
        nulls = column.null_count()
        if nulls and not (name == optional and nulls == len(column)):
            return False
        if kind == "texts":
            column = column.filter(column.list.len() > 0).explode()
            if column.null_count():
                return False
        if kind != "label" and column.str.contains(_OTHER_THAN_TEXT).any():
            return False
    return True


def _line_by_line(
    content: bytes,
    path: Path,
    kinds: Mapping[str, Kind],
    optional: str | None,
    first_line: int,
) -> pl.DataFrame:
    rows: dict[str, list[Any]] = {name: [] for name in kinds}
    present: bool | None = None
    for number, line in _numbered(content, first_line):
        fields = _object(line, path, number)
        for name, kind in kinds.items():
            value = fields.get(name)
            if name == optional:
                present = value is not None if present is None else present
                if value is None and not present:
                    rows[name].append(None)
                    continue
            rows[name].append(_value(value, name, kind, path, number))
    schema = {name: _TYPES[kind] for name, kind in kinds.items()}
    return pl.DataFrame(rows, schema=schema)


def _numbered(content: bytes, first_line: int = 1) -> Iterator[tuple[int, bytes]]:
    for number, line in enumerate(io.BytesIO(content.removeprefix(_BOM)), first_line):
        if line.strip():
            yield number, line


def _object(line: bytes, path: Path, number: int) -> Mapping[str, Any]:
    try:
        value = json.loads(line.decode("utf-8"), strict=False)
    except (ValueError, RecursionError) as error:
        raise InputError(
            f"{path} line {number}: {_short(line.decode('utf-8', 'replace'))} is no JSON "
            f"({error}); an object a line is needed."
        ) from None
    if not isinstance(value, dict):
        raise InputError(
            f"{path} line {number}: a JSON {type(value).__name__}; an object a line is needed."
        )
    return value


def _value(value: Any, name: str, kind: Kind, path: Path, number: int) -> Any:
    """A field as its kind.

    Raises:
        InputError: it is missing or of another kind.
    """
    if kind == "label" and isinstance(value, bool | int | float):
        return json.dumps(value)
    if kind == "texts" and isinstance(value, list) and all(isinstance(one, str) for one in value):
        return [_encodable(one) for one in value]
    if kind != "texts" and isinstance(value, str):
        return _encodable(value)
    meant = {"texts": "a list of strings", "text": "a string", "label": "a string or a number"}
    found = f"no {name!r}" if value is None else f"{name!r} is {_short(json.dumps(value))}"
    raise InputError(f"{path} line {number}: {found}; {meant[kind]} is needed.")


def _encodable(text: str) -> str:
    """Half a surrogate pair is no character: U+FFFD."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _short(text: str) -> str:
    text = text.strip()
    return repr(text if len(text) <= 40 else f"{text[:40]}…")
