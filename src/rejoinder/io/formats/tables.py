"""Text files by lines, and tables whose columns are separated by tabs."""

from collections.abc import Iterator, Sequence
from pathlib import Path

import polars as pl

from rejoinder.errors import InputError

BYTE_ORDER_MARK = b"\xef\xbb\xbf"


def text_lines(
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


def filled_lines(content: bytes, path: Path, encoding: str = "utf-8") -> Iterator[tuple[int, str]]:
    """Yields the lines that are not blank, with their numbers from 1."""
    for number, line in enumerate(text_lines(content, path, encoding), 1):
        if line.strip():
            yield number, line


def tab_separated(line: str, columns: Sequence[int], path: Path, number: int) -> list[str]:
    """Returns the fields of a line, whose number must be one of `columns`."""
    fields = line.split("\t")
    if len(fields) not in columns:
        allowed = " or ".join(map(str, columns))
        raise InputError(
            f"{path} line {number}: {len(fields)} columns between tabs; {allowed} are needed."
        )
    return fields


def table_columns(content: bytes, path: Path, columns: tuple[str, ...]) -> pl.DataFrame:
    """Returns String columns of a tab-separated UTF-8 table with a header.

    Quotes are plain characters.

    Raises:
        InputError: the header lacks a column, or a line is too short.
    """
    header = content.removeprefix(BYTE_ORDER_MARK).split(b"\n", 1)[0].decode("utf-8", "replace")
    names = header.rstrip("\r").split("\t")
    if any(name not in names for name in columns):
        raise InputError(
            f"{path} line 1: {shortened(header)} is neither a JSON object nor a header, between "
            f"tabs, with {' and '.join(map(repr, columns))}."
        )
    try:
        frame = pl.read_csv(
            content.removeprefix(BYTE_ORDER_MARK),
            separator="\t",
            quote_char=None,
            infer_schema=False,
            truncate_ragged_lines=True,
            columns=list(dict.fromkeys(columns)),
        )
        if not any(frame.get_column(name).null_count() for name in columns):
            return frame
    except pl.exceptions.PolarsError:
        pass
    # Polars reads an empty field as null too: only line by line is the fault known
    indices = [names.index(name) for name in columns]
    rows = []
    for number, line in filled_lines(content, path):
        fields = line.split("\t")
        if number == 1:
            continue
        if len(fields) <= max(indices):
            raise InputError(
                f"{path} line {number}: {len(fields)} columns between tabs; the header has "
                f"{len(names)}."
            )
        rows.append([fields[index] for index in indices])
    return pl.DataFrame(rows, schema=dict.fromkeys(columns, pl.String), orient="row")


def shortened(text: str) -> str:
    """Returns at most 40 characters of a text in quotes, for error messages."""
    text = text.strip()
    return repr(text if len(text) <= 40 else f"{text[:40]}…")
