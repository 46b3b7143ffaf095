"""Maps the columns of a file, whatever their names, to those of comments."""

from collections.abc import Sequence

import polars as pl

from rejoinder.corpus.schema import COMMENTS, FIELDS, Columns
from rejoinder.corpus.texts import clean_and_letters
from rejoinder.files.hashed import md5_of


def as_comments(
    frame: pl.DataFrame, columns: Columns, file: str, numbers: Sequence[int]
) -> pl.DataFrame:
    """Returns the columns of `COMMENTS` from columns of strings, under their names in `file`.

    The stem of `file` is the source of comments that name none. The ids of messages and replies
    are made of (N,) line or row `numbers`.
    """
    if columns.are_pairs:
        frame = _split_pairs(frame, columns, file, numbers)
    else:
        frame = frame.select(
            pl.col(columns.names[name]).alias(name)
            if columns.names.get(name) in frame.columns
            else pl.lit(None, pl.String).alias(name)
            for name in FIELDS
        )
    frame = frame.with_columns(map(_whole_numbers, frame.select("id", "parent", "thread")))
    frame = frame.with_columns(
        pl.col("id").str.strip_prefix("t1_"),
        pl.col("source").fill_null(file.split(".")[0]),
        pl.col("author").fill_null(""),
    )
    text = frame.get_column("text").fill_null("")
    clean, letters = clean_and_letters(text)
    return frame.with_columns(text, clean.alias("clean"), pl.Series("letters", letters)).select(
        pl.col(name).cast(kind) for name, kind in COMMENTS.items()
    )


def _whole_numbers(ids: pl.Series) -> pl.Series:
    """Returns (N,) ids with `2` for `2.0`: columns with gaps are often written as floats.

    >>> _whole_numbers(pl.Series(["2.0", "t1_7.00", "-0", "2.5", "v2.0", "1e3", None])).to_list()
    ['2', 't1_7', '0', '2.5', 'v2.0', '1e3', None]
    """
    if ids.str.contains(".", literal=True).any():
        ids = ids.str.replace(r"^((?:t[0-9]_)?-?[0-9]+)\.0+$", "${1}")
    return ids.set(ids == "-0", "0") if (ids == "-0").any() else ids


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
