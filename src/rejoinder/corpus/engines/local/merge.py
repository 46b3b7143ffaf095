"""Pairs of all parts in the order of the output, a bounded piece at a time.

Each part is in the order of the output, and a thread is in one part. So the output is a sequence of
runs, one for each thread, and every part is read from its beginning to its end.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import numpy as np
import polars as pl
import pyarrow as pa
from numpy.typing import NDArray

from rejoinder.corpus.engines.local.batches import SPILLED
from rejoinder.corpus.engines.local.join import Joined
from rejoinder.corpus.engines.local.rows import PREFIXES, Blocks, Rows, rows_of_runs
from rejoinder.corpus.reading.strings import Index, Strings, as_strings, gather

_BATCH_ROWS = 2048
_COLUMNS: Mapping[str, tuple[bool, str]] = {
    "thread_id": (True, "thread"),
    "input_id": (False, "id"),
    "response_id": (True, "id"),
    "input": (False, "text"),
    "response": (True, "text"),
    "source": (True, "source"),
}
"""For each column of the output: whether it is the reply's, and the column of its comment."""


@dataclass(frozen=True)
class Runs:
    """(T,) the pairs of a thread, which are neighbours in their part."""

    thread: pl.Series
    split: NDArray[np.int8]
    part: NDArray[np.int64]
    start: NDArray[np.int64]
    """First pair, counted within the part."""
    size: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.thread)

    def __getitem__(self, index: NDArray[np.int64]) -> "Runs":
        return Runs(
            self.thread.gather(index),
            self.split[index],
            self.part[index],
            self.start[index],
            self.size[index],
        )

    def in_order(self) -> "Runs":
        """Returns the runs by split and thread."""
        keys = pl.DataFrame({"split": self.split, "thread": self.thread}).with_row_index("run")
        return self[keys.sort("split", "thread").get_column("run").to_numpy().astype(np.int64)]

    def pieces(self, rows: int, limit: int | None) -> Iterator["Runs"]:
        """Yields the runs in pieces of about `rows` pairs, `limit` pairs in all."""
        ends = np.cumsum(self.size)
        count, done = len(self), 0
        if limit is not None:
            count = int(np.searchsorted(ends, limit)) + 1 if limit else 0
        run = 0
        while run < min(count, len(self)):
            last = int(np.searchsorted(ends, done + rows, "right"))
            last = min(max(last, run + 1), count)
            piece = self[np.arange(run, last)]
            if limit is not None and ends[last - 1] > limit:
                piece.size[-1] -= ends[last - 1] - limit
            yield piece
            run, done = last, int(ends[last - 1])


def runs_of(joined: Joined, part: int, split: NDArray[np.int8]) -> Runs:
    """Returns the runs of a part, whose threads are in `split`."""
    sizes = np.diff(joined.starts)
    return Runs(joined.threads, split, np.full(len(sizes), part), joined.starts[:-1].copy(), sizes)


def all_runs(runs: Sequence[Runs]) -> Runs:
    """Returns the runs of all parts."""
    names = ("split", "part", "start", "size")
    threads = pl.concat([pl.Series([], dtype=pl.String), *(one.thread for one in runs)])
    arrays = [np.concatenate([getattr(one, name) for one in runs]) for name in names]
    return Runs(threads, *arrays)


class Pairs(Protocol):
    """The joined pairs of all parts."""

    def add(self, part: int, joined: Joined, runs: Runs, rows: Rows, blocks: Blocks) -> Runs:
        """Takes the pairs of a part and returns their runs. May be called by several threads."""
        ...

    def finish(self) -> None:
        """Takes note that all parts are here."""
        ...

    def table(self, runs: Runs) -> pa.Table:
        """Returns the pairs of runs. The runs of all calls together are in the order of output."""
        ...


