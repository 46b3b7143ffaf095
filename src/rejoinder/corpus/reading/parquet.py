"""Comments from Parquet files: typed columns become the same text as in JSON lines."""

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import numpy as np
import polars as pl
from numpy.typing import NDArray

from rejoinder.corpus.options import Columns
from rejoinder.corpus.reading.comments import Parsed, number_text, without_missing
from rejoinder.corpus.reading.strings import as_table
from rejoinder.errors import InputError
from rejoinder.io.files.addresses import AnyPath, local_copy

MAGIC = b"PAR1"
_BLOCK_ROWS = 65_536
_ERRORS = (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError)
"""What Polars raises for files that it can't read. Its code panics at some damage."""


def parquet_pieces(
    path: AnyPath, columns: Columns, on_read: Callable[[int], None]
) -> Iterator[Callable[[], Parsed]]:
    """Yields functions that parse the rows of a file, about 65,536 rows at a time.

    A row with null in a needed column is malformed. `on_read` is called with the approximate
    number of bytes that a piece takes in the file.
    """
    with local_copy(path) as file:
        try:
            yield from _pieces(file, path, columns, on_read)
        except _ERRORS as error:
            raise InputError(
                f"{path} is damaged or not a Parquet file: {_first_line(error)}."
            ) from None


def parquet_columns(path: AnyPath) -> list[str]:
    """Returns the names of the columns; none where the file is damaged, which reading it says."""
    with local_copy(path) as file:
        try:
            return list(pl.read_parquet_schema(file))
        except _ERRORS:
            return []


def _pieces(
    file: Path, path: AnyPath, columns: Columns, on_read: Callable[[int], None]
) -> Iterator[Callable[[], Parsed]]:
    scan = pl.scan_parquet(file, glob=False)
    schema = scan.collect_schema()
    columns.check(schema.names(), str(path))
    wanted = [name for name in columns.wanted if name in schema]
    for name in wanted:
        if schema[name].is_nested():
            raise InputError(
                f"{path} has {schema[name]} in the column {name!r}; text or numbers are "
                "expected. Name another column with `columns`."
            )
    rows = scan.select(pl.len()).collect().item()
    size = file.stat().st_size
    row = 1
    for frame in scan.select(wanted).collect_batches(chunk_size=_BLOCK_ROWS, maintain_order=True):
        numbers = np.arange(row, row + len(frame))
        yield partial(_parsed, frame, numbers, columns.needed, path)
        row += len(frame)
        on_read(size * len(frame) // max(rows, 1))


def _parsed(
    frame: pl.DataFrame, numbers: NDArray[np.int64], needed: tuple[str, ...], path: AnyPath
) -> Parsed:
    try:
        text = frame.select(_as_text(column) for column in frame)
    except _ERRORS as error:
        raise InputError(
            f"{path} rows {numbers[0]} to {numbers[-1]}: {_first_line(error)}."
        ) from None
    return without_missing(as_table(text), numbers, needed, path.name)


def _as_text(values: pl.Series) -> pl.Series:
    if values.dtype.is_float():
        return pl.Series(values.name, map(number_text, values), dtype=pl.String)
    return values.cast(pl.String)


def _first_line(error: BaseException) -> str:
    return str(error).split("\n")[0].rstrip(".")
