"""Text files by lines, and tables whose columns are separated by tabs.

Rows of CSV and TSV files, quoted or not.
"""

import csv
import io
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

from rejoinder.errors import InputError
from rejoinder.io.formats.compression import LONGEST_LINE, line_blocks
from rejoinder.io.formats.text_lines import long_line

BYTE_ORDER_MARK = b"\xef\xbb\xbf"


def decoded_lines(
    content: bytes, path: Path, encoding: str = "utf-8", *, first_line: int = 1
) -> list[str]:
    r"""Returns the lines of a text file, without their ends and without a byte order mark.

    A line ends with `\n` or `\r\n` and nothing else. `str.splitlines` would also cut at byte 0x85,
    form feeds and the like, which are text here. Messages count lines from `first_line`.

    Raises:
        InputError: a line is not in that encoding.
    """
    lines = []
    rows = content.removeprefix(BYTE_ORDER_MARK).split(b"\n")
    if rows and not rows[-1]:
        rows.pop()
    for number, row in enumerate(rows, first_line):
        try:
            lines.append(row.removesuffix(b"\r").decode(encoding))
        except UnicodeDecodeError as error:
            raise InputError(
                f"{path} line {number}: byte {error.object[error.start]:#04x} is not {encoding}."
            ) from None
    return lines


@dataclass(frozen=True, slots=True)
class Row:
    """The fields of a line. Its checks name the file, the line and the value that they refuse."""

    fields: list[str]
    line: int
    path: Path

    def __getitem__(self, column: int) -> str:
        return self.fields[column]

    def one_of(self, column: int, allowed: Collection[str]) -> str:
        """Returns a field without spaces around it, which must be one of `allowed`."""
        value = self.fields[column].strip()
        if value not in allowed:
            self.refuse(f"found {value[:20]!r}; expected one of {', '.join(allowed)}.")
        return value

    def score(self, column: int, low: float, high: float) -> float:
        """Returns a field that must be a number within [low, high]."""
        text = self.fields[column]
        try:
            value = float("nan" if "_" in text else text)  # Python reads 1_0 as 10
        except ValueError:
            value = float("nan")
        if not low <= value <= high:
            self.refuse(f"found {text[:20]!r}; expected a number from {low:g} to {high:g}.")
        return value

    def refuse(self, problem: str) -> NoReturn:
        """Raises an InputError that names the file and the line."""
        raise InputError(f"{self.path} line {self.line}: {problem}")


def table_rows(
    content: bytes, path: Path, columns: Sequence[int] = (), encoding: str = "utf-8"
) -> Iterator[Row]:
    """Yields the lines that are not blank, cut at tabs. Quotes are plain characters.

    Raises:
        InputError: a line is not in that encoding, or its number of fields is none of `columns`.
    """
    for number, line in enumerate(decoded_lines(content, path, encoding), 1):
        if line.strip():
            row = Row(line.split("\t"), number, path)
            if columns and len(row.fields) not in columns:
                allowed = " or ".join(map(str, columns))
                row.refuse(f"found {len(row.fields)} columns between tabs; expected {allowed}.")
            yield row


def below_header(
    content: bytes, path: Path, names: Sequence[str], *, exact: bool = True
) -> Iterator[Row]:
    """Yields the fields `names`, in that order, of the rows of a table below its header.

    Raises:
        InputError: the header lacks one of `names`, or a line has fewer fields than the header or,
            if `exact`, more. Without `exact` a line may lack fields at its end that are not read.
    """
    rows = table_rows(content, path)
    header = next(rows, Row([], 1, path))
    if missing := [name for name in names if name not in header.fields]:
        names_found = shortened(" ".join(header.fields))
        header.refuse(
            f"the header {names_found} lacks {', '.join(map(repr, missing))}; expected names "
            "separated by tabs."
        )
    indices = [header.fields.index(name) for name in names]
    for row in rows:
        found, needed = len(row.fields), len(header.fields)
        if found <= max(indices) or (exact and found != needed):
            row.refuse(f"found {found} columns between tabs; the header has {needed}.")
        yield Row([row.fields[index] for index in indices], row.line, path)


def shortened(text: str) -> str:
    """Returns at most 40 characters of a text in quotes, for error messages."""
    text = text.strip()
    return repr(text if len(text) <= 40 else f"{text[:40]}…")


_MAX_ROW_CHARS = 1 << 24
_BLOCK_BYTES = 1 << 18


def separated_rows(
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
