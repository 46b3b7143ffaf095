"""Text files by lines, and tables whose columns are separated by tabs."""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

from rejoinder.errors import InputError

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
