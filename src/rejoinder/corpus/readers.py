"""Dumps to comments: files of every kind to one table, a bounded piece at a time."""

import csv
import glob
import hashlib
import io
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

import polars as pl

from rejoinder.corpus.cleaning import cleaned
from rejoinder.corpus.compression import decompressed, line_blocks
from rejoinder.corpus.json_lines import ParsedBlock, parse_block
from rejoinder.corpus.letters import count_letters
from rejoinder.corpus.manifest import Malformed
from rejoinder.corpus.schema import COMMENTS, FIELDS, Columns
from rejoinder.errors import InputError

_BLOCK_BYTES = 12 << 20
_BLOCK_ROWS = 65_536
_AHEAD = 2
_SHOWN = 20
_MAX_FIELD = 1 << 28
_TABLES = {".csv": ",", ".tsv": "\t", ".tab": "\t"}


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


def read_comments(
    files: Sequence[Path], columns: Columns, report: Report, *, strict: bool = False
) -> Iterator[pl.DataFrame]:
    """The comments of `files` with the columns of `COMMENTS`, in pieces; `report` is filled in.

    Two pieces are read ahead, one file at a time: one decoder window of up to 2 GiB at most.

    Raises:
        InputError: a file is damaged or lacks a column; with `strict`, a line is malformed.
    """
    with ThreadPoolExecutor(_AHEAD) as pool:
        for path in files:
            entry = FileReport(path)
            report.files.append(entry)
            pieces = _pieces(path, columns, entry)
            for piece in _ahead(pool, pieces):
                parsed = piece.result()
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


def _ahead(pool: ThreadPoolExecutor, jobs: "Iterator[_Job]") -> Iterator["Future[ParsedBlock]"]:
    """Run jobs in the pool, a few ahead of whoever consumes, in order."""
    running: deque[Future[ParsedBlock]] = deque()
    for job in jobs:
        running.append(pool.submit(job))
        if len(running) > _AHEAD:
            yield running.popleft()
    yield from running


class _Job:
    """One piece of a file, to be parsed in another thread."""

    def __init__(self, columns: Columns, path: Path, first_line: int) -> None:
        self.columns, self.path, self.first_line = columns, path, first_line

    def parse(self) -> ParsedBlock:
        """The columns of the file, under their names there."""
        raise InputError(f"{self.path} is of no kind that can be read.")

    def __call__(self) -> ParsedBlock:
        parsed = self.parse()
        frame = _as_comments(parsed.frame, self.columns, self.path, self.first_line)
        return ParsedBlock(frame, parsed.lines, parsed.malformed)


class _JsonJob(_Job):
    def __init__(self, columns: Columns, path: Path, block: bytes, first_line: int) -> None:
        super().__init__(columns, path, first_line)
        self.block = block

    def parse(self) -> ParsedBlock:
        names = self.columns.names
        needed = (
            (names["message"], names["reply"])
            if self.columns.are_pairs
            else (names["id"], names["text"])
        )
        columns = tuple(dict.fromkeys(names.values()))
        return parse_block(self.block, columns, needed, self.path.name, self.first_line)


class _RowsJob(_Job):
    def __init__(
        self,
        columns: Columns,
        path: Path,
        first_line: int,
        frame: pl.DataFrame,
        malformed: tuple[Malformed, ...] = (),
    ) -> None:
        super().__init__(columns, path, first_line)
        self.frame, self.malformed = frame, malformed

    def parse(self) -> ParsedBlock:
        return ParsedBlock(self.frame, len(self.frame), self.malformed)


def _pieces(path: Path, columns: Columns, entry: FileReport) -> Iterator[_Job]:
    """The pieces of a file of any kind."""
    suffixes = [suffix.lower() for suffix in path.suffixes]
    if ".parquet" in suffixes:
        yield from _parquet_pieces(path, columns)
        return
    pieces = _counted(decompressed(path), entry)
    table = next((_TABLES[suffix] for suffix in suffixes if suffix in _TABLES), None)
    if table is not None:
        yield from _table_pieces(path, pieces, table, columns)
        return
    line = 1
    for number, block in enumerate(line_blocks(pieces, _BLOCK_BYTES)):
        if number == 0 and columns.given:
            _check_json(block, columns, path)
        yield _JsonJob(columns, path, block, line)
        line += block.count(b"\n")


def _counted(pieces: Iterator[bytes], entry: FileReport) -> Iterator[bytes]:
    for piece in pieces:
        entry.bytes_decompressed += len(piece)
        yield piece


def _check_json(block: bytes, columns: Columns, path: Path) -> None:
    """Look for the columns among the keys of the first lines."""
    try:
        head = pl.read_ndjson(io.BytesIO(block[: block.find(b"\n") + 1] or block))
    except pl.exceptions.PolarsError:
        return  # malformed: counted where the block is parsed
    columns.check(head.columns, str(path))


