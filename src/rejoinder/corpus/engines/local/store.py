"""Comments by part: in memory, or beyond a bound in files of Arrow."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import polars as pl
import pyarrow as pa

from rejoinder.corpus.engines.local.rows import (
    NO_HASHES,
    NUMBERS,
    STRINGS,
    Block,
    Blocks,
    Rows,
    RowsInParts,
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
