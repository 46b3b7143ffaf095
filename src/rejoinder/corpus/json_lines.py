"""Blocks of JSON lines to columns: by Polars at full speed, line by line only where it must be."""

import io
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl

from rejoinder.corpus.manifest import Malformed

_SURROGATES = re.compile(
    rb"\\\\|\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|\\u[dD][89a-fA-F][0-9a-fA-F]{2}"
)

_HEAD_LINES = 20_000


@dataclass(frozen=True, slots=True)
class ParsedBlock:
    """What a block of lines holds."""

    frame: pl.DataFrame
    """The columns asked for, all strings; null where a line has none."""
    numbers: Sequence[int]
    """(N,) the lines that the rows come from, from 1."""
    malformed: tuple[Malformed, ...]


def parse_block(
    block: bytes, columns: tuple[str, ...], needed: tuple[str, ...], file: str, first_line: int
) -> ParsedBlock:
    """The comments of a block.

    Args:
        block: whole lines.
        columns: fields to read, as strings; other fields are ignored.
        needed: those without which a line is no comment.
        file: name of the file, for the report of malformed lines.
        first_line: number of the block's first line in it.
    """
    schema = dict.fromkeys(columns, pl.String)
    try:
        frame = pl.read_ndjson(io.BytesIO(block), schema=schema)
        if _has_nul(frame, needed):
            # half of a surrogate pair is no character, and Polars reads it as NUL
            block = _SURROGATES.sub(_whole, block)
            frame = pl.read_ndjson(io.BytesIO(block), schema=schema)
        if not any(frame.get_column(name).null_count() for name in needed):
            return ParsedBlock(frame, _numbers(block, len(frame), first_line), ())
    except (pl.exceptions.PolarsError, OSError):
        pass  # some line is malformed: find out which
    return _by_line(block, columns, needed, file, first_line)


def _has_nul(frame: pl.DataFrame, columns: tuple[str, ...]) -> bool:
    return any(frame.get_column(name).str.contains("\0", literal=True).any() for name in columns)


def _by_line(
    block: bytes,
    columns: tuple[str, ...],
    needed: tuple[str, ...],
    file: str,
    first_line: int,
) -> ParsedBlock:
    rows: dict[str, list[str | None]] = {name: [] for name in columns}
    malformed, numbers = [], []
    for number, line in enumerate(block.split(b"\n"), first_line):
        if not line.strip():
            continue
        comment = _comment(line, needed)
        if isinstance(comment, str):
            malformed.append(Malformed(file, number, comment))
            continue
        numbers.append(number)
        for name in columns:
            rows[name].append(_text(comment.get(name)))
    frame = pl.DataFrame(rows, schema=dict.fromkeys(columns, pl.String))
    return ParsedBlock(frame, numbers, tuple(malformed))


def _numbers(block: bytes, rows: int, first_line: int) -> Sequence[int]:
    if rows == block.count(b"\n") + (not block.endswith(b"\n")):
        return range(first_line, first_line + rows)
    # blank lines: rare
    return [number for number, line in enumerate(block.split(b"\n"), first_line) if line.strip()]


def keys_of(block: bytes) -> dict[str, None]:
    """The fields of the objects in the first lines of a block, in the order in which they come."""
    keys: dict[str, None] = {}
    for line in block.split(b"\n", _HEAD_LINES)[:_HEAD_LINES]:
        comment = _comment(line, ())
        if isinstance(comment, dict):
            keys |= dict.fromkeys(comment)
    return keys


def _comment(line: bytes, needed: tuple[str, ...]) -> dict[str, Any] | str:
    """The object of a line, or what is wrong with it."""
    try:
        value = json.loads(line.decode("utf-8", "replace"), strict=False)
    except (ValueError, RecursionError) as error:
        return f"not JSON: {error}"
    if not isinstance(value, dict):
        return f"a JSON {type(value).__name__} where one comment object is expected"
    missing = [name for name in needed if value.get(name) is None]
    return f"no {', '.join(map(repr, missing))}" if missing else value


def _text(value: Any) -> str | None:
    if value is None or isinstance(value, str):
        return (
            value
            if value is None
            else value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
        )
    return json.dumps(value, ensure_ascii=False)


def _whole(match: re.Match[bytes]) -> bytes:
    found = match.group()
    return found if len(found) != 6 else b"\\ufffd"
