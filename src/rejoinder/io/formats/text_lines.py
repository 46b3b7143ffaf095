"""Reads lines of text, as a stream of a (compressed) file or all at once.

Also reads lines of tables: cut at tabs, or rows of CSV and TSV files, quoted or not.
"""

import csv
import io
import json
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

from rejoinder.errors import InputError
from rejoinder.io.formats.compression import LONGEST_LINE, decompressed, line_blocks

_SNIFFED = 1 << 14
"""Characters by which a document is known."""
_DOCUMENTS = (
    (re.compile(r"From \S.*\n(?:[>\w-]+:|\s)"), "a mailbox (mbox)"),
    (re.compile(r"\s*<(?:!doctype|html|\?xml)\b", re.IGNORECASE), "HTML or XML"),
    (re.compile(r"%PDF-"), "a PDF document"),
)
_BLOCK_BYTES = 1 << 16
"""Bytes that are decoded at a time; lines that come slowly wait for as many."""
_MAGIC = {
    b"\x93NUMPY": "a NumPy array (.npy)",
    b"PAR1": "a Parquet file",
    b"ARROW1": "an Arrow file",
    b"PK\x03\x04": "a zip archive (.zip, .npz, .xlsx)",
    b"\x1f\x8b": "compressed by gzip",
    b"BZh": "compressed by bzip2",
    b"\xfd7zXZ\x00": "compressed by xz",
    b"\x28\xb5\x2f\xfd": "compressed by zstandard",
    b"SQLite format 3": "an SQLite database",
    b"%PDF": "a PDF document",
    b"\x89PNG": "an image",
    b"\xff\xd8\xff": "an image",
    b"\x89HDF": "an HDF5 file",
    b"\xff\xfe": "UTF-16 text",
    b"\xfe\xff": "UTF-16 text",
}
"""First bytes of common formats. Only content that is not UTF-8 text is looked up here."""
_LONGEST_MAGIC = max(map(len, _MAGIC))


def file_lines(path: Path, on_read: Callable[[int], None] = lambda _count: None) -> Iterator[str]:
    """Yields the lines of a file, plain or compressed (gzip, bzip2, xz, zstandard).

    `on_read` is called after each read with the number of bytes read from the file itself.

    Raises:
        InputError: the file can't be read or is damaged; also what `text_lines` raises.
        MissingExtraError: it is compressed by zstandard, which is not installed.
    """
    return text_lines(decompressed(path, on_read), str(path))


def text_lines(pieces: Iterable[bytes], name: str, *, any_content: bool = False) -> Iterator[str]:
    r"""Yields lines without their ends, which are LF or CRLF. A byte order mark is left out.

    Content that begins like a document of another format is refused, unless `any_content`.

    >>> list(text_lines([b"How old", b" are you?\r\n\nYes."], "a file"))
    ['How old are you?', '', 'Yes.']

    Raises:
        InputError: the content is empty, is not UTF-8, holds a NUL byte, or is a document. The
            message begins with `name`, and names the line and the format that it seems to have.
    """
    head, number = b"", 0

    def refuse(before: int) -> None:
        raise long_line(name, number + before + 1)

    for block in line_blocks(pieces, _BLOCK_BYTES, refuse):
        head = head or block[:_LONGEST_MAGIC]
        text = _decoded(block, head, name, number)
        if not number:
            text = text.removeprefix("\ufeff")
            if not any_content:
                _refuse_documents(text[:_SNIFFED], name)
        lines = text.removesuffix("\n").split("\n")
        number += len(lines)
        yield from (line.removesuffix("\r") for line in lines)
    if not number:
        raise InputError(f"{name} is empty; one sentence per line is expected.")


def long_line(name: str, number: int, longest: int = LONGEST_LINE) -> InputError:
    """Returns the error of a line that is too long to be text."""
    return InputError(
        f"{name} line {number:,} has more than {longest:,} bytes; it is not a line of text. Is "
        "the file whole, and of the right kind?"
    )


