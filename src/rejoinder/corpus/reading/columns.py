"""Gathers, hashes and sorts columns of strings as two buffers, and cleans the texts of comments.

Functions of pyarrow that take Python values or NumPy arrays import pandas, which takes a quarter of
a second. This module and `engines.local` therefore use buffers and Polars.
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
from typing import Any, NamedTuple

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from rejoinder.corpus.options import COMMENTS, FIELDS, Columns
from rejoinder.exports.base import Malformed
from rejoinder.io.files.hashed import md5_of
from rejoinder.registry import kernel

Index = NDArray[np.uint32]
Hashes = NDArray[np.uint64]


class Strings(NamedTuple):
    """(N,) strings without nulls, laid out as in a `large_string` array of Arrow."""

    content: memoryview
    """All strings, one after the other, in UTF-8."""
    ends: memoryview
    """(N + 1,) int64: string i is `content[ends[i]:ends[i + 1]]`."""

    def __len__(self) -> int:
        return self.ends.nbytes // 8 - 1

    @property
    def lengths(self) -> NDArray[np.int64]:
        """(N,) bytes of each string."""
        ends = np.frombuffer(self.ends, np.int64)
        return ends[1:] - ends[:-1]

    @property
    def nbytes(self) -> int:
        """Bytes of both buffers."""
        ends = np.frombuffer(self.ends, np.int64)
        return int(ends[-1] - ends[0]) + self.ends.nbytes

    def hashes(self, prefix: str = "") -> Hashes:
        """Returns (N,) a hash of each string, the same within one process.

        A `prefix` of three bytes is left out of the strings that have it.
        """
        native = kernel("corpus.reading._strings")
        if native is not None:
            return np.frombuffer(native.hashes([self], prefix), np.uint64)
        return self.to_polars().str.strip_prefix(prefix).hash().to_numpy()

    def starts_with(self, prefix: bytes) -> NDArray[np.bool_]:
        """Returns (N,) whether each string starts with `prefix`.

        >>> as_strings(pl.Series(["t3_a", "t", ""])).starts_with(b"t3_").tolist()
        [True, False, False]
        """
        ends = np.frombuffer(self.ends, np.int64)
        content = np.frombuffer(self.content, np.uint8)
        found = self.lengths >= len(prefix)
        for index, byte in enumerate(prefix):
            rows = np.flatnonzero(found)
            found[rows] = content[ends[rows] + index] == byte
        return found

    def order_in_runs(self, starts: NDArray[np.int64]) -> NDArray[np.int64]:
        """Returns (N,) the rows of R runs, each run's strings in the order of their bytes.

        `starts` has the first row of each run, and N.

        >>> as_strings(pl.Series(["b", "a", "a"])).order_in_runs(np.array([0, 2, 3])).tolist()
        [1, 0, 2]
        """
        native = kernel("corpus.reading._strings")
        if native is not None:
            return np.frombuffer(native.order_in_runs([self], starts), np.int64)
        runs = np.repeat(np.arange(len(starts) - 1), np.diff(starts))
        rows = pl.DataFrame({"run": runs, "string": self.to_polars()})
        return rows.select(pl.arg_sort_by("run", "string")).to_series().cast(pl.Int64).to_numpy()

    def to_arrow(self) -> pa.LargeStringArray:
        """Returns the strings as an array of Arrow that shares their memory."""
        buffers = (pa.py_buffer(self.ends), pa.py_buffer(self.content))
        return pa.LargeStringArray.from_buffers(len(self), *buffers)

    def to_polars(self) -> pl.Series:
        """Returns the strings as a series of Polars that shares their memory."""
        return pl.Series(self.to_arrow(), dtype=pl.String)


def as_strings(values: pa.Array | pa.ChunkedArray | pl.Series) -> Strings:
    """Returns the strings of an array; a null becomes an empty string."""
    if isinstance(values, pl.Series):
        values = as_arrow(values)
    if isinstance(values, pa.ChunkedArray):
        values = one_array(values)
    if values.type != pa.large_string():
        values = values.cast(pa.large_string())
    _, ends, content = values.buffers()
    first, rows = values.offset, len(values)
    ends = memoryview(ends)[8 * first : 8 * (first + rows + 1)] if rows else memoryview(bytes(8))
    return Strings(memoryview(content or b""), ends)


def as_arrow(values: pl.Series) -> pa.Array:
    """Returns the values of a series as one array of Arrow, strings as `large_string`."""
    return values.rechunk().to_arrow(compat_level=pl.CompatLevel.oldest())


def one_array(values: pa.ChunkedArray) -> pa.Array:
    """Returns the values as one array, without a copy of a single chunk."""
    if values.num_chunks == 1:
        return values.chunk(0)
    return pa.concat_arrays(values.chunks) if values.num_chunks else pa.nulls(0, values.type)


def as_table(frame: pl.DataFrame) -> pa.Table:
    """Returns the columns of a frame as arrays of Arrow, strings as `large_string`."""
    return frame.to_arrow(compat_level=pl.CompatLevel.oldest())


def take_rows(table: pa.Table, rows: NDArray[np.int64]) -> pa.Table:
    """Returns chosen rows of a table."""
    # an array of NumPy would do, but pyarrow would import pandas to look at it
    content = pa.py_buffer(rows.astype(np.int64))
    index = pa.Array.from_buffers(pa.int64(), len(rows), [None, content])
    return table.take(index)


def array_of(content: Any, ends: Any, present: Any) -> pa.LargeStringArray:
    """Returns (N,) strings from buffers as in `Strings`, null where the byte of `present` is 0."""
    exists = np.frombuffer(present, np.bool_)
    bits = None if exists.all() else pa.py_buffer(np.packbits(exists, bitorder="little"))
    buffers = pa.py_buffer(ends), pa.py_buffer(content), bits
    return pa.LargeStringArray.from_buffers(len(exists), *buffers)


def gather(columns: Sequence[Strings], which: Index, rows: Index, prefix: str = "") -> Strings:
    """Returns (N,) strings: string i is row `rows[i]` of column `which[i]`.

    A `prefix` of three bytes is left out of the strings that have it.

    >>> column = as_strings(pl.Series(["t3_a", "b"]))
    >>> gather([column], *np.uint32([[0, 0], [1, 0]]), prefix="t3_").to_polars().to_list()
    ['b', 'a']
    """
    native = kernel("corpus.reading._strings")
    if native is not None:
        content, ends = native.gather(list(columns), which, rows, prefix)
        return Strings(memoryview(content), memoryview(ends))
    starts = np.cumsum([0, *map(len, columns)])
    together = pl.concat([pl.Series([], dtype=pl.String), *(one.to_polars() for one in columns)])
    found = together.gather(starts[which] + rows)
    return as_strings(found.str.strip_prefix(prefix) if prefix else found)


_KINDS = {"int32": pa.int32(), "string": pa.large_string()}
ARROW = pa.schema([(name, _KINDS[kind]) for name, kind in COMMENTS.items()])
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
        is_bad = absent.any(axis=0)
        problems = [
            Malformed(file, number, f"no {', '.join(map(repr, compress(needed, lacks)))}")
            for number, lacks in zip(numbers[is_bad].tolist(), absent.T[is_bad], strict=True)
        ]
        malformed = sorted([*malformed, *problems], key=lambda line: line.line)
        table, numbers = take_rows(table, np.flatnonzero(~is_bad)), numbers[~is_bad]
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
