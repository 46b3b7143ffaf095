"""Comments from blocks of JSON lines: lenient, and the same for every line.

A kernel in C reads plain lines, which are nearly all, at three times the speed of Polars. Polars
reads the others, or all where the kernel is not built. Where Polars refuses a block, Python's
`json` finds the malformed lines, and Polars reads the rest again, so that a malformed line never
changes the meaning of another one. Some lines that Polars refuses are repaired first: bytes that
are not UTF-8, halves of surrogate pairs, control characters in strings, NaN, and numbers beyond
128 bits.
"""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import compress
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
from msgspec import structs
from numpy.typing import NDArray

from rejoinder.corpus.manifest import Malformed
from rejoinder.corpus.reading.strings import array_of, as_table, take_rows
from rejoinder.io.formats.json_lines import POLARS_ERRORS, read_objects
from rejoinder.io.formats.tables import BYTE_ORDER_MARK
from rejoinder.kernels import kernel

_MAY_NEED_REPAIR = re.compile(r"[\x00-\x1f]|NaN|Infinity|[0-9]{39}|[0-9][eE]\+?[0-9]{3}")
_TOKEN = re.compile(
    r'"(?:[^"\\]|\\.)*"|-?Infinity|NaN|-?[0-9]+(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?', re.DOTALL
)
_CONTROL = re.compile(r"[\x00-\x1f]")
_INTEGERS = range(-(2**127), 2**128)
"""The integers that Polars reads. They have at most 39 digits."""

_HEAD_LINES = 20_000


class _Number(str):
    """A number as written. Only the form of a line matters, and Python limits an int's digits."""

    __slots__ = ()


_DECODER = json.JSONDecoder(strict=False, parse_int=_Number, parse_float=_Number)
_NAMES: dict[type, str] = {
    list: "list",
    str: "string",
    _Number: "number",
    float: "number",
    bool: "boolean",
    type(None): "null",
}


@dataclass(frozen=True, slots=True)
class ParsedBlock:
    """The rows of a block of lines."""

    table: pa.Table
    """(N rows,) the columns asked for, all `large_string`. A field that a line lacks is null."""
    numbers: Sequence[int]
    """(N,) line number of each row, from 1."""
    malformed: tuple[Malformed, ...]
    """The lines that are no comments."""


def parse_block(
    block: bytes | memoryview,
    columns: tuple[str, ...],
    needed: tuple[str, ...],
    file: str,
    first_line: int,
) -> ParsedBlock:
    """Returns the fields `columns` of a block of whole lines, as strings.

    The first of repeated keys counts, and a float of whole value reads as the integer. Without a
    column in `needed` a line is malformed. Lines of `file` are counted from `first_line`. The
    result shares no memory with the block.
    """
    if first_line == 1 and block[: len(BYTE_ORDER_MARK)] == BYTE_ORDER_MARK:
        block = block[len(BYTE_ORDER_MARK) :]
    table, numbers, malformed = _parsed(block, columns, file, first_line)
    parsed = without_missing(table, numbers, needed, file)
    malformed = sorted([*malformed, *parsed.malformed], key=lambda line: line.line)
    return replace(parsed, malformed=tuple(malformed))


def lines_of(block: bytes | memoryview) -> int:
    """Returns the number of lines of a block."""
    native = kernel("corpus.reading._comments")
    if native is None:
        block = bytes(block)
        return block.count(b"\n") + (block[-1:] not in (b"", b"\n"))
    found: int = native.lines(block)
    return found


def _parsed(
    block: bytes | memoryview, columns: tuple[str, ...], file: str, first_line: int
) -> tuple[pa.Table, Sequence[int], list[Malformed]]:
    """Returns the rows of readable lines, their line numbers, and the malformed lines."""
    native = kernel("corpus.reading._comments")
    if native is None:
        frame, rows, bad = _read_by_polars(bytes(block), columns, file, first_line)
        return as_table(frame), rows, bad
    found, plain, other = native.json_fields(block, columns, first_line)
    table = pa.table([array_of(*column) for column in found], list(columns))
    numbers = np.frombuffer(plain, np.int64)
    refused = np.frombuffer(other, np.int64)
    if not len(refused):
        return table, _as_range(numbers), []
    lines = bytes(block).split(b"\n")
    rest = b"\n".join(lines[number - first_line] for number in refused.tolist())
    frame, rows, bad = _read_by_polars(rest, columns, file, 1)
    numbers = np.concatenate([numbers, refused[np.fromiter(rows, np.int64) - 1]])
    order = np.argsort(numbers)
    malformed = [structs.replace(line, line=int(refused[line.line - 1])) for line in bad]
    table = take_rows(pa.concat_tables([table, as_table(frame)]), order)
    return table, numbers[order].tolist(), malformed


def _as_range(numbers: NDArray[np.int64]) -> Sequence[int]:
    """Returns increasing numbers, as a range where they have no gaps."""
    first, last = (int(numbers[0]), int(numbers[-1])) if len(numbers) else (1, 0)
    return range(first, last + 1) if last - first + 1 == len(numbers) else numbers.tolist()


