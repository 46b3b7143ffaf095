"""Comments from CSV and TSV files, quoted or not."""

import csv
import io
from collections.abc import Callable, Iterator

import numpy as np
import polars as pl

from rejoinder.corpus.manifest import Malformed
from rejoinder.corpus.options import Columns
from rejoinder.corpus.reading.comments import Parsed
from rejoinder.corpus.reading.strings import as_table
from rejoinder.errors import InputError
from rejoinder.io.files.places import Place
from rejoinder.io.formats.compression import decompressed
from rejoinder.io.formats.line_blocks import LONGEST_LINE, line_blocks
from rejoinder.io.formats.tables import BYTE_ORDER_MARK
from rejoinder.io.formats.text_lines import long_line

_MAX_ROW_CHARS = 1 << 24
_BLOCK_BYTES = 1 << 18
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


def table_rows(
    pieces: Iterator[bytes],
    separator: str,
    name: str = "the table",
    longest: int = LONGEST_LINE,
) -> Iterator[tuple[int, list[str]]]:
    """Yields the rows of a table with the numbers of their first lines, from 1.

    Blank lines are skipped. A field in quotes may hold separators, line ends and doubled quotes.
    Quotes that are not closed, or not at the ends of a field, are plain characters: people write
    tables without quoting, and one stray quote must not swallow the rest of a file.
    """
    lines = _lines(pieces, name, longest)
    pending: list[str] = []
    number = 0
    while True:
        line = pending.pop() if pending else next(lines, None)
        if line is None:
            return
        number += 1
        if '"' not in line:
            if row := line.rstrip("\r\n"):
                yield number, row.split(separator)
            continue
        joined = [line]
        quotes, size = line.count('"'), len(line)
        while quotes % 2 and size < _MAX_ROW_CHARS:
            following = pending.pop() if pending else next(lines, None)
            if following is None:
                break
            joined.append(following)
            quotes += following.count('"')
            size += len(following)
        fields = _quoted("".join(joined), separator)
        if fields is None:
            pending += reversed(joined[1:])
            fields, joined = line.rstrip("\r\n").split(separator), joined[:1]
        yield number, fields
        number += len(joined) - 1


def _quoted(text: str, separator: str) -> list[str] | None:
    """Returns the single row in `text`, None if it is not valid CSV."""
    try:
        rows = list(csv.reader(io.StringIO(text, newline=""), delimiter=separator, strict=True))
    except csv.Error:
        return None
    return rows[0] if len(rows) == 1 else None


def _lines(pieces: Iterator[bytes], name: str, longest: int) -> Iterator[str]:
    """Yields lines with their ends. Bytes that are not UTF-8 become U+FFFD.

    Raises:
        InputError: a line is too long; a part of a row would be another row.
    """
    done = 0

    def refuse(before: int) -> None:
        raise long_line(name, done + before + 1, longest)

    for number, block in enumerate(line_blocks(pieces, _BLOCK_BYTES, refuse, longest)):
        content = block.removeprefix(BYTE_ORDER_MARK) if number == 0 else block
        done += block.count(b"\n")
        yield from io.StringIO(content.decode("utf-8", "replace"), newline="")
