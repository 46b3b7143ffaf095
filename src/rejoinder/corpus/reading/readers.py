"""Reads comments from files of all formats into one table, a bounded piece at a time.

JSON lines come in blocks: leniently, and the same for every line. A kernel in C reads plain lines,
which are nearly all, and Python's `json` reads the others, one by one. Bytes that are not UTF-8,
halves of surrogate pairs, control characters in strings, NaN and large numbers never cost a
comment.

Tables are CSV and TSV, quoted or not. Typed columns of Parquet become the same text as in JSON
lines.
"""

import json
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache, partial
from itertools import chain
from typing import Any, TypeVar

import numpy as np
import polars as pl
import pyarrow as pa
from numpy.typing import NDArray

from rejoinder.corpus.options import Columns, ExtractOptions
from rejoinder.corpus.reading import columns as arrow
from rejoinder.corpus.reading.files import format_of, separator_of
from rejoinder.errors import InputError
from rejoinder.exports.base import Malformed
from rejoinder.io.files.addresses import AnyPath, for_each, local_copy, size_of
from rejoinder.io.formats import text_lines
from rejoinder.io.formats.compression import decompressed, line_blocks, zstd_frames
from rejoinder.registry import kernel

BLOCK_BYTES = 16 << 20
"""Bytes of JSON lines that are parsed at a time; fewer take less memory, and longer."""
_AHEAD = 2
_SHOWN = 20

T = TypeVar("T")
R = TypeVar("R")
_Piece = Callable[[], arrow.Parsed]
"""Parses a piece of a file, in another thread."""


def columns_of(path: AnyPath) -> list[str]:
    """Returns the columns of a file, or the keys of the objects at its beginning.

    Raises:
        InputError: it can't be read.
    """
    kind = format_of(path)
    if kind == "parquet":
        with local_copy(path) as file, _parquet_errors(_NOT_PARQUET.format(path)):
            return list(pl.read_parquet_schema(file))
    if kind == "table":
        separator = detect_separator(path, Columns())
        return next(text_lines.separated_rows(decompressed(path), separator), (0, []))[1]
    return list(keys_of(next(decompressed(path), b"")))


@dataclass
class FileReport:
    """Counts for one file."""

    path: AnyPath
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
    files: Sequence[AnyPath],
    options: ExtractOptions,
    report: Report,
    work: Callable[[pa.RecordBatch], T],
    block_bytes: int = BLOCK_BYTES,
    *,
    among_others: bool = False,
) -> Iterator[T]:
    """Yields `work` of the comments of `files` in pieces, with the columns of `COMMENTS`.

    It is done in the threads that parse. The counts are added to `report`. One file is read at a
    time, so that there is at most one decoder window of up to 2 GiB. Two pieces are read ahead.
    Files `among_others`, which are read elsewhere, are not checked together.

    Raises:
        InputError: a file can't be read, lacks a column, or is not what the options are for.
    """

    def comments(job: tuple[FileReport, _Piece]) -> tuple[FileReport, arrow.Parsed, int, T]:
        entry, piece = job
        parsed = piece()
        batch = arrow.as_comments(parsed, options.columns_read, entry.path.name)
        return entry, parsed, len(batch), work(batch)

    if not among_others:
        check_files(files, options)
    pieces = _pieces(files, options, report, block_bytes)
    for entry, parsed, count, result in mapped_ahead(comments, pieces, _AHEAD):
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
    if not among_others:
        check_keys(report, options)


def check_files(files: Sequence[AnyPath], options: ExtractOptions) -> None:
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
    files: Sequence[AnyPath], options: ExtractOptions, report: Report, block_bytes: int
) -> Iterator[tuple[FileReport, _Piece]]:
    columns, zstd = options.columns_read, cache(zstd_frames)
    for path in files:
        entry = FileReport(path)
        report.files.append(entry)
        format_ = format_of(path)
        if format_ == "parquet":
            pieces = parquet_pieces(path, columns, entry.add_bytes)
        else:
            content = decompressed(path, entry.add_bytes, zstd)
            if format_ == "json":
                blocks = line_blocks(content, block_bytes, longest=options.max_line)
                pieces = _json_pieces(path, blocks, columns, report)
            else:
                separator = options.separator or detect_separator(path, columns)
                pieces = table_pieces(path, content, separator, columns, options.max_line)
        for piece in pieces:
            yield entry, piece
        entry.bytes_read = size_of(path)


