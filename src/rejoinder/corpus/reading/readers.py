"""Reads comments from files of all formats into one table, a bounded piece at a time."""

from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from typing import TypeVar

import numpy as np
import pyarrow as pa

from rejoinder.corpus.options import Columns, ExtractOptions
from rejoinder.corpus.reading.comments import Parsed, as_comments
from rejoinder.corpus.reading.files import format_of, separator_of
from rejoinder.corpus.reading.json_lines import keys_of, parse_block
from rejoinder.corpus.reading.parquet import parquet_columns, parquet_pieces
from rejoinder.corpus.reading.tables import detect_separator, table_pieces
from rejoinder.errors import InputError
from rejoinder.exports.base import Malformed
from rejoinder.io.files.places import Place, for_each, size_of
from rejoinder.io.formats.compression import Zstd, decompressed
from rejoinder.io.formats.line_blocks import line_blocks
from rejoinder.io.formats.separated import table_rows

BLOCK_BYTES = 16 << 20
"""Bytes of JSON lines that are parsed at a time; fewer take less memory, and longer."""
_AHEAD = 2
_SHOWN = 20

T = TypeVar("T")
R = TypeVar("R")
_Piece = Callable[[], Parsed]
"""Parses a piece of a file, in another thread."""


def columns_of(path: Place) -> list[str]:
    """Returns the columns of a file, or the keys of the objects at its beginning.

    Raises:
        InputError: it can't be read.
    """
    kind = format_of(path)
    if kind == "parquet":
        return parquet_columns(path)
    if kind == "table":
        separator = detect_separator(path, separator_of(path) or ",", Columns())
        return next(table_rows(decompressed(path), separator), (0, []))[1]
    return list(keys_of(next(decompressed(path), b"")))


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


def read_comments(
    files: Sequence[Place],
    options: ExtractOptions,
    report: Report,
    work: Callable[[pa.RecordBatch], T],
    block_bytes: int = BLOCK_BYTES,
) -> Iterator[T]:
    """Yields `work` of the comments of `files` in pieces, with the columns of `COMMENTS`.

    It is done in the threads that parse. The counts are added to `report`. One file is read at a
    time, so that there is at most one decoder window of up to 2 GiB. Two pieces are read ahead.

    Raises:
        InputError: a file can't be read, lacks a column, or is not what the options are for.
    """
    check_files(files, options)
    yield from read_checked(files, options, report, work, block_bytes)
    check_keys(report, options)


def check_files(files: Sequence[Place], options: ExtractOptions) -> None:
    """Checks, before any file is read, that the files go together and with the options.

    Raises:
        InputError: they do not, or one of them can't be read.
    """
    name, count = Counter(path.name for path in files).most_common(1)[0]
    if options.columns.are_pairs and count > 1:
        raise InputError(
            f"{count} files are called {name}; ids of messages and replies are made of the name "
            "and the line. Rename one, or extract them one by one."
        )
    formats = for_each(format_of, files)
    if options.separator is not None and "table" not in formats:
        raise InputError("`separator` is for CSV and TSV files, and none is among the dumps.")


def check_keys(report: Report, options: ExtractOptions) -> None:
    """Checks that the columns that the user named are keys in the JSON lines of one file at least.

    Raises:
        InputError: one of them is not.
    """
    if report.keys and options.columns.given:
        # for all files together: one file of several may hold no reply
        names = ", ".join(file.path.name for file in report.files[:3])
        options.columns.check(list(report.keys), names)


def read_checked(
    files: Sequence[Place],
    options: ExtractOptions,
    report: Report,
    work: Callable[[pa.RecordBatch], T],
    block_bytes: int = BLOCK_BYTES,
) -> Iterator[T]:
    """Yields what `read_comments` does, without its checks of all files together."""

    def comments(job: tuple[FileReport, _Piece]) -> tuple[FileReport, Parsed, int, T]:
        entry, piece = job
        parsed = piece()
        batch = as_comments(parsed, options.columns_read, entry.path.name)
        return entry, parsed, len(batch), work(batch)

    for entry, parsed, count, result in mapped_ahead(
        comments, _pieces(files, options, report, block_bytes), _AHEAD
    ):
        if parsed.malformed and options.strict:
            line = parsed.malformed[0]
            raise InputError(
                f"{entry.path} line {line.line}: {line.problem}; a comment on each line is "
                "expected. Without `strict=True` such lines are counted and skipped."
            )
        report.add_malformed(parsed.malformed)
        entry.malformed += len(parsed.malformed)
        entry.comments += count
        yield result


def mapped_ahead(work: Callable[[T], R], items: Iterable[T], threads: int) -> Iterator[R]:
    """Yields `work` of each item in their order; as many as `threads` are computed ahead."""
    running: deque[Future[R]] = deque()
    with ThreadPoolExecutor(threads) as pool:
        for item in items:
            running.append(pool.submit(work, item))
            if len(running) > threads:
                yield running.popleft().result()
        while running:
            yield running.popleft().result()


def _pieces(
    files: Sequence[Place], options: ExtractOptions, report: Report, block_bytes: int
) -> Iterator[tuple[FileReport, _Piece]]:
    columns, zstd = options.columns_read, Zstd()
    for path in files:
        entry = FileReport(path)
        report.files.append(entry)
        format_ = format_of(path)
        if format_ == "parquet":
            pieces = parquet_pieces(path, columns, entry.add_bytes)
        else:
            content = decompressed(path, entry.add_bytes, zstd)
            if format_ == "json":
                pieces = _json_pieces(path, content, options, report, block_bytes)
            else:
                usual = separator_of(path) or ","
                separator = options.separator or detect_separator(path, usual, columns)
                pieces = table_pieces(path, content, separator, columns, options.max_line)
        for piece in pieces:
            yield entry, piece
        entry.bytes_read = size_of(path)


def _json_pieces(
    path: Place,
    content: Iterator[bytes],
    options: ExtractOptions,
    report: Report,
    block_bytes: int,
) -> Iterator[_Piece]:
    columns, line = options.columns_read, 1
    for block in line_blocks(content, block_bytes, longest=options.max_line):
        if line == 1 and columns.given:
            report.keys |= keys_of(block)
        yield partial(parse_block, block, columns.wanted, columns.needed, path.name, line)
        # as block.count(b"\n"), which takes three times as long
        line += int(np.count_nonzero(np.frombuffer(block, np.uint8) == ord("\n")))
