"""Dumps to comments: files of every kind to one table, a bounded piece at a time."""

import glob
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import polars as pl

from rejoinder.corpus.comments import as_comments
from rejoinder.corpus.compression import decompressed, line_blocks
from rejoinder.corpus.json_lines import ParsedBlock, keys_of, parse_block
from rejoinder.corpus.manifest import Malformed
from rejoinder.corpus.schema import Columns
from rejoinder.corpus.tables import table_rows
from rejoinder.errors import InputError

_BLOCK_BYTES = 8 << 20
_BLOCK_ROWS = 65_536
_AHEAD = 2
_SHOWN = 20
_TABLES = {".csv": ",", ".tsv": "\t", ".tab": "\t", ".txt": "\t"}

_Piece = Callable[[], ParsedBlock]
"""A piece of a file, to be parsed in another thread."""


@dataclass
class FileReport:
    """What was read of one file."""

    path: Path
    comments: int = 0
    malformed: int = 0
    bytes_decompressed: int = 0


@dataclass
class Report:
    """What was read so far, of all files."""

    files: list[FileReport] = field(default_factory=list)
    malformed: list[Malformed] = field(default_factory=list)
    """The first few."""
    keys: dict[str, None] = field(default_factory=dict)
    """Fields of the JSON objects at the beginnings of files, in the order in which they came."""

    def add_malformed(self, lines: Sequence[Malformed]) -> None:
        """Remember the first few of them."""
        self.malformed += lines[: max(0, _SHOWN - len(self.malformed))]


def find_files(dumps: Iterable[str | Path]) -> list[Path]:
    """The files that paths and patterns name, each once, sorted by name.

    Raises:
        InputError: a path or a pattern names no file.
    """
    found: set[Path] = set()
    for dump in dumps:
        matches = [Path(dump)] if Path(dump).exists() else map(Path, glob.glob(str(dump)))  # noqa: PTH207
        files = {path for path in matches if path.is_file()}
        if not files:
            raise InputError(f"{dump} is no file, and no pattern that matches one.")
        found |= files
    return sorted(found, key=lambda path: (path.name, str(path)))


def refuse_same_names(files: Sequence[Path]) -> None:
    """Refuse files of messages and replies of one name: their ids are made of name and line.

    Raises:
        InputError: names one.
    """
    name, count = Counter(path.name for path in files).most_common(1)[0]
    if count > 1:
        raise InputError(
            f"{count} files are called {name}; ids of messages and replies are made of the file's "
            "name and the line. Rename one, or extract them one by one."
        )


def read_comments(
    files: Sequence[Path], columns: Columns, report: Report, *, strict: bool = False
) -> Iterator[pl.DataFrame]:
    """The comments of `files` with the columns of `COMMENTS`, in pieces; `report` is filled in.

    Two pieces are read ahead, one file at a time: one decoder window of up to 2 GiB at most.

    Raises:
        InputError: a file is damaged or lacks a column; with `strict`, a line is malformed.
    """
    if columns.are_pairs:
        refuse_same_names(files)
    with ThreadPoolExecutor(_AHEAD) as pool:
        for path in files:
            entry = FileReport(path)
            report.files.append(entry)
            pieces = _pieces(path, columns, entry, report)
            jobs = (partial(_comments, piece, columns, path.name) for piece in pieces)
            for parsed in _ahead(pool, jobs):
                if parsed.malformed and strict:
                    line = parsed.malformed[0]
                    raise InputError(
                        f"{path} line {line.line}: {line.problem}; expected one comment a line. "
                        "Without --strict such lines are counted and skipped."
                    )
                report.add_malformed(parsed.malformed)
                entry.malformed += len(parsed.malformed)
                entry.comments += len(parsed.frame)
                yield parsed.frame
    if report.keys and columns.given:
        # of all files together: in one export of several nobody may have replied
        columns.check(list(report.keys), ", ".join(path.name for path in files[:3]))


def _comments(piece: _Piece, columns: Columns, file: str) -> ParsedBlock:
    parsed = piece()
    frame = as_comments(parsed.frame, columns, file, parsed.numbers)
    return ParsedBlock(frame, parsed.numbers, parsed.malformed)