def _json_pieces(
    path: AnyPath, blocks: Iterator[bytes], columns: Columns, report: Report
) -> Iterator[_Piece]:
    line = 1
    for block in blocks:
        if line == 1 and columns.given:
            report.keys |= keys_of(block)
        yield partial(parse_block, block, columns.wanted, columns.needed, path.name, line)
        # as block.count(b"\n"), which takes three times as long
        line += int(np.count_nonzero(np.frombuffer(block, np.uint8) == ord("\n")))


_HEAD_LINES = 20_000
# of a repeated key the first value counts
_DECODER = json.JSONDecoder(
    strict=False,
    object_pairs_hook=lambda pairs: dict(pairs) | dict(reversed(pairs)),
    parse_constant=lambda _: None,
)


def parse_block(
    block: bytes, columns: tuple[str, ...], needed: tuple[str, ...], file: str, first_line: int
) -> arrow.Parsed:
    """Returns the fields `columns` of a block of whole lines, as strings.

    The first of repeated keys counts, and a float of whole value reads as the integer. Without a
    column in `needed` a line is malformed. Lines of `file` are counted from `first_line`.
    """
    if first_line == 1:
        block = block.removeprefix(text_lines.BYTE_ORDER_MARK)
    native = kernel("corpus.reading._comments")
    if native is None:
        content, plain = [(b"", bytes(8), b"")] * len(columns), b""
        rest = list(enumerate(block.split(b"\n"), first_line))
    else:
        content, plain, refused = native.json_fields(block, columns, first_line)
        others = np.frombuffer(refused, np.int64).tolist()
        lines = block.split(b"\n") if others else []
        rest = [(number, lines[number - first_line]) for number in others]
    table = pa.table([arrow.array_of(*column) for column in content], list(columns))
    numbers = np.frombuffer(plain, np.int64)
    found, malformed = _one_by_one(rest, file)
    if found:
        numbers = np.concatenate([numbers, np.fromiter(found, np.int64)])
        order = np.argsort(numbers)
        values = [[_text(row.get(name)) for name in columns] for row in found.values()]
        frame = pl.DataFrame(values, dict.fromkeys(columns, pl.String), orient="row")
        table = arrow.take_rows(pa.concat_tables([table, arrow.as_table(frame)]), order)
        numbers = numbers[order]
    return arrow.without_missing(table, numbers, needed, file, malformed)


def keys_of(block: bytes) -> dict[str, None]:
    """Returns the keys of the objects in the first lines of a block, in order of appearance."""
    lines = block.split(b"\n", _HEAD_LINES)[:_HEAD_LINES]
    found, _ = _one_by_one(enumerate(lines), "")
    return dict.fromkeys(key for values in found.values() for key in values)


def _one_by_one(
    lines: Iterable[tuple[int, bytes]], file: str
) -> tuple[dict[int, dict[str, Any]], list[Malformed]]:
    """Returns the objects of lines by their line numbers, and the malformed lines."""
    found: dict[int, dict[str, Any]] = {}
    malformed: list[Malformed] = []
    for number, line in lines:
        plain = line.removeprefix(text_lines.BYTE_ORDER_MARK)
        text = plain.decode("utf-8", "replace").strip(" \t\r")
        if not text:
            continue
        problem = f"{text_lines.shortened(text)} where one comment object is expected"
        try:
            value = _DECODER.decode(text)
        except (ValueError, RecursionError) as error:
            value, problem = None, f"not JSON: {error}"
        if isinstance(value, dict):
            found[number] = value
        else:
            malformed.append(Malformed(file, number, problem))
    return found, malformed


def _text(value: Any) -> str | None:
    if isinstance(value, str):
        return text_lines.replace_surrogates(value)
    if value is None or isinstance(value, float):
        return arrow.number_text(value)
    return text_lines.replace_surrogates(json.dumps(value, ensure_ascii=False))


