"""Makes comments with clean texts of columns of strings under any names.

Functions of pyarrow that take values of Python or arrays of NumPy import pandas, which takes a
quarter of a second, so that buffers and Polars stand in for them here and in `engines.local`.
"""

import html
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import cache
from html.entities import html5
from itertools import compress

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from rejoinder.corpus.options import COMMENTS, FIELDS, Columns
from rejoinder.corpus.reading.strings import (
    as_arrow,
    as_strings,
    as_table,
    one_array,
    take_rows,
)
from rejoinder.exports.base import Malformed
from rejoinder.io.files.hashed import md5_of
from rejoinder.kernels import kernel

ARROW = pa.schema(
    [
        (name, pa.int32() if kind == "int32" else pa.large_string())
        for name, kind in COMMENTS.items()
    ]
)
"""The columns `COMMENTS` as Arrow has them."""
_ENTITY = re.compile(r"&(?:#[0-9]{1,7}|#[xX][0-9a-fA-F]{1,6}|[A-Za-z][A-Za-z0-9]*);")
_WHITE_SPACE = r"[\t-\r\x{85}\x{200B}\p{Z}]+"
_MAY_BE_UNCLEAN = r"&|[\t-\r\x{85}\x{200B}]|[^ \P{Z}]|  |^ | $"
"""Matches an ampersand, and white space other than single spaces between words."""
_UNCLEAN = 2
"""The bit by which the kernel marks texts that match `_MAY_BE_UNCLEAN`."""


@dataclass(frozen=True, slots=True)
class Parsed:
    """The rows of a piece of a file."""

    table: pa.Table
    """(N rows,) the columns asked for, all `large_string`. A field that a row lacks is null."""
    numbers: NDArray[np.int64]
    """(N,) line or row number of each row, from 1."""
    malformed: tuple[Malformed, ...]
    """The lines that are not comments."""


def without_missing(
    table: pa.Table,
    numbers: NDArray[np.int64],
    needed: Sequence[str],
    file: str,
    malformed: Sequence[Malformed] = (),
) -> Parsed:
    """Returns the rows that have every column in `needed`. The others are `malformed`, too."""
    if any(table[name].null_count for name in needed):
        absent = np.stack([table[name].is_null().to_numpy() for name in needed])
        problems = [
            Malformed(
                file, int(numbers[row]), f"no {', '.join(map(repr, compress(needed, lacks)))}"
            )
            for row, lacks in enumerate(absent.T)
            if lacks.any()
        ]
        malformed = sorted([*malformed, *problems], key=lambda line: line.line)
        good = np.flatnonzero(~absent.any(axis=0))
        table, numbers = take_rows(table, good), numbers[good]
    return Parsed(table, numbers, tuple(malformed))


def number_text(number: float | None) -> str | None:
    """Returns a number as an id is written: without an exponent, and whole ones without a point.

    NaN and infinities are None.

    >>> number_text(2.0), number_text(1e-7), number_text(1e16), number_text(float("nan"))
    ('2', '0.0000001', '10000000000000000', None)
    """
    if number is None or not math.isfinite(number):
        return None
    return format(Decimal(repr(number)), "f").removesuffix(".0")


def as_comments(parsed: Parsed, columns: Columns, file: str) -> pa.RecordBatch:
    """Returns the columns of `COMMENTS` from columns of strings, under their names in `file`.

    The stem of `file` is the source of comments that name none. The ids of messages and replies
    are made of the numbers of their lines.
    """
    table, names = parsed.table, dict(columns.names)
    if columns.are_pairs:
        table = _split_pairs(parsed, columns, file)
        names = {name: name for name in FIELDS}
    found = {name: _column(table, names.get(name)) for name in FIELDS}
    found |= {name: _whole_numbers(found[name]) for name in ("id", "parent", "thread")}
    if pc.any(pc.starts_with(found["id"], "t1_")).as_py():
        found["id"] = as_arrow(pl.Series(found["id"], dtype=pl.String).str.strip_prefix("t1_"))
    for name, default in (("source", file.split(".")[0]), ("author", ""), ("text", "")):
        if found[name].null_count:
            found[name] = as_arrow(pl.Series(found[name], dtype=pl.String).fill_null(default))
    clean, counts = clean_and_letters(found["text"])
    letters = pa.Array.from_buffers(pa.int32(), len(counts), [None, pa.py_buffer(counts)])
    arrays = {**found, "clean": clean, "letters": letters}
    return pa.record_batch([arrays[name] for name in COMMENTS], schema=ARROW)


def _column(table: pa.Table, name: str | None) -> pa.LargeStringArray:
    if name not in table.column_names:
        return pa.nulls(len(table), pa.large_string())
    return one_array(table[name])


