"""Rows of CSV and TSV files, quoted or not."""

import csv
import io
from collections.abc import Iterator

from rejoinder.io.formats.compression import LONGEST_LINE, line_blocks
from rejoinder.io.formats.tables import BYTE_ORDER_MARK
from rejoinder.io.formats.text_lines import long_line

_MAX_ROW_CHARS = 1 << 24
_BLOCK_BYTES = 1 << 18


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
