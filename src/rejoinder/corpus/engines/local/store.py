"""Stores comments as numbers for joining, with blocks of strings, in memory or in Arrow files.

DuckDB evaluates the rules. Comments go to parts by thread; a part above a size limit waits in a
file. Comments of earlier extractions are in files, too, which are read a part at a time.

Such a file has a batch for each of 2**`BITS` parts, so an extraction with fewer parts reads several
batches per part. Memory only holds the comments of threads with new comments.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields
from itertools import product
from pathlib import Path
from typing import Any, Self

import duckdb
import ibis
import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from rejoinder.corpus import query
from rejoinder.corpus.options import ExtractOptions
from rejoinder.corpus.reading.columns import Hashes, Index, Strings, as_arrow, as_strings, gather
from rejoinder.corpus.reading.readers import mapped_ahead
from rejoinder.io.files.system import return_freed_memory

NO_HASHES: Hashes = np.empty(0, np.uint64)
Block = Mapping[str, Strings]
"""The strings of comments by column, `STRINGS`."""
Blocks = list[Block]

KEPT = 0
"""The rule of a comment that breaks none."""
GONE = 255
"""The rule of a row that another row with the same id replaces."""
NUMBERS = ("id", "parent", "thread", "answers", "rule")
"""The columns of `Rows` that tell what a comment is; the others tell where its strings are."""
STRINGS = ("id", "parent", "thread", "source", "text")
"""The columns of strings of a block, as they were published but for the clean text."""
PREFIXES: Mapping[str, str] = {"parent": "t1_", "thread": "t3_"}
"""What is left out of the strings of a column, as in `query.classified`."""
ELSEWHERE = "a comment answers one of another thread"

_QUERY = "SELECT {columns} FROM ({comments})"
_LASTING_KEYS = """md5_number_lower(id) AS id, coalesce(md5_number_lower(parent), 0) AS parent,
    coalesce(md5_number_lower(thread), 0) AS thread, parent IS NOT NULL AS answers,
    thread IS NULL AS loose"""
"""The keys for files: half of the MD5, because other hashes change with the version of Polars."""


class CrossingError(Exception):
    """The comments can't be parted: one has no thread, or its parent is in another thread.

    The message is a clause without a full stop.
    """


@dataclass(frozen=True)
class Rows:
    """(N,) comments as numbers."""

    id: Hashes
    """Hash of the id."""
    parent: Hashes
    """Hash of the parent's id; any number for a comment that answers none."""
    thread: Hashes
    """Hash of the thread."""
    answers: NDArray[np.bool_]
    """Whether the comment answers a comment."""
    rule: NDArray[np.uint8]
    """Number of the first rule that the comment breaks, from 1; `KEPT` or `GONE`."""
    which: Index
    """Number of the block that holds its strings."""
    row: Index
    """Row in that block."""

    @classmethod
    def of_block(cls, numbers: Mapping[str, NDArray[Any]], which: int = 0) -> Self:
        """Returns the comments of all rows of block `which`, of which `NUMBERS` are known."""
        count = len(numbers["id"])
        return cls(
            **{name: numbers[name] for name in NUMBERS},
            which=np.full(count, which, np.uint32),
            row=np.arange(count, dtype=np.uint32),
        )

    def __len__(self) -> int:
        return len(self.id)

    def __getitem__(self, index: Any) -> Self:
        return type(self)(**{name: getattr(self, name)[index] for name in _NAMES})

    def strings(self, blocks: Blocks, column: str, at: Any = slice(None)) -> Strings:
        """Returns a column of the comments `at`, without prefixes."""
        columns = [block[column] for block in blocks]
        return gather(columns, self.which[at], self.row[at], PREFIXES.get(column, ""))

    def in_parts(self, bits: int) -> "RowsInParts":
        """Returns the rows by part, of 2**`bits` parts."""
        part = (self.thread >> np.uint64(64 - bits)).astype(np.uint16)
        order = np.argsort(part, kind="stable")
        return RowsInParts(self[order], np.searchsorted(part[order], np.arange(2**bits + 1)))


_NAMES = tuple(field.name for field in fields(Rows))


@dataclass(frozen=True)
class RowsInParts:
    """Comments by part."""

    rows: Rows
    borders: NDArray[np.int64]
    """(P + 1,) first row of each part, and the number of rows."""

    def __getitem__(self, part: int) -> Rows:
        return self.rows[self.borders[part] : self.borders[part + 1]]


def concatenated(rows: list[Rows]) -> Rows:
    """Returns the rows of several pieces, one after the other."""
    rows = [_NO_ROWS, *rows]
    return Rows(**{name: np.concatenate([getattr(one, name) for one in rows]) for name in _NAMES})