class PairsInMemory:
    """Pairs as rows of the comments in memory."""

    def __init__(self, parts: int) -> None:
        self._replies: list[tuple[Index, Index]] = [_NONE] * parts
        self._messages: list[tuple[Index, Index]] = [_NONE] * parts
        self._blocks: Blocks = []

    def add(self, part: int, joined: Joined, runs: Runs, rows: Rows, blocks: Blocks) -> Runs:
        """Takes the pairs of a part."""
        self._replies[part] = rows.which[joined.replies], rows.row[joined.replies]
        self._messages[part] = rows.which[joined.messages], rows.row[joined.messages]
        self._blocks = blocks
        return runs

    def finish(self) -> None:
        """Joins the parts."""
        sizes = [len(rows) for _, rows in self._replies]
        self._first = np.cumsum([0, *sizes])[:-1]
        self._below = [np.concatenate(arrays) for arrays in zip(*self._replies, strict=True)]
        self._above = [np.concatenate(arrays) for arrays in zip(*self._messages, strict=True)]
        self._replies, self._messages = [], []

    def table(self, runs: Runs) -> pa.Table:
        """Returns the pairs of runs."""
        pairs = rows_of_runs(self._first[runs.part] + runs.start, runs.size)
        columns = {}
        for name, (of_reply, column) in _COLUMNS.items():
            which, rows = self._below if of_reply else self._above
            strings = [block[column] for block in self._blocks]
            columns[name] = gather(strings, which[pairs], rows[pairs], PREFIXES.get(column, ""))
        return _with_split(columns, runs)


class PairsInFiles:
    """Pairs in a file for each part, of which a few rows at a time are in memory."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._readers: dict[int, _PartReader] = {}

    def _path(self, part: int) -> Path:
        return self._folder / f"pairs-{part:04d}.arrow"

    def add(self, part: int, joined: Joined, runs: Runs, rows: Rows, blocks: Blocks) -> Runs:
        """Writes the pairs of a part, those of dev and test behind those of train."""
        order = np.argsort(runs.split, kind="stable")
        pairs = rows_of_runs(runs.start[order], runs.size[order])
        below, above = rows[joined.replies[pairs]], rows[joined.messages[pairs]]
        table = pa.table(
            {
                name: (below if of_reply else above).strings(blocks, column).to_arrow()
                for name, (of_reply, column) in _COLUMNS.items()
            }
        )
        with (
            pa.OSFile(str(self._path(part)), "wb") as file,
            pa.ipc.new_file(file, table.schema, options=SPILLED) as writer,
        ):
            writer.write_table(table, max_chunksize=_BATCH_ROWS)
        moved = runs[order]
        moved.start[:] = np.cumsum(moved.size) - moved.size
        return moved

    def finish(self) -> None:
        """Nothing is left to do: each part has its file."""

    def table(self, runs: Runs) -> pa.Table:
        """Returns the pairs of runs, by reading on in each part."""
        blocks: list[Mapping[str, Strings]] = []
        which, rows = np.zeros(len(runs), np.uint32), np.zeros(len(runs), np.int64)
        for part in np.unique(runs.part).tolist():
            mine = np.flatnonzero(runs.part == part)
            if part not in self._readers:
                self._readers[part] = _PartReader(self._path(part))
            which[mine] = len(blocks)
            rows[mine] = np.cumsum(runs.size[mine]) - runs.size[mine]
            blocks.append(self._readers[part].take(int(runs.size[mine].sum())))
        pairs = rows_of_runs(rows, runs.size).astype(np.uint32)
        blocks_of_pairs = np.repeat(which, runs.size)
        columns = {
            name: gather([block[name] for block in blocks], blocks_of_pairs, pairs)
            for name in _COLUMNS
        }
        return _with_split(columns, runs)


class _PartReader:
    """Reads the pairs of a part from the beginning to the end."""

    def __init__(self, path: Path) -> None:
        self._file = pa.OSFile(str(path))
        self._reader = pa.ipc.open_file(self._file)
        self._next = 0
        self._held: list[pa.RecordBatch] = []

    def take(self, rows: int) -> Mapping[str, Strings]:
        """Returns the next rows."""
        held = sum(batch.num_rows for batch in self._held)
        while held < rows:
            batch = self._reader.get_batch(self._next)
            self._held.append(batch)
            held += batch.num_rows
            self._next += 1
        table = pa.Table.from_batches(self._held)
        self._held = table.slice(rows).to_batches()
        if self._next == self._reader.num_record_batches and not self._held:
            self._file.close()
        return {name: as_strings(table[name].slice(0, rows)) for name in _COLUMNS}


_NONE = (np.empty(0, np.uint32), np.empty(0, np.uint32))


def _with_split(columns: Mapping[str, Strings], runs: Runs) -> pa.Table:
    parts = np.repeat(runs.split, runs.size).astype(np.int8, copy=False)
    arrays = [strings.to_arrow() for strings in columns.values()]
    arrays.append(pa.Array.from_buffers(pa.int8(), len(parts), [None, pa.py_buffer(parts)]))
    return pa.table(arrays, [*columns, "part"])