def _whole_numbers(ids: pa.LargeStringArray) -> pa.LargeStringArray:
    """Returns (N,) ids with `2` for `2.0`: columns with gaps are often written as floats.

    >>> ids = ["2.0", "t1_7.00", "-0", "2.5", "v2.0", "1e3", None]
    >>> _whole_numbers(pa.array(ids, pa.large_string())).to_pylist()
    ['2', 't1_7', '0', '2.5', 'v2.0', '1e3', None]
    """
    content = np.frombuffer(as_strings(ids).content, np.uint8)
    if not (content == ord(".")).any() and not pc.any(pc.ends_with(ids, "-0")).as_py():
        return ids
    texts = pl.Series(ids, dtype=pl.String)
    texts = texts.str.replace(r"^((?:t[0-9]_)?-?[0-9]+)\.0+$", "${1}")
    return as_arrow(texts.set(texts == "-0", "0"))


def _split_pairs(parsed: Parsed, columns: Columns, file: str) -> pa.Table:
    """Returns two comments for each row of message and reply."""
    frame = pl.DataFrame(pl.from_arrow(parsed.table))
    # with a hash of the message as thread, all replies to the same text are in one split
    messages = frame.get_column(columns.names["message"]).fill_null("")
    replies = frame.get_column(columns.names["reply"]).fill_null("")
    folded = messages.str.to_lowercase().str.replace_all(r"\s+", " ").str.strip_chars()
    threads = [md5_of(text.encode()) for text in folded]
    ids = file + ":" + pl.Series(parsed.numbers).cast(pl.String).str.zfill(9)
    source = columns.names.get("source")
    none = pl.lit(None, pl.String)
    base = pl.DataFrame({"thread": threads}, schema={"thread": pl.String}).with_columns(
        author=none, created=none, source=frame.get_column(source) if source else none
    )
    first = base.with_columns(id=ids + ":m", parent=none, text=messages)
    second = base.with_columns(id=ids + ":r", parent="t1_" + ids + ":m", text=replies)
    return as_table(pl.concat([first, second]).select(FIELDS))


def clean_and_letters(texts: pa.LargeStringArray) -> tuple[pa.LargeStringArray, NDArray[np.int32]]:
    r"""Returns (N,) cleaned texts, null where cleaning changes nothing, and (N,) int32 letters.

    The rules look at texts as published, with their entities. Cleaning comes after them.

    >>> texts = pa.array(["as it is", "R&amp;D 中文", " two  words\n"], pa.large_string())
    >>> clean, letters = clean_and_letters(texts)
    >>> clean.to_pylist(), letters.tolist()
    ([None, 'R&D 中文', 'two words'], [6, 7, 8])
    """
    published = pl.Series(texts, dtype=pl.String)
    native = kernel("corpus.reading._strings")
    if native is None:
        letters = published.str.replace_all(r"[^\p{L}]+", "").str.len_chars().to_numpy()
        letters, rows = letters.astype(np.int32), published.str.contains(_MAY_BE_UNCLEAN).arg_true()
    else:
        counts, kinds = native.text_facts(*as_strings(texts), letter_table())
        letters = np.frombuffer(counts, np.int32)
        rows = pl.Series(np.flatnonzero(np.frombuffer(kinds, np.uint8) & _UNCLEAN))
    before = published.gather(rows)
    after = unescape(before).str.replace_all(_WHITE_SPACE, " ").str.strip_chars(" ")
    clean = pl.repeat(None, len(texts), dtype=pl.String, eager=True)
    return as_arrow(clean.scatter(rows, after.set(after == before, None))), letters


def unescape(texts: pl.Series) -> pl.Series:
    """Replaces HTML entities (`&gt;`, `&amp;`, `&#x200B;`) by their characters, once.

    An entity must end in a semicolon, and its name must be known. A number that is not a character
    (half of a surrogate pair, NUL, beyond Unicode) becomes U+FFFD.

    >>> unescape(pl.Series(["a &gt; b &amp;amp; c", "R&D;", "?a&copy=1"])).to_list()
    ['a > b &amp; c', 'R&D;', '?a&copy=1']
    """
    rows = texts.str.contains(r"&#?\w+;").arg_true()
    replaced = [_ENTITY.sub(_character, text) for text in texts.gather(rows)]
    return texts.clone().scatter(rows, pl.Series(replaced, dtype=pl.String))


def _character(match: re.Match[str]) -> str:
    entity = match.group()
    # names count only as a whole: html.unescape would find "not" in "&notice;"
    return html.unescape(entity) if entity[1] == "#" else html5.get(entity[1:], entity)


@cache
def letter_table() -> bytes:
    """Returns a bit for each number below 2**21, set where it is the code point of a letter."""
    codes = np.arange(0x110000, dtype="<u4")
    characters = codes[(codes < 0xD800) | (codes >= 0xE000)].tobytes().decode("utf-32-le")
    [letters] = pl.Series([characters]).str.replace_all(r"[^\p{L}]+", "")
    is_letter = np.zeros(1 << 21, np.bool_)
    is_letter[np.frombuffer(letters.encode("utf-32-le"), "<u4")] = True
    return np.packbits(is_letter, bitorder="little").tobytes()
