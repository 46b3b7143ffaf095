"""Maps the columns of a file, whatever their names, to those of comments.

Functions of pyarrow that take values of Python or arrays of NumPy import pandas, which takes a
quarter of a second, so that buffers and Polars stand in for them here and in `parted.reading`.
"""

from collections.abc import Sequence

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc

from rejoinder.corpus.reading.strings import as_arrow, as_strings, as_table, gather, one_array
from rejoinder.corpus.reading.texts import clean_and_letters
from rejoinder.corpus.schema import COMMENTS, FIELDS, Columns
from rejoinder.io.files.hashed import md5_of

_ZERO = b"-0"


def as_comments(
    table: pa.Table, columns: Columns, file: str, numbers: Sequence[int]
) -> pa.RecordBatch:
    """Returns the columns of `COMMENTS` from columns of strings, under their names in `file`.

    The stem of `file` is the source of comments that name none. The ids of messages and replies
    are made of (N,) line or row `numbers`.
    """
    if columns.are_pairs:
        table = as_table(_split_pairs(pl.DataFrame(pl.from_arrow(table)), columns, file, numbers))
        names = {name: name for name in FIELDS}
    else:
        names = dict(columns.names)
    found = {name: _column(table, names.get(name)) for name in FIELDS}
    found |= {name: _whole_numbers(found[name]) for name in ("id", "parent", "thread")}
    found["id"] = _without_prefix(found["id"], "t1_")
    for name, default in (("source", file.split(".")[0]), ("author", ""), ("text", "")):
        if found[name].null_count:
            found[name] = as_arrow(pl.Series(found[name], dtype=pl.String).fill_null(default))
    clean, counts = clean_and_letters(found["text"])
    letters = pa.Array.from_buffers(pa.int32(), len(counts), [None, pa.py_buffer(counts)])
    arrays = {**found, "clean": clean, "letters": letters}
    return pa.record_batch([arrays[name] for name in COMMENTS], list(COMMENTS))


def _column(table: pa.Table, name: str | None) -> pa.LargeStringArray:
    if name not in table.column_names:
        return pa.nulls(len(table), pa.large_string())
    return one_array(table[name])


def _without_prefix(ids: pa.LargeStringArray, prefix: str) -> pa.LargeStringArray:
    if not pc.any(pc.starts_with(ids, prefix)).as_py():
        return ids
    rows = np.arange(len(ids), dtype=np.uint32)
    return gather([as_strings(ids)], np.zeros_like(rows), rows, prefix).to_arrow()


def _whole_numbers(ids: pa.LargeStringArray) -> pa.LargeStringArray:
    """Returns (N,) ids with `2` for `2.0`: columns with gaps are often written as floats.

    >>> ids = ["2.0", "t1_7.00", "-0", "2.5", "v2.0", "1e3", None]
    >>> _whole_numbers(pa.array(ids, pa.large_string())).to_pylist()
    ['2', 't1_7', '0', '2.5', 'v2.0', '1e3', None]
    """
    strings = as_strings(ids)
    content, ends = np.frombuffer(strings.content, np.uint8), np.frombuffer(strings.ends, np.int64)
    has_points = bool((content == ord(".")).any())
    short = ends[:-1][np.diff(ends) == len(_ZERO)]
    has_zeros = any(content[start : start + len(_ZERO)].tobytes() == _ZERO for start in short)
    if not has_points and not has_zeros:
        return ids
    series = pl.Series(ids, dtype=pl.String)
    if has_points:
        series = series.str.replace(r"^((?:t[0-9]_)?-?[0-9]+)\.0+$", "${1}")
    return as_arrow(series.set(series == "-0", "0"))


def _split_pairs(
    frame: pl.DataFrame, columns: Columns, file: str, numbers: Sequence[int]
) -> pl.DataFrame:
    """Returns two comments for each row of message and reply."""
    # with a hash of the message as thread, all replies to the same text are in one split
    messages = frame.get_column(columns.names["message"]).fill_null("")
    replies = frame.get_column(columns.names["reply"]).fill_null("")
    folded = messages.str.to_lowercase().str.replace_all(r"\s+", " ").str.strip_chars()
    threads = [md5_of(text.encode()) for text in folded]
    ids = file + ":" + pl.Series(numbers, dtype=pl.Int64).cast(pl.String).str.zfill(9)
    source = columns.names.get("source")
    none = pl.lit(None, pl.String)
    base = pl.DataFrame({"thread": threads}, schema={"thread": pl.String}).with_columns(
        author=none, created=none, source=frame.get_column(source) if source else none
    )
    first = base.with_columns(id=ids + ":m", parent=none, text=messages)
    second = base.with_columns(id=ids + ":r", parent="t1_" + ids + ":m", text=replies)
    return pl.concat([first, second]).select(FIELDS)