_HASH, _INDEX = NO_HASHES, np.empty(0, np.uint32)
_NO_ROWS = Rows(_HASH, _HASH, _HASH, np.empty(0, np.bool_), np.empty(0, np.uint8), _INDEX, _INDEX)


def among(values: Hashes, ordered: Hashes) -> NDArray[np.bool_]:
    """Returns (N,) whether each value is in `ordered`, which is in increasing order."""
    if not len(ordered):
        return np.zeros(len(values), np.bool_)
    index = np.searchsorted(ordered, values)
    index[index == len(ordered)] = 0
    found: NDArray[np.bool_] = ordered[index] == values
    return found


def _keys(block: Block) -> Mapping[str, NDArray[Any]]:
    """Returns the columns that `_LASTING_KEYS` has, with hashes for one run."""
    ids, parents, threads = (block[name] for name in ("id", "parent", "thread"))
    found = {
        "id": ids.hashes(),
        "parent": parents.hashes(PREFIXES["parent"]),
        "thread": threads.hashes(PREFIXES["thread"]),
        "loose": threads.lengths == 0,
    }
    above = (parents.lengths > 0) & ~parents.starts_with(PREFIXES["thread"].encode())
    return {**found, "answers": above & (found["id"] != found["parent"])}


class Classifier:
    """Turns comments into numbers and strings, and finds the splits of threads."""

    def __init__(self, options: ExtractOptions, *, lasting: bool = False) -> None:
        """Prepares `query.classified` and `query.split_of`.

        `lasting` asks for hashes of ids and threads that are the same in every run.
        """
        # a thread of Python is a thread of the query
        self._database = duckdb.connect(config={"threads": 1})
        comments = query.classified(query.comments_table("given"), options, numbered=True)
        sql = ibis.to_sql(comments, dialect="duckdb")
        self._lasting = lasting
        columns = f"rule, {_LASTING_KEYS}" if lasting else "rule"
        self._sql = _QUERY.format(columns=columns, comments=sql)
        threads = ibis.table(ibis.schema({"thread_id": "string"}), name="given")
        split = query.split_of(threads.thread_id, options.split)
        self._split_sql = ibis.to_sql(threads.select(split=split), dialect="duckdb")

    def __call__(self, comments: pa.RecordBatch) -> tuple[Rows, Block]:
        """Returns (N,) comments with the columns `COMMENTS`.

        Raises:
            CrossingError: a comment has no thread.
        """
        block = {name: as_strings(comments[name]) for name in STRINGS}
        found = dict(self._columns(self._sql, pa.Table.from_batches([comments])))
        if not self._lasting:
            found |= _keys(block)
        if found["loose"].any():
            first = comments["id"][int(found["loose"].argmax())].as_py()
            raise CrossingError(f"comment {first!r} has no thread")
        rows = Rows.of_block(found)
        clean = comments["clean"]
        if clean.null_count < len(rows):
            changed = pl.Series(clean.is_valid()).cast(pl.UInt32).to_numpy()
            block["text"] = gather([block["text"], as_strings(clean)], changed, rows.row)
        return rows, block

    def splits(self, threads: pl.Series) -> NDArray[np.int8]:
        """Returns (N,) the split of each thread: 0 train, 1 dev, 2 test."""
        if not len(threads):  # a query takes milliseconds, and many parts of small dumps are empty
            return np.empty(0, np.int8)
        given = pa.table([as_arrow(threads)], ["thread_id"])
        return self._columns(self._split_sql, given)["split"].astype(np.int8)

    def _columns(self, sql: str, table: pa.Table) -> Mapping[str, NDArray[Any]]:
        """Returns the columns of a query over `given`, numbers without nulls, in their order."""
        with self._database.cursor() as cursor:
            cursor.register("given", table)
            found: Mapping[str, NDArray[Any]] = cursor.execute(sql).fetchnumpy()
            return found


_SPILLED = pa.ipc.IpcWriteOptions(compression="lz4")
"""How files that do not outlive an extraction are written: disks are slower than LZ4."""
SCHEMA = pa.schema(
    [
        *((f"hash_{name}", pa.uint64()) for name in ("id", "parent", "thread")),
        ("hash_answers", pa.bool_()),
        ("hash_rule", pa.uint8()),
        *((name, pa.large_string()) for name in STRINGS),
    ]
)
_HASH_BYTES = 8 * 3 + 2 + 2 * 4
"""Bytes of a row of `Rows`."""


