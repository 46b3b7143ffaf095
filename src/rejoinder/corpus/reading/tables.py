"""Comments from CSV and TSV files, quoted or not."""

from collections.abc import Callable, Iterator

import numpy as np
import polars as pl

from rejoinder.corpus.options import Columns
from rejoinder.corpus.reading.comments import Parsed
from rejoinder.corpus.reading.strings import as_table
from rejoinder.errors import InputError
from rejoinder.exports.base import Malformed
from rejoinder.io.files.places import Place
from rejoinder.io.formats.compression import decompressed
from rejoinder.io.formats.separated import table_rows

_BLOCK_ROWS = 65_536
_SEPARATORS = (",", ";", "\t", "|")


def table_pieces(
    path: Place, content: Iterator[bytes], separator: str, columns: Columns, longest: int
) -> Iterator[Callable[[], Parsed]]:
    """Yields the rows of a table in pieces.

    A row with another number of columns than the first row is malformed.
    """
    rows = table_rows(content, separator, str(path), longest)
    first = next(rows, None)
    if first is None:
        return
    width = len(first[1])
    header = _header(first[1], columns)
    if columns.missing(header) and header[0].lstrip("\ufeff \t").startswith(("{", "[")):
        raise InputError(
            f"{path} holds JSON, not a table; JSON lines are read from files ending in .jsonl."
        )
    columns.check(header, f"{path} (separated by {separator!r})")
    wanted = [name for name in columns.wanted if name in header]
    indices = [header.index(name) for name in wanted]
    kept: list[list[str]] = []
    numbers: list[int] = []
    malformed: list[Malformed] = []

    def piece() -> Callable[[], Parsed]:
        frame = pl.DataFrame(kept, schema=dict.fromkeys(wanted, pl.String), orient="row")
        parsed = Parsed(as_table(frame), np.array(numbers, np.int64), tuple(malformed))
        return lambda: parsed

    if columns.are_numbers:
        numbers.append(first[0])
        kept.append([first[1][index] for index in indices])
    for number, row in rows:
        if len(row) == width:
            numbers.append(number)
            kept.append([row[index] for index in indices])
        else:
            problem = f"{len(row)} columns where the first line has {width}"
            malformed.append(Malformed(path.name, number, problem))
        if len(kept) + len(malformed) >= _BLOCK_ROWS:
            yield piece()
            kept, numbers, malformed = [], [], []
    yield piece()


def detect_separator(path: Place, usual: str, columns: Columns) -> str:
    """Returns the separator that gives the wanted columns in the first line, `usual` first.

    If none does, the separator that gives most columns is returned, so that the error names them.
    """
    widths: dict[str, int] = {}
    for separator in dict.fromkeys((usual, *_SEPARATORS)):
        _, first = next(table_rows(decompressed(path), separator), (0, [""]))
        if not columns.missing(_header(first, columns)):
            return separator
        widths[separator] = len(first)
    return max(widths, key=widths.__getitem__)


def _header(first: list[str], columns: Columns) -> list[str]:
    """Returns the names of the columns: the first row, or the numbers from 1."""
    return [str(number) for number in range(1, len(first) + 1)] if columns.are_numbers else first
