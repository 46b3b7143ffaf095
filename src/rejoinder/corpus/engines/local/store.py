"""Comments by part: in memory, or beyond a bound in files of Arrow.

The comments of earlier extractions, in files that are read a part at a time.

A file has a batch for each of 2**`BITS` parts, so that an extraction of fewer parts reads several
batches for each of its parts. Only comments of threads with new comments are kept in memory.
"""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import product
from pathlib import Path

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from rejoinder.corpus.engines.local.rows import (
    ELSEWHERE,
    GONE,
    KEPT,
    NO_HASHES,
    NUMBERS,
    STRINGS,
    Block,
    Blocks,
    CrossingError,
    Rows,
    RowsInParts,
    among,
    concatenated,
)
from rejoinder.corpus.reading.readers import mapped_ahead
from rejoinder.corpus.reading.strings import Hashes, as_strings, gather
from rejoinder.io.files.storage import return_freed_memory

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