def _ahead(pool: ThreadPoolExecutor, jobs: Iterator[_Piece]) -> Iterator[ParsedBlock]:
    """Run jobs in the pool, a few ahead of whoever consumes, in order."""
    running: deque[Future[ParsedBlock]] = deque()
    for job in jobs:
        running.append(pool.submit(job))
        if len(running) > _AHEAD:
            yield running.popleft().result()
    while running:
        yield running.popleft().result()


def _pieces(path: Path, columns: Columns, entry: FileReport, report: Report) -> Iterator[_Piece]:
    """The pieces of a file of any kind."""
    suffixes = [suffix.lower() for suffix in path.suffixes]
    if ".parquet" in suffixes:
        return _parquet_pieces(path, columns)
    content = _counted(decompressed(path), entry)
    separator = next((_TABLES[suffix] for suffix in suffixes if suffix in _TABLES), None)
    if separator is not None:
        return _table_pieces(path, content, separator, columns)
    return _json_pieces(path, content, columns, report)


def _counted(pieces: Iterator[bytes], entry: FileReport) -> Iterator[bytes]:
    for piece in pieces:
        entry.bytes_decompressed += len(piece)
        yield piece


def _json_pieces(
    path: Path, content: Iterator[bytes], columns: Columns, report: Report
) -> Iterator[_Piece]:
    names = columns.names
    needed = ("message", "reply") if columns.are_pairs else ("id", "text")
    wanted = tuple(dict.fromkeys(names.values()))
    line = 1
    for number, block in enumerate(line_blocks(content, _BLOCK_BYTES)):
        if number == 0 and columns.given:
            report.keys |= keys_of(block)
        yield partial(
            parse_block, block, wanted, tuple(names[name] for name in needed), path.name, line
        )
        line += block.count(b"\n")


def _table_pieces(
    path: Path, content: Iterator[bytes], separator: str, columns: Columns
) -> Iterator[_Piece]:
    """A CSV or TSV file."""
    rows = table_rows(content, separator)
    first = next(rows, None)
    if first is None:
        return
    # columns named by their positions mean that there is no line of names
    numbered = all(name.isdigit() for name in columns.names.values())
    width = len(first[1])
    header = [str(place) for place in range(1, width + 1)] if numbered else first[1]
    columns.check(header, str(path))
    wanted = [name for name in dict.fromkeys(columns.names.values()) if name in header]
    places = [header.index(name) for name in wanted]
    kept: list[list[str]] = []
    numbers: list[int] = []
    malformed: list[Malformed] = []

    def piece() -> _Piece:
        frame = pl.DataFrame(kept, schema=dict.fromkeys(wanted, pl.String), orient="row")
        parsed = ParsedBlock(frame, numbers, tuple(malformed))
        return lambda: parsed

    if numbered:
        numbers.append(first[0])
        kept.append([first[1][place] for place in places])
    for number, row in rows:
        if len(row) == width:
            numbers.append(number)
            kept.append([row[place] for place in places])
        else:
            problem = f"{len(row)} columns where the first line has {width}"
            malformed.append(Malformed(path.name, number, problem))
        if len(kept) + len(malformed) >= _BLOCK_ROWS:
            yield piece()
            kept, numbers, malformed = [], [], []
    yield piece()


def _parquet_pieces(path: Path, columns: Columns) -> Iterator[_Piece]:
    try:
        scan = pl.scan_parquet(path)
        present = scan.collect_schema().names()
        columns.check(present, str(path))
        wanted = [name for name in dict.fromkeys(columns.names.values()) if name in present]
        row = 1
        for frame in scan.select(pl.col(wanted).cast(pl.String)).collect_batches(
            chunk_size=_BLOCK_ROWS, maintain_order=True
        ):
            yield partial(ParsedBlock, frame, range(row, row + len(frame)), ())
            row += len(frame)
    except (pl.exceptions.PolarsError, OSError) as error:
        raise InputError(f"{path} is damaged or no Parquet file: {error}.") from None