def _refuse_documents(head: str, name: str) -> None:
    """Refuses the beginning of a file whose lines are not texts.

    Raises:
        InputError: names the format, and what can be read.
    """
    kind = next((said for pattern, said in _DOCUMENTS if pattern.match(head)), None)
    if kind is None and head.lstrip()[:1] in ("{", "["):
        kind = "a JSON document" if _is_json(head.lstrip()) else None
    if kind is not None:
        raise InputError(
            f"{name} seems to be {kind}; lines of text are expected, one text each, or a table or "
            "JSON lines with a text in each row (.csv, .tsv, .parquet, .jsonl)."
        )


def _is_json(head: str) -> bool:
    """Returns whether text that begins with a bracket is the whole or the beginning of JSON."""
    try:
        _, end = json.JSONDecoder().raw_decode(head)
    except RecursionError:
        return True
    except ValueError as error:
        at: int = getattr(error, "pos", 0)
        # more than a line of valid JSON, or all that was looked at
        return len(head[:at].split("\n", 1)[-1].strip()) > 0 < head.find("\n", 0, at) or (
            at >= _SNIFFED - 1
        )
    return not head[end:].split("\n", 1)[0].strip()


def _decoded(block: bytes, head: bytes, name: str, lines_before: int) -> str:
    """Decodes a block of lines, or raises an error that names the format beginning with `head`."""
    null = block.find(0)
    try:
        text = block.decode("utf-8")
    except UnicodeDecodeError as error:
        offset, problem = error.start, f"is not UTF-8 (byte 0x{block[error.start]:02x})"
    else:
        if null < 0:
            return text
        offset, problem = null, "holds a NUL byte"
    kind = next((known for magic, known in _MAGIC.items() if head.startswith(magic)), None)
    kind = kind or ("a binary file" if null >= 0 else "text in another encoding")
    number = lines_before + block.count(b"\n", 0, offset) + 1
    raise InputError(
        f"{name} seems to be {kind} (line {number} {problem}); lines of UTF-8 text are expected, "
        "one sentence each. Convert it, for example by: iconv -f LATIN1 -t UTF-8."
    )


def replace_surrogates(text: str) -> str:
    r"""Joins surrogate pairs to characters and replaces every other half by U+FFFD.

    >>> replace_surrogates("a\ud83d\ude00b\udc00") == "a\U0001f600b\ufffd"
    True
    """
    if text.isascii():
        return text
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


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
    content = content.removeprefix(BYTE_ORDER_MARK)
    rows = content.removesuffix(b"\n").split(b"\n") if content else []
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


def csv_rows(content: bytes, path: Path) -> list["Row"]:
    """Returns the rows below the header of a CSV file."""
    rows = separated_rows(iter([content]), ",", str(path))
    return [Row(fields, number, path) for number, fields in rows][1:]


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
_ROWS_BYTES = 1 << 18


def separated_rows(
    pieces: Iterator[bytes], separator: str, name: str = "the table", longest: int = LONGEST_LINE
) -> Iterator[tuple[int, list[str]]]:
    """Yields the rows of a table with the numbers of their first lines, from 1.

    Blank lines are skipped. A field in quotes may hold separators, line ends and doubled quotes.
    Quotes that are not closed, or not at the ends of a field, are plain characters: people write
    tables without quoting, and one stray quote must not swallow the rest of a file.
    """
    lines = _lines(pieces, name, longest)
    pending: list[str] = []
    number = 0

    def following() -> str | None:
        return pending.pop() if pending else next(lines, None)

    while line := following():
        number += 1
        if '"' not in line:
            if row := line.rstrip("\r\n"):
                yield number, row.split(separator)
            continue
        joined = [line]
        quotes, size = line.count('"'), len(line)
        while quotes % 2 and size < _MAX_ROW_CHARS and (more := following()):
            joined.append(more)
            quotes += more.count('"')
            size += len(more)
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

    for number, block in enumerate(line_blocks(pieces, _ROWS_BYTES, refuse, longest)):
        content = block.removeprefix(BYTE_ORDER_MARK) if number == 0 else block
        done += block.count(b"\n")
        yield from io.StringIO(content.decode("utf-8", "replace"), newline="")