def _read_by_polars(
    block: bytes, columns: tuple[str, ...], file: str, first_line: int
) -> tuple[pl.DataFrame, Sequence[int], list[Malformed]]:
    try:
        frame = _read(block, columns)
    except POLARS_ERRORS:
        return _read_sound_lines(block, columns, file, first_line)
    return frame, _numbers(block, len(frame), first_line), []


def without_missing(
    table: pa.Table, numbers: Sequence[int], needed: Sequence[str], file: str
) -> ParsedBlock:
    """Returns the rows that have every column in `needed`. The others are malformed."""
    if not any(table[name].null_count for name in needed):
        return ParsedBlock(table, numbers, ())
    absent = np.stack([table[name].is_null().to_numpy() for name in needed])
    bad = absent.any(axis=0)
    malformed = []
    for row in np.flatnonzero(bad).tolist():
        missing = map(repr, compress(needed, absent[:, row]))
        malformed.append(Malformed(file, numbers[row], f"no {', '.join(missing)}"))
    good = np.flatnonzero(~bad)
    kept = [numbers[row] for row in good.tolist()]
    return ParsedBlock(take_rows(table, good), kept, tuple(malformed))


def keys_of(block: bytes | memoryview) -> dict[str, None]:
    """Returns the keys of the objects in the first lines of a block, in order of appearance."""
    keys: dict[str, None] = {}
    for line in bytes(block).split(b"\n", _HEAD_LINES)[:_HEAD_LINES]:
        try:
            value = _DECODER.decode(_text(line))
        except (ValueError, RecursionError):
            continue
        if isinstance(value, dict):
            keys |= dict.fromkeys(value)
    return keys


def _read(block: bytes, columns: tuple[str, ...]) -> pl.DataFrame:
    """Returns the rows of lines that are all objects, or raises `POLARS_ERRORS`."""
    return read_objects(block, dict.fromkeys(columns, pl.String))


def _numbers(block: bytes, rows: int, first_line: int) -> Sequence[int]:
    if rows == lines_of(block):
        return range(first_line, first_line + rows)
    # blank lines: rare
    return [number for number, line in enumerate(block.split(b"\n"), first_line) if line.strip()]


def _read_sound_lines(
    block: bytes, columns: tuple[str, ...], file: str, first_line: int
) -> tuple[pl.DataFrame, list[int], list[Malformed]]:
    """Returns the rows of readable lines, their line numbers, and the malformed lines."""
    numbers: list[int] = []
    lines: list[str] = []
    malformed: list[Malformed] = []
    refused: list[int] = []
    for number, line in enumerate(block.split(b"\n"), first_line):
        text = _text(line)
        if not text.strip():
            continue
        if problem := _problem(text):
            malformed.append(Malformed(file, number, problem))
        else:
            numbers.append(number)
            lines.append(text)
    try:
        frames = [_read_lines(lines, columns)]
    except POLARS_ERRORS:
        frames, refused = _read_all_but_refused(list(map(_repaired, lines)), columns)
    deep = [Malformed(file, numbers[row], "not JSON: nested too deeply") for row in refused]
    for row in reversed(refused):
        del numbers[row]
    empty = pl.DataFrame(schema=dict.fromkeys(columns, pl.String))
    return pl.concat([empty, *frames]), numbers, malformed + deep


def _read_all_but_refused(
    lines: list[str], columns: tuple[str, ...]
) -> tuple[list[pl.DataFrame], list[int]]:
    """Returns frames of the lines that Polars reads, and the indices of those that it refuses."""
    try:
        return [_read_lines(lines, columns)], []
    except POLARS_ERRORS:
        if len(lines) == 1:
            return [], [0]
    half = len(lines) // 2
    first, refused = _read_all_but_refused(lines[:half], columns)
    second, later = _read_all_but_refused(lines[half:], columns)
    return first + second, refused + [half + row for row in later]


def _read_lines(lines: list[str], columns: tuple[str, ...]) -> pl.DataFrame:
    return _read("\n".join(lines).encode(), columns)


def _text(line: bytes) -> str:
    return line.removeprefix(BYTE_ORDER_MARK).decode("utf-8", "replace").strip(" \t\r")


def _problem(text: str) -> str | None:
    """Returns what is wrong with a line. None for an object, or where Polars decides."""
    try:
        value: Any = _DECODER.decode(text)
    except RecursionError:
        return None  # the limit depends on the stack here, but not in Polars
    except ValueError as error:
        return f"not JSON: {error}"
    if not isinstance(value, dict):
        return f"a JSON {_NAMES[type(value)]} where one comment object is expected"
    return None


def _repaired(text: str) -> str:
    """Returns a line that `json` reads, changed so that Polars reads it too."""
    return _TOKEN.sub(_repaired_token, text) if _MAY_NEED_REPAIR.search(text) else text


def _repaired_token(match: re.Match[str]) -> str:
    token = match.group()
    if token[0] == '"':
        return _CONTROL.sub(lambda control: f"\\u{ord(control.group()):04x}", token)
    if token in ("NaN", "Infinity", "-Infinity"):
        return "null"
    if token.lstrip("-").isdigit():
        readable = len(token) <= 40 and int(token) in _INTEGERS
    else:
        readable = abs(float(token)) < float("inf")
    return token if readable else f'"{token}"'