_BLOCK_ROWS = 65_536
_SEPARATORS = (",", ";", "\t", "|")


def table_pieces(
    path: AnyPath, content: Iterator[bytes], separator: str, columns: Columns, longest: int
) -> Iterator[Callable[[], arrow.Parsed]]:
    """Yields the rows of a table in pieces.

    A row with another number of columns than the first row is malformed.
    """
    rows = text_lines.separated_rows(content, separator, str(path), longest)
    first = next(rows, None)
    if first is None:
        return
    width = len(first[1])
    header = _header(first[1], columns)
    if columns.are_numbers:
        rows = chain([first], rows)
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

    def piece() -> Callable[[], arrow.Parsed]:
        frame = pl.DataFrame(kept, schema=dict.fromkeys(wanted, pl.String), orient="row")
        parsed = arrow.Parsed(arrow.as_table(frame), np.array(numbers, np.int64), tuple(malformed))
        return lambda: parsed

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


def detect_separator(path: AnyPath, columns: Columns) -> str:
    """Returns the separator that gives the wanted columns in the first line, the usual one first.

    If none does, the separator that gives most columns is returned, so that the error names them.
    """
    widths: dict[str, int] = {}
    for separator in dict.fromkeys((separator_of(path) or ",", *_SEPARATORS)):
        _, first = next(text_lines.separated_rows(decompressed(path), separator), (0, [""]))
        if not columns.missing(_header(first, columns)):
            return separator
        widths[separator] = len(first)
    return max(widths, key=widths.__getitem__)


def _header(first: list[str], columns: Columns) -> list[str]:
    """Returns the names of the columns: the first row, or the numbers from 1."""
    return [str(number) for number in range(1, len(first) + 1)] if columns.are_numbers else first


_NOT_PARQUET = "{} is damaged or not a Parquet file"


@contextmanager
def _parquet_errors(problem: str) -> Iterator[None]:
    """Turns what Polars raises for files that it can't read into an InputError."""
    try:
        yield
    # its code panics at some damage
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError) as error:
        said = str(error).split("\n")[0].rstrip(".")
        raise InputError(f"{problem}: {said}.") from None


def parquet_pieces(
    path: AnyPath, columns: Columns, on_read: Callable[[int], None]
) -> Iterator[Callable[[], arrow.Parsed]]:
    """Yields functions that parse the rows of a file, about 65,536 rows at a time.

    A row with null in a needed column is malformed. `on_read` is called with the approximate
    number of bytes that a piece takes in the file.
    """
    with local_copy(path) as file, _parquet_errors(_NOT_PARQUET.format(path)):
        scan = pl.scan_parquet(file, glob=False)
        schema = scan.collect_schema()
        columns.check(schema.names(), str(path))
        wanted = [name for name in columns.wanted if name in schema]
        for name in wanted:
            if schema[name].is_nested():
                raise InputError(
                    f"{path} has {schema[name]} in the column {name!r}; text or numbers are "
                    "expected. Name another column with `columns`."
                )
        rows = scan.select(pl.len()).collect().item()
        size, row = file.stat().st_size, 1
        batches = scan.select(wanted).collect_batches(chunk_size=_BLOCK_ROWS, maintain_order=True)
        for frame in batches:
            numbers = np.arange(row, row + len(frame))
            yield partial(_parsed_frame, frame, numbers, columns.needed, path)
            row += len(frame)
            on_read(size * len(frame) // max(rows, 1))


def _parsed_frame(
    frame: pl.DataFrame, numbers: NDArray[np.int64], needed: tuple[str, ...], path: AnyPath
) -> arrow.Parsed:
    with _parquet_errors(f"{path} rows {numbers[0]} to {numbers[-1]}"):
        text = frame.select(_text_of_column(column) for column in frame)
    return arrow.without_missing(arrow.as_table(text), numbers, needed, path.name)


def _text_of_column(values: pl.Series) -> pl.Series:
    if values.dtype.is_float():
        return pl.Series(values.name, map(arrow.number_text, values), dtype=pl.String)
    return values.cast(pl.String)