def _table_pieces(
    path: Path, pieces: Iterator[bytes], separator: str, columns: Columns
) -> Iterator[_Job]:
    """A CSV or TSV file with a header; quotes may hold line ends."""
    csv.field_size_limit(_MAX_FIELD)
    text = io.TextIOWrapper(io.BufferedReader(_Stream(pieces)), "utf-8-sig", "replace", newline="")
    rows = csv.reader(text, delimiter=separator)
    first = next(rows, None)
    if first is None:
        return
    # columns named by their positions mean that there is no line of names
    numbered = all(name.isdigit() for name in columns.names.values())
    header = [str(number) for number in range(1, len(first) + 1)] if numbered else first
    columns.check(header, str(path))
    kept: list[list[str]] = [first] if numbered else []
    malformed: list[Malformed] = []
    schema = dict.fromkeys(header, pl.String)
    line = 1 if numbered else 2

    def job() -> _Job:
        frame = pl.DataFrame(kept, schema=schema, orient="row")
        return _RowsJob(columns, path, line, frame, tuple(malformed))

    for row in rows:
        if len(row) == len(header):
            kept.append(row)
        elif row:
            problem = f"{len(row)} columns where the header has {len(header)}"
            malformed.append(Malformed(path.name, rows.line_num, problem))
        if len(kept) >= _BLOCK_ROWS:
            yield job()
            line += len(kept) + len(malformed)
            kept, malformed = [], []
    yield job()


def _parquet_pieces(path: Path, columns: Columns) -> Iterator[_Job]:
    try:
        scan = pl.scan_parquet(path)
        present = scan.collect_schema().names()
        columns.check(present, str(path))
        wanted = [name for name in dict.fromkeys(columns.names.values()) if name in present]
        row = 1
        for frame in scan.select(pl.col(wanted).cast(pl.String)).collect_batches(
            chunk_size=_BLOCK_ROWS, maintain_order=True
        ):
            yield _RowsJob(columns, path, row, frame)
            row += len(frame)
    except (pl.exceptions.PolarsError, OSError) as error:
        raise InputError(f"{path} is damaged or no Parquet file: {error}.") from None


class _Stream(io.RawIOBase):
    """Pieces of bytes as a file."""

    def __init__(self, pieces: Iterator[bytes]) -> None:
        self.pieces, self.rest = pieces, b""

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: "memoryview") -> int:  # type: ignore[override]
        while not self.rest:
            piece = next(self.pieces, None)
            if piece is None:
                return 0
            self.rest = piece
        count = min(len(buffer), len(self.rest))
        buffer[:count] = self.rest[:count]
        self.rest = self.rest[count:]
        return count


def _as_comments(
    frame: pl.DataFrame, columns: Columns, path: Path, first_line: int
) -> pl.DataFrame:
    """The columns of `COMMENTS` from those of the file."""
    stem = path.name.split(".")[0]
    if columns.are_pairs:
        frame = _split_pairs(frame, columns, path, first_line)
    else:
        frame = frame.select(
            pl.col(columns.names[name]).alias(name)
            if columns.names.get(name) in frame.columns
            else pl.lit(None, pl.String).alias(name)
            for name in FIELDS
        )
    frame = frame.with_columns(
        pl.col("id").str.strip_prefix("t1_"),
        pl.col("source").fill_null(stem),
        pl.col("author").fill_null(""),
    )
    text = frame.get_column("text").fill_null("")
    return frame.with_columns(
        text, cleaned(text).alias("clean"), pl.Series("letters", count_letters(text))
    ).select(pl.col(name).cast(kind) for name, kind in COMMENTS.items())


def _split_pairs(
    frame: pl.DataFrame, columns: Columns, path: Path, first_line: int
) -> pl.DataFrame:
    """Rows of message and reply as two comments each.

    The thread is a hash of the message, so that all replies to one text are in one split.
    """
    messages = frame.get_column(columns.names["message"]).fill_null("")
    replies = frame.get_column(columns.names["reply"]).fill_null("")
    folded = messages.str.to_lowercase().str.replace_all(r"\s+", " ").str.strip_chars()
    threads = [hashlib.md5(text.encode(), usedforsecurity=False).hexdigest() for text in folded]
    lines = pl.int_range(first_line, first_line + len(frame), eager=True).cast(pl.String)
    ids = path.name + ":" + lines.str.zfill(9)
    named = columns.names.get("source")
    base = pl.DataFrame({"thread": threads}, schema={"thread": pl.String}).with_columns(
        pl.lit(None, pl.String).alias("author"),
        pl.lit(None, pl.String).alias("created"),
        (frame.get_column(named) if named else pl.lit(None, pl.String)).alias("source"),
    )
    first = base.with_columns(
        (ids + ":m").alias("id"), pl.lit(None, pl.String).alias("parent"), messages.alias("text")
    )
    second = base.with_columns(
        (ids + ":r").alias("id"), ("t1_" + ids + ":m").alias("parent"), replies.alias("text")
    )
    return pl.concat([first, second]).select(FIELDS)
