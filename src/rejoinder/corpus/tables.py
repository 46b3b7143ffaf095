"""Rows of CSV and TSV files, quoted or not, each with the line on which it begins."""

import csv
import io
from collections.abc import Iterator

_MAX_ROW_CHARS = 1 << 24


def table_rows(pieces: Iterator[bytes], separator: str) -> Iterator[tuple[int, list[str]]]:
    """The rows of a table with the numbers of their first lines, from 1; blank lines are skipped.

    Quotes are read as CSV has them (a field in quotes may hold separators, line ends and doubled
    quotes); where they are not closed or not at a field's ends, they are plain characters: people
    write tables without quoting, and one stray quote must not swallow the rest of a file.
    """
    lines = _lines(pieces)
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
        taken = [line]
        quotes, size = line.count('"'), len(line)
        while quotes % 2 and size < _MAX_ROW_CHARS:
            following = pending.pop() if pending else next(lines, None)
            if following is None:
                break
            taken.append(following)
            quotes += following.count('"')
            size += len(following)
        row_or_none = _quoted("".join(taken), separator)
        if row_or_none is None:
            pending += reversed(taken[1:])
            row_or_none, taken = line.rstrip("\r\n").split(separator), taken[:1]
        yield number, row_or_none
        number += len(taken) - 1


def _quoted(text: str, separator: str) -> list[str] | None:
    """The one row in `text`, none where its quotes are not those of CSV."""
    try:
        rows = list(csv.reader(io.StringIO(text, newline=""), delimiter=separator, strict=True))
    except csv.Error:
        return None
    return rows[0] if len(rows) == 1 else None


def _lines(pieces: Iterator[bytes]) -> Iterator[str]:
    """Lines with their ends; what is not UTF-8 becomes U+FFFD."""
    stream = io.BufferedReader(_Stream(pieces), 1 << 18)
    return iter(io.TextIOWrapper(stream, "utf-8-sig", "replace", newline=""))


class _Stream(io.RawIOBase):
    """Pieces of bytes as a file."""

    def __init__(self, pieces: Iterator[bytes]) -> None:
        self.pieces, self.rest = pieces, memoryview(b"")

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: "memoryview") -> int:  # type: ignore[override]
        while not self.rest:
            piece = next(self.pieces, None)
            if piece is None:
                return 0
            self.rest = memoryview(piece)
        count = min(len(buffer), len(self.rest))
        buffer[:count] = self.rest[:count]
        self.rest = self.rest[count:]
        return count
