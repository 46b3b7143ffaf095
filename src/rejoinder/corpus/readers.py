"""Reads comments from files of all formats into one table, a bounded piece at a time."""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TypeVar

import pyarrow as pa

from rejoinder.corpus.ahead import mapped_ahead
from rejoinder.corpus.comments import as_comments
from rejoinder.corpus.files import Format, format_of, separator_of
from rejoinder.corpus.json_lines import ParsedBlock, keys_of, lines_of, parse_block
from rejoinder.corpus.manifest import Malformed
from rejoinder.corpus.parquet import parquet_pieces
from rejoinder.corpus.schema import Columns
from rejoinder.corpus.tables import detect_separator, table_pieces
from rejoinder.errors import InputError
from rejoinder.files.places import Place, for_each, size_of
from rejoinder.formats.compression import decompressed
from rejoinder.formats.line_blocks import BlockMemory, reused_line_blocks

_BLOCK_BYTES = 8 << 20
_AHEAD = 2
_SHOWN = 20

T = TypeVar("T")
_Piece = Callable[[], ParsedBlock]
"""Parses a piece of a file, in another thread."""


@dataclass
class FileReport:
    """Counts for one file."""

    path: Place
    comments: int = 0
    malformed: int = 0
    bytes_read: int = 0
    """Bytes read of the file as it is on disk."""

    def add_bytes(self, count: int) -> None:
        """Adds to the number of bytes read."""
        self.bytes_read += count


@dataclass
class Report:
    """Counts for all files read so far."""

    files: list[FileReport] = field(default_factory=list)
    malformed: list[Malformed] = field(default_factory=list)
    """The first malformed lines, at most 20."""
    keys: dict[str, None] = field(default_factory=dict)
    """Keys of the JSON objects at the beginnings of files, in order of appearance."""

    def add_malformed(self, lines: Sequence[Malformed]) -> None:
        """Keeps the first malformed lines."""
        self.malformed += lines[: max(0, _SHOWN - len(self.malformed))]

    @property
    def bytes_read(self) -> int:
        """Bytes read of all files."""
        return sum(file.bytes_read for file in self.files)


def _refuse_same_names(files: Sequence[Place]) -> None:
    """Refuses files of messages and replies with the same name: their ids are name and line."""
    name, count = Counter(path.name for path in files).most_common(1)[0]
    if count > 1:
        raise InputError(
            f"{count} files are called {name}; ids of messages and replies are made of the file's "
            "name and the line. Rename one, or extract them one by one."
        )


def read_comments(
    files: Sequence[Place],
    columns: Columns,
    report: Report,
    *,
    strict: bool = False,
    separator: str | None = None,
) -> Iterator[pa.RecordBatch]:
    """Yields the comments of `files` in pieces, see `mapped_comments`."""
    return mapped_comments(
        lambda batch: batch, files, columns, report, strict=strict, separator=separator
    )


def mapped_comments(
    work: Callable[[pa.RecordBatch], T],
    files: Sequence[Place],
    columns: Columns,
    report: Report,
    *,
    strict: bool = False,
    separator: str | None = None,
) -> Iterator[T]:
    """Yields `work` of the comments of `files` in pieces, with the columns of `COMMENTS`.

    It is done in the threads that parse. The counts are added to `report`. One file is read at a
    time, so that there is at most one decoder window of up to 2 GiB. Two pieces are read ahead. A
    `separator` of None is detected in the first line of each table.
    """
    check_files(files, columns, separator)
    for path in files:
        yield from _mapped_file(work, path, columns, report, strict, separator)
    check_keys(report, columns)


def check_files(files: Sequence[Place], columns: Columns, separator: str | None) -> None:
    """Checks, before any file is read, that the files go together and with the settings.

    Raises:
        InputError: they do not, or one of them can't be read.
    """
    if columns.are_pairs:
        _refuse_same_names(files)
    formats = for_each(format_of, files)
    if separator is not None and "table" not in formats:
        raise InputError("--separator is for CSV and TSV files, and none is among the dumps.")


def check_keys(report: Report, columns: Columns) -> None:
    """Checks that the columns that the user named are keys in the JSON lines of one file at least.

    Raises:
        InputError: one of them is not.
    """
    if report.keys and columns.given:
        # for all files together: one file of several may hold no reply
        columns.check(list(report.keys), ", ".join(file.path.name for file in report.files[:3]))


def read_file(
    path: Place,
    columns: Columns,
    report: Report,
    *,
    strict: bool = False,
    separator: str | None = None,
) -> Iterator[pa.RecordBatch]:
    """Yields the comments of one file, see `read_comments`."""
    return _mapped_file(lambda batch: batch, path, columns, report, strict, separator)


def _mapped_file(
    work: Callable[[pa.RecordBatch], T],
    path: Place,
    columns: Columns,
    report: Report,
    strict: bool,
    separator: str | None,
) -> Iterator[T]:
    entry = FileReport(path)
    report.files.append(entry)
    pieces = _pieces(entry, format_of(path), columns, report, separator)
    jobs = (partial(_comments, piece, columns, path.name, work) for piece in pieces)
    for count, malformed, result in mapped_ahead(lambda job: job(), jobs, _AHEAD):
        if malformed and strict:
            line = malformed[0]
            raise InputError(
                f"{path} line {line.line}: {line.problem}; a comment on each line is "
                "expected. Without --strict such lines are counted and skipped."
            )
        report.add_malformed(malformed)
        entry.malformed += len(malformed)
        entry.comments += count
        yield result
    entry.bytes_read = size_of(path)


def _comments(
    piece: _Piece, columns: Columns, file: str, work: Callable[[pa.RecordBatch], T]
) -> tuple[int, Sequence[Malformed], T]:
    """Returns the number of comments of a piece, the malformed lines, and `work` of the others."""
    parsed = piece()
    batch = as_comments(parsed.table, columns, file, parsed.numbers)
    return len(batch), parsed.malformed, work(batch)


def _pieces(
    entry: FileReport, format_: Format, columns: Columns, report: Report, separator: str | None
) -> Iterator[_Piece]:
    """Yields the pieces of a file in any format."""
    path = entry.path
    if format_ == "parquet":
        return parquet_pieces(path, columns, entry.add_bytes)
    content = decompressed(path, entry.add_bytes)
    if format_ == "table":
        separator = separator or detect_separator(path, separator_of(path) or ",", columns)
        return table_pieces(path, content, separator, columns)
    return _json_pieces(path, content, columns, report)


def _json_pieces(
    path: Place, content: Iterator[bytes], columns: Columns, report: Report
) -> Iterator[_Piece]:
    wanted = tuple(dict.fromkeys(columns.names.values()))
    memory = BlockMemory()

    def parsed(block: memoryview, first_line: int) -> ParsedBlock:
        try:
            return parse_block(block, wanted, columns.needed, path.name, first_line)
        finally:
            memory.give_back(block)

    line = 1
    for number, block in enumerate(reused_line_blocks(content, _BLOCK_BYTES, memory)):
        if number == 0 and columns.given:
            report.keys |= keys_of(block)
        count = lines_of(block)
        yield partial(parsed, block, line)
        line += count
