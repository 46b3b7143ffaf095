"""Comments by part: in memory, or beyond a bound in files."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import polars as pl
import pyarrow as pa
from numpy.typing import NDArray

from rejoinder.corpus.engines.local.batches import SCHEMA, SPILLED, batch_of, block_of, rows_of
from rejoinder.corpus.engines.local.rows import Block, Blocks, Rows, RowsInParts, concatenated
from rejoinder.corpus.reading.ahead import mapped_ahead

_HASH_BYTES = 8 * 3 + 2 + 2 * 4
"""Bytes of a row of `Rows`."""


class Store:
    """Takes blocks of comments and gives back its parts: a thread is in one part.

    The hashes of all ids stay in memory, 8 bytes each.
    """

    def __init__(self, room: int, bits: int, folder: Path, threads: int) -> None:
        """Opens a store of 2**`bits` parts that holds about `room` bytes in memory."""
        self.bits, self._threads = bits, threads
        self._room, self._folder = room, folder
        self._files: list[Path] = []
        self._ids: list[NDArray[np.uint64]] = []
        self._clear()

    def _clear(self) -> None:
        self._pieces: list[RowsInParts] = []
        self._blocks: Blocks = []
        self._bytes = 0

    @property
    def spilled(self) -> bool:
        """Whether comments are in files."""
        return bool(self._files)

    def add(self, piece: RowsInParts, block: Block) -> None:
        """Takes the comments of a block."""
        piece.rows.which[:] = len(self._blocks)
        self._pieces.append(piece)
        self._blocks.append(block)
        self._ids.append(piece.rows.id)
        self._bytes += len(piece.rows) * _HASH_BYTES + sum(one.nbytes for one in block.values())
        if self._bytes > self._room:
            self._flush()

    def finish(self) -> None:
        """Takes note that all comments are here."""
        if self.spilled and self._pieces:
            self._flush()

    def ids(self) -> NDArray[np.uint64]:
        """Returns (N,) the hashes of all ids, in increasing order."""
        together = np.concatenate([np.empty(0, np.uint64), *self._ids])
        return pl.Series(together).sort().to_numpy()  # three times as fast as numpy.sort

    def part(self, number: int) -> tuple[Rows, Blocks]:
        """Returns the comments of a part, and the blocks of their strings."""
        if not self.spilled:
            return self._in_memory(number), self._blocks
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

    def _batch(self, part: int) -> pa.RecordBatch:
        return batch_of(self._in_memory(part), self._blocks)

    def _flush(self) -> None:
        """Writes the comments in memory to a file: a batch for each part."""
        path = self._folder / f"comments-{len(self._files):04d}.arrow"
        with (
            pa.OSFile(str(path), "wb") as file,
            pa.ipc.new_file(file, SCHEMA, options=SPILLED) as writer,
        ):
            for batch in mapped_ahead(self._batch, self.parts(), self._threads):
                writer.write_batch(batch)
        self._files.append(path)
        self._clear()

    def drop_files(self) -> None:
        """Removes the files: all parts were read."""
        for path in self._files:
            path.unlink()

    def parts(self) -> Iterator[int]:
        """Yields the numbers of the parts."""
        return iter(range(2**self.bits))