@contextmanager
def arrow_file(
    path: Path, schema: pa.Schema, options: pa.ipc.IpcWriteOptions = _SPILLED
) -> Iterator[pa.ipc.RecordBatchFileWriter]:
    """Opens a file to write batches to."""
    with (
        pa.OSFile(str(path), "wb") as file,
        pa.ipc.new_file(file, schema, options=options) as writer,
    ):
        yield writer


def batch_of(rows: Rows, blocks: Blocks) -> pa.RecordBatch:
    """Returns the comments, whose strings are in `blocks`, with the columns `SCHEMA`."""
    numbers = [pa.array(getattr(rows, name)) for name in NUMBERS]
    # with their prefixes, which are left out when they are read again
    strings = [gather([b[name] for b in blocks], rows.which, rows.row) for name in STRINGS]
    return pa.record_batch([*numbers, *(one.to_arrow() for one in strings)], schema=SCHEMA)


def rows_of(batch: pa.RecordBatch, which: int = 0) -> Rows:
    """Returns the comments of a batch, whose strings are those of block `which`."""
    return Rows.of_block({name: batch[f"hash_{name}"].to_numpy(False) for name in NUMBERS}, which)


def block_of(batch: pa.RecordBatch | pa.Table) -> Block:
    """Returns the strings of the comments of a batch."""
    return {name: as_strings(batch[name]) for name in STRINGS}


class Store:
    """Takes blocks of comments and gives back its parts: a thread is in one part.

    The hashes of all ids stay in memory, 8 bytes each.
    """

    def __init__(self, room: int, bits: int, folder: Path, threads: int) -> None:
        """Opens a store of 2**`bits` parts that holds about `room` bytes in memory."""
        self.bits, self._threads = bits, threads
        self._room, self._folder = room, folder
        self._files: list[Path] = []
        self._ids: list[Hashes] = []
        self._clear()

    def _clear(self) -> None:
        self._pieces: list[RowsInParts] = []
        self.blocks: Blocks = []
        """Those of the comments in memory."""
        self._bytes = 0

    @property
    def parts(self) -> range:
        """The numbers of the parts."""
        return range(2**self.bits)

    @property
    def spilled(self) -> bool:
        """Whether comments are in files."""
        return bool(self._files)

    def add(self, piece: RowsInParts, block: Block) -> None:
        """Takes the comments of a block."""
        piece.rows.which[:] = len(self.blocks)
        self._pieces.append(piece)
        self.blocks.append(block)
        self._ids.append(piece.rows.id)
        self._bytes += len(piece.rows) * _HASH_BYTES + sum(one.nbytes for one in block.values())
        if self._bytes > self._room:
            self._flush()

    def finish(self) -> Hashes:
        """Takes note that all comments are here; returns the hashes of all ids, increasing."""
        if self.spilled and self._pieces:
            self._flush()
        together = np.concatenate([NO_HASHES, *self._ids])
        self._ids = []
        return pl.Series(together).sort().to_numpy()  # three times as fast as numpy.sort

    def part(self, number: int) -> tuple[Rows, Blocks]:
        """Returns the comments of a part, and the blocks of their strings."""
        if not self.spilled:
            return self._in_memory(number), self.blocks
        rows: list[Rows] = []
        blocks: Blocks = []
        for path in self._files:
            with pa.OSFile(str(path)) as file, pa.ipc.open_file(file) as reader:
                batch = reader.get_batch(number)
            rows.append(rows_of(batch, len(blocks)))
            blocks.append(block_of(batch))
        return concatenated(rows), blocks

    def _in_memory(self, part: int) -> Rows:
        return concatenated([piece[part] for piece in self._pieces])

    def _flush(self) -> None:
        """Writes the comments in memory to a file: a batch for each part."""
        path = self._folder / f"comments-{len(self._files):04d}.arrow"
        with arrow_file(path, SCHEMA) as writer:
            parts = map(self._in_memory, self.parts)
            batches = mapped_ahead(lambda rows: batch_of(rows, self.blocks), parts, self._threads)
            for batch in batches:
                writer.write_batch(batch)
        self._files.append(path)
        self._clear()
        return_freed_memory()

    def drop_files(self) -> None:
        """Removes the files: all parts were read."""
        for path in self._files:
            path.unlink()


BITS = 9
"""Number of parts of a file, as a power of two. It is the largest of an extraction."""
LASTING = pa.ipc.IpcWriteOptions(compression="zstd", use_threads=False)
"""How files are written."""
_NUMBERS = range(len(NUMBERS))
_STRINGS = range(len(NUMBERS), len(NUMBERS) + len(STRINGS))


