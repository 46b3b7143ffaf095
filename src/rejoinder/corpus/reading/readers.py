"""Reads comments from files of all formats into one table, a bounded piece at a time."""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TypeVar

import pyarrow as pa

from rejoinder.corpus.manifest import Malformed
from rejoinder.corpus.reading.ahead import mapped_ahead
from rejoinder.corpus.reading.comments import as_comments
from rejoinder.corpus.reading.files import Format, format_of, separator_of
from rejoinder.corpus.reading.json_lines import ParsedBlock, keys_of, lines_of, parse_block
from rejoinder.corpus.reading.parquet import parquet_pieces
from rejoinder.corpus.reading.tables import detect_separator, table_pieces
from rejoinder.corpus.schema import Columns
from rejoinder.errors import InputError
from rejoinder.io.files.places import Place, for_each, size_of
from rejoinder.io.formats.compression import Decoders, decompressed
from rejoinder.io.formats.line_blocks import BlockMemory, reused_line_blocks

_BLOCK_BYTES = 16 << 20
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
    yield from _Reader(columns, report, strict, separator).mapped(work, files)
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
    return _Reader(columns, report, strict, separator).mapped(lambda batch: batch, [path])


@dataclass(frozen=True)
class _Reader:
    """Reads files one after the other, into memory that is used again."""

    columns: Columns
    report: Report
    strict: bool
    separator: str | None
    _decoders: Decoders = field(default_factory=Decoders)
    _blocks: BlockMemory = field(default_factory=BlockMemory)

    def mapped(self, work: Callable[[pa.RecordBatch], T], files: Sequence[Place]) -> Iterator[T]:
        """Yields `work` of the comments of files in pieces."""
        jobs = (job for path in files for job in self._jobs(work, path))
        for entry, count, malformed, result in mapped_ahead(lambda job: job(), jobs, _AHEAD):
            if malformed and self.strict:
                line = malformed[0]
                raise InputError(
                    f"{entry.path} line {line.line}: {line.problem}; a comment on each line is "
                    "expected. Without --strict such lines are counted and skipped."
                )
            self.report.add_malformed(malformed)
            entry.malformed += len(malformed)
            entry.comments += count
            yield result

    def _jobs(
        self, work: Callable[[pa.RecordBatch], T], path: Place
    ) -> Iterator[Callable[[], tuple[FileReport, int, Sequence[Malformed], T]]]:
        entry = FileReport(path)
        self.report.files.append(entry)
        for piece in self._pieces(entry, format_of(path)):
            yield partial(_comments, piece, self.columns, entry, work)
        entry.bytes_read = size_of(path)

    def _pieces(self, entry: FileReport, format_: Format) -> Iterator[_Piece]:
        """Yields the pieces of a file in any format."""
        path, columns = entry.path, self.columns
        if format_ == "parquet":
            return parquet_pieces(path, columns, entry.add_bytes)
        content = decompressed(path, entry.add_bytes, self._decoders)
        if format_ == "table":
            separator = self.separator
            separator = separator or detect_separator(path, separator_of(path) or ",", columns)
            return table_pieces(path, content, separator, columns)
        return self._json_pieces(path, content)

    def _json_pieces(self, path: Place, content: Iterator[bytes]) -> Iterator[_Piece]:
        wanted = tuple(dict.fromkeys(self.columns.names.values()))

        def parsed(block: memoryview, first_line: int) -> ParsedBlock:
            try:
                return parse_block(block, wanted, self.columns.needed, path.name, first_line)
            finally:
                self._blocks.give_back(block)

        line = 1
        for number, block in enumerate(reused_line_blocks(content, _BLOCK_BYTES, self._blocks)):
            if number == 0 and self.columns.given:
                self.report.keys |= keys_of(block)
            count = lines_of(block)
            yield partial(parsed, block, line)
            line += count


def _comments(
    piece: _Piece, columns: Columns, entry: FileReport, work: Callable[[pa.RecordBatch], T]
) -> tuple[FileReport, int, Sequence[Malformed], T]:
    """Returns the number of comments of a piece, the malformed lines, and `work` of the others."""
    parsed = piece()
    batch = as_comments(parsed.table, columns, entry.path.name, parsed.numbers)
    return entry, len(batch), parsed.malformed, work(batch)
