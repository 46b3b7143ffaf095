"""Comments from blocks of JSON lines: lenient, and the same for every line.

A kernel in C reads plain lines, which are nearly all, and Python's `json` reads the others, one by
one. Bytes that are not UTF-8, halves of surrogate pairs, control characters in strings, NaN and
large numbers never cost a comment.
"""

import json
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa

from rejoinder.corpus.reading.comments import Parsed, number_text, without_missing
from rejoinder.corpus.reading.strings import array_of, as_table, take_rows
from rejoinder.exports.base import Malformed
from rejoinder.io.formats.surrogates import replace_surrogates
from rejoinder.io.formats.tables import BYTE_ORDER_MARK, shortened
from rejoinder.kernels import kernel

_HEAD_LINES = 20_000


# of a repeated key the first value counts
_DECODER = json.JSONDecoder(
    strict=False,
    object_pairs_hook=lambda pairs: dict(pairs) | dict(reversed(pairs)),
    parse_constant=lambda _: None,
)


def parse_block(
    block: bytes,
    columns: tuple[str, ...],
    needed: tuple[str, ...],
    file: str,
    first_line: int,
) -> Parsed:
    """Returns the fields `columns` of a block of whole lines, as strings.

    The first of repeated keys counts, and a float of whole value reads as the integer. Without a
    column in `needed` a line is malformed. Lines of `file` are counted from `first_line`.
    """
    if first_line == 1:
        block = block.removeprefix(BYTE_ORDER_MARK)
    native = kernel("corpus.reading._comments")
    if native is None:
        content, plain = [(b"", bytes(8), b"")] * len(columns), b""
        rest = list(enumerate(block.split(b"\n"), first_line))
    else:
        content, plain, refused = native.json_fields(block, columns, first_line)
        others = np.frombuffer(refused, np.int64).tolist()
        lines = block.split(b"\n") if others else []
        rest = [(number, lines[number - first_line]) for number in others]
    table = pa.table([array_of(*column) for column in content], list(columns))
    numbers = np.frombuffer(plain, np.int64)
    found, malformed = _one_by_one(rest, file)
    if found:
        numbers = np.concatenate([numbers, np.fromiter(found, np.int64)])
        order = np.argsort(numbers)
        table = take_rows(pa.concat_tables([table, _table(found.values(), columns)]), order)
        numbers = numbers[order]
    return without_missing(table, numbers, needed, file, malformed)


def keys_of(block: bytes) -> dict[str, None]:
    """Returns the keys of the objects in the first lines of a block, in order of appearance."""
    lines = block.split(b"\n", _HEAD_LINES)[:_HEAD_LINES]
    found, _ = _one_by_one(enumerate(lines), "")
    return dict.fromkeys(key for values in found.values() for key in values)


def _one_by_one(
    lines: Iterable[tuple[int, bytes]], file: str
) -> tuple[dict[int, dict[str, Any]], list[Malformed]]:
    """Returns the objects of lines by their line numbers, and the malformed lines."""
    found: dict[int, dict[str, Any]] = {}
    malformed: list[Malformed] = []
    for number, line in lines:
        text = line.removeprefix(BYTE_ORDER_MARK).decode("utf-8", "replace").strip(" \t\r")
        if not text:
            continue
        try:
            value = _DECODER.decode(text)
        except (ValueError, RecursionError) as error:
            malformed.append(Malformed(file, number, f"not JSON: {error}"))
            continue
        if isinstance(value, dict):
            found[number] = value
        else:
            problem = f"{shortened(text)} where one comment object is expected"
            malformed.append(Malformed(file, number, problem))
    return found, malformed


def _table(rows: Iterable[Mapping[str, Any]], columns: tuple[str, ...]) -> pa.Table:
    values = [[_text(row.get(name)) for name in columns] for row in rows]
    return as_table(pl.DataFrame(values, dict.fromkeys(columns, pl.String), orient="row"))


def _text(value: Any) -> str | None:
    if isinstance(value, str):
        return replace_surrogates(value)
    if value is None or isinstance(value, float):
        return number_text(value)
    return replace_surrogates(json.dumps(value, ensure_ascii=False))