class CarriedComments:
    """The comments of earlier extractions. No id is there twice."""

    def __init__(self, files: Sequence[Path], bits: int) -> None:
        """Reads from `files` for an extraction of 2**`bits` parts."""
        self._files, self._bits = files, bits

    def __bool__(self) -> bool:
        return bool(self._files)

    def known(self, ids: Hashes) -> Hashes:
        """Returns which of the hashes of ids, in increasing order, are carried: also in order."""
        # in order they are found in half of the time
        ordered = (np.sort(hashes) for _, _, hashes in self._ids())
        found = [hashes[among(hashes, ids)] for hashes in ordered]
        return np.sort(np.concatenate([NO_HASHES, *found]))

    def comments(self, ids: Hashes) -> tuple[Rows, Block]:
        """Returns the comments with these hashes of ids, which are in increasing order."""
        masks = ((path, number, among(hashes, ids)) for path, number, hashes in self._ids())
        return _taken(
            (path, number, rows_of(_read(path, number, _NUMBERS)), mask)
            for path, number, mask in masks
            if mask.any()
        )

    def part(self, part: int, fresh: Rows, ids: Hashes) -> tuple[Rows, Block]:
        """Returns the comments of a part that are in the threads of its comments `fresh`.

        `ids` are the hashes of all ids of this extraction, in increasing order.

        Raises:
            CrossingError: a comment of this extraction has an answer in another thread.
        """
        threads = np.unique(fresh.thread)

        def found() -> Iterator[_Found]:
            for path, number in product(self._files, _batches(part, self._bits)):
                rows = rows_of(_read(path, number, _NUMBERS))
                mask = among(rows.thread, threads)
                rest = rows[~mask & rows.answers & (rows.rule == KEPT)]
                if among(rest.parent, ids).any():
                    raise CrossingError(ELSEWHERE)
                yield path, number, rows, mask

        return _taken(found())

    def _ids(self) -> Iterator[tuple[Path, int, Hashes]]:
        """Yields each batch of each file: the path, the number, and the hashes of ids."""
        for path in self._files:
            with _opened(path, (0,)) as reader:
                for number in range(1 << BITS):
                    yield path, number, reader.get_batch(number)["hash_id"].to_numpy(False)


def carried_batches(part: int, bits: int, rows: Rows, blocks: list[Block]) -> list[pa.RecordBatch]:
    """Returns the comments of one of 2**`bits` parts as the batches of a file for later ones."""
    rows = rows[rows.rule != GONE]
    # of rows with the same content any may be left: not their order decides about the bytes
    pieces = rows[np.lexsort((rows.id, rows.thread))].in_parts(BITS)
    return [
        _without_dropped_texts(batch_of(pieces[number], blocks)) for number in _batches(part, bits)
    ]


_Found = tuple[Path, int, Rows, NDArray[np.bool_]]
"""A batch of a file, its comments, and which of them are taken."""


def _batches(part: int, bits: int) -> range:
    """Returns the batches of a file that hold one of 2**`bits` parts."""
    several = 1 << (BITS - bits)
    return range(part * several, (part + 1) * several)


def _without_dropped_texts(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Returns a batch where comments that broke a rule have no text: only their ids are needed."""
    kept = pc.equal(batch["hash_rule"], pa.scalar(KEPT, pa.uint8()))
    text = pc.if_else(kept, batch["text"], pa.scalar("", pa.large_string()))
    return batch.set_column(SCHEMA.get_field_index("text"), "text", text)


@contextmanager
def _opened(path: Path, columns: Sequence[int]) -> Iterator[pa.ipc.RecordBatchFileReader]:
    """Opens a file to read some of its columns, by their numbers. The others are not read."""
    options = pa.ipc.IpcReadOptions(included_fields=list(columns), use_threads=False)
    with pa.OSFile(str(path)) as file, pa.ipc.open_file(file, options=options) as reader:
        yield reader


def _read(path: Path, number: int, columns: Sequence[int]) -> pa.RecordBatch:
    """Returns some columns of a batch."""
    with _opened(path, columns) as reader:
        return reader.get_batch(number)


def _taken(found: Iterable[_Found]) -> tuple[Rows, Block]:
    """Returns the comments that are taken from several batches, with their strings in one block."""
    rows: list[Rows] = []
    strings: list[pa.RecordBatch] = []
    for path, number, given, mask in found:
        if mask.any():
            rows.append(given[mask])
            strings.append(_read(path, number, _STRINGS).filter(pa.array(mask)))
    schema = pa.schema([SCHEMA.field(index) for index in _STRINGS])
    numbers = {name: getattr(concatenated(rows), name) for name in NUMBERS}
    return Rows.of_block(numbers), block_of(pa.Table.from_batches(strings, schema))
