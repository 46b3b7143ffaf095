"""Joins replies with their messages, and puts the pairs of all parts into the order of the output.

The pairs of a part are in the order of the output, and each thread is in one part. So the output is
a sequence of runs, one per thread, and every part is read from start to end.

A table of runs has the columns `thread`, `split` (0 train, 1 dev, 2 test), `part`, `start` (first
pair, counted within the part) and `size`.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
from numpy.typing import NDArray

from rejoinder.corpus.engines.local import store
from rejoinder.corpus.reading.columns import Hashes, Strings, as_arrow, as_strings, gather

_BATCH_ROWS = 256
_SAME_HASH = "two ids have the same hash"
_COLUMNS: Mapping[str, tuple[bool, str]] = {
    "thread_id": (True, "thread"),
    "input_id": (False, "id"),
    "response_id": (True, "id"),
    "input": (False, "text"),
    "response": (True, "text"),
    "source": (True, "source"),
}
"""For each column of the output: whether it is the reply's, and the column of its comment."""


Places = NDArray[np.uint32]
"""(2, N) where the strings of comments are: `which` and `row` of `Rows`."""
NOWHERE: Places = np.empty((2, 0), np.uint32)


@dataclass(frozen=True)
class Joined:
    """The pairs of a part, in the order of the output."""

    replies: Places
    """(P,) where the strings of each reply are."""
    messages: Places
    """(P,) where the strings of each message are."""
    runs: pl.DataFrame
    missing: Hashes
    """Hashes of the parents of kept replies that the part lacks."""
    unmatched: tuple[str, str] | None
    """Ids of a reply and of its parent, which the part lacks."""
    counts: Counter[str | int]
    """Counts by the names of `Outcome`, and the part's own comments by rule: `KEPT`, 1, …"""


def join(
    part: int,
    rows: store.Rows,
    blocks: store.Blocks,
    fresh: int,
    splits: Callable[[pl.Series], NDArray[np.int8]],
) -> Joined:
    """Joins the comments of a part, whose strings are in `blocks`.

    The first `fresh` rows are this extraction's, the others are carried from earlier ones. Pairs of
    two carried comments are left out, and carried replies are not counted. `splits` returns the
    splits of threads.

    Raises:
        CrossingError: two ids have the same hash, or a parent is in another thread.
    """
    replies = np.flatnonzero((rows.rule == store.KEPT) & rows.answers)
    parents = rows.parent[replies]
    there = np.flatnonzero(rows.rule != store.GONE)
    place = _places(rows.id[there], parents)
    found = place >= 0
    missing, lost = parents[~found], replies[~found & (replies < fresh)]
    example = [rows.strings(blocks, name, lost[:1]).to_polars() for name in ("id", "parent")]
    unmatched = next(zip(*example, strict=True), None)
    replies, messages = replies[found], there[place[found]]
    new = (replies < fresh) | (messages < fresh)
    replies, messages = replies[new], messages[new]
    ids = rows.strings(blocks, "id", messages).to_arrow()
    if not rows.strings(blocks, "parent", replies).to_arrow().equals(ids):
        raise store.CrossingError(_SAME_HASH)
    if (rows.thread[replies] != rows.thread[messages]).any():
        raise store.CrossingError(store.ELSEWHERE)
    kept = rows.rule[messages] == store.KEPT
    dropped = int((~kept & (replies < fresh)).sum())
    replies, messages = replies[kept], messages[kept]
    runs, order = _runs(part, rows, blocks, replies, splits)
    replies, messages = replies[order], messages[order]
    fates = np.bincount(rows.rule[:fresh], minlength=1)
    counts: Counter[str | int] = Counter(dict(enumerate(fates.tolist())))
    counts.update(
        replies=int((rows.answers & (rows.rule == store.KEPT))[:fresh].sum()),
        parent_not_found=len(lost),
        parent_dropped=dropped,
        carried_messages=int((messages >= fresh).sum()),
        carried_replies=int((replies >= fresh).sum()),
    )
    places = np.stack([rows.which, rows.row])
    replied, said = places.take(replies, 1), places.take(messages, 1)
    return Joined(replied, said, runs, missing, unmatched, counts)


def _places(hashes: Hashes, wanted: Hashes) -> NDArray[np.int64]:
    """Returns (N,) the index of each wanted hash among different ones, -1 where it is not there.

    Raises:
        CrossingError: one of them is there twice.

    >>> _places(np.uint64([7, 5]), np.uint64([5, 6, 7])).tolist()
    [1, -1, 0]
    """
    rows = pl.DataFrame({"hash": hashes}).with_row_index("row")
    found = pl.DataFrame({"hash": wanted}).join(rows, on="hash", how="left", maintain_order="left")
    if len(found) > len(wanted):
        raise store.CrossingError(_SAME_HASH)
    return found.get_column("row").cast(pl.Int64).fill_null(-1).to_numpy()


def _runs(
    part: int,
    rows: store.Rows,
    blocks: store.Blocks,
    replies: NDArray[np.int64],
    splits: Callable[[pl.Series], NDArray[np.int8]],
) -> tuple[pl.DataFrame, NDArray[np.int64]]:
    """Returns the runs of a part and the order of its replies: by split, thread and id.

    Raises:
        CrossingError: two threads have the same hash.
    """
    hashes = rows.thread[replies]
    order = np.argsort(hashes, kind="stable")
    firsts = np.flatnonzero(np.diff(hashes[order], prepend=~hashes[order[:1]]))
    sizes = np.diff(firsts, append=len(order))
    ids = rows.strings(blocks, "id", replies[order])
    order = order[ids.order_in_runs(np.append(firsts, len(order)))]
    one_of_each = replies[order[firsts]]
    threads = rows.strings(blocks, "thread", replies[order]).to_arrow()
    if not rows.strings(blocks, "thread", np.repeat(one_of_each, sizes)).to_arrow().equals(threads):
        raise store.CrossingError(_SAME_HASH)
    names = rows.strings(blocks, "thread", one_of_each).to_polars()
    runs = pl.DataFrame({"thread": names, "start": firsts, "size": sizes, "split": splits(names)})
    runs = runs.sort("split", "thread")
    order = order[pairs_of(runs)]
    # a copy: otherwise the threads of all replies would stay in memory with those of runs
    copied = pl.Series(as_arrow(runs.get_column("thread")), dtype=pl.String)
    runs = runs.with_columns(thread=copied, start=_STARTS, part=part)
    return runs.select("thread", "size", "start", "part", "split").cast(_SMALL), order


_STARTS = pl.col("size").cast(pl.Int64).cum_sum() - pl.col("size")
_SMALL: Mapping[Any, Any] = {"size": pl.Int32, "start": pl.Int32, "part": pl.Int16}
"""Types of columns of runs, of which there is one for each thread."""


def pairs_of(runs: pl.DataFrame) -> NDArray[np.int64]:
    """Returns the pairs of runs, counted as their starts are.

    >>> pairs_of(pl.DataFrame({"start": [5, 0], "size": [2, 1]})).tolist()
    [5, 6, 0]
    """
    wide = runs.select(pl.col("start", "size").cast(pl.Int64))
    starts, sizes = (wide.get_column(name).to_numpy() for name in ("start", "size"))
    return np.repeat(starts - np.cumsum(sizes) + sizes, sizes) + np.arange(sizes.sum())


def in_pieces(runs: Sequence[pl.DataFrame], rows: int, limit: int | None) -> list[pl.DataFrame]:
    """Returns the runs of all parts in the order of the output, in pieces of about `rows` pairs.

    There are `limit` pairs in all. The pieces have no threads.
    """
    together = pl.concat(runs)
    order = together.select(pl.arg_sort_by("split", "thread")).to_series()
    ordered = together.drop("thread")[order].with_columns(first=_STARTS)
    if limit is not None:
        ordered = ordered.filter(pl.col("first") < limit).with_columns(
            size=pl.min_horizontal("size", limit - pl.col("first"))
        )
    pieces = ordered.with_columns(piece=pl.col("first") // rows).drop("first")
    return pieces.partition_by("piece", maintain_order=True, include_key=False)


class PairsInMemory:
    """Pairs as rows of the comments in memory."""

    def __init__(self, parts: Sequence[Joined], blocks: store.Blocks) -> None:
        """Takes the pairs of all parts, whose strings are in `blocks`."""
        self._blocks = blocks
        self._firsts = pl.Series(np.cumsum([0, *(joined.replies.shape[1] for joined in parts)]))
        self._replies = np.concatenate([joined.replies for joined in parts], axis=1)
        self._messages = np.concatenate([joined.messages for joined in parts], axis=1)

    def table(self, runs: pl.DataFrame) -> pa.Table:
        """Returns the pairs of runs."""
        firsts = self._firsts.gather(runs.get_column("part"))
        pairs = pairs_of(runs.with_columns(start=pl.col("start") + firsts))
        replies, messages = self._replies.take(pairs, 1), self._messages.take(pairs, 1)
        return _table(_strings(self._blocks, replies, messages), runs)


class PairsInFiles:
    """Pairs in a file for each part, of which a few rows at a time are in memory."""

    def __init__(self, folder: Path) -> None:
        """Reads and writes in `folder`."""
        self._folder = folder
        self._readers: dict[int, _PartReader] = {}

    def _path(self, part: int) -> Path:
        return self._folder / f"pairs-{part:04d}.arrow"

    def write(self, part: int, joined: Joined, blocks: store.Blocks) -> None:
        """Writes the pairs of a part. Any thread may call this."""
        strings = _strings(blocks, joined.replies, joined.messages)
        table = pa.table({name: column.to_arrow() for name, column in strings.items()})
        with store.arrow_file(self._path(part), table.schema) as writer:
            writer.write_table(table, max_chunksize=_BATCH_ROWS)

    def table(self, runs: pl.DataFrame) -> pa.Table:
        """Returns the pairs of runs, those of all calls together in the order of the output."""
        sizes = runs.group_by("part").agg(pl.col("size").sum()).sort("part")
        for part in sizes["part"]:
            if part not in self._readers:
                self._readers[part] = _PartReader(self._path(part))
        blocks = [self._readers[part].take(rows) for part, rows in sizes.iter_rows()]
        pairs = pairs_of(runs.with_columns(start=_STARTS.over("part"))).astype(np.uint32)
        which = runs.get_column("part").rank("dense").to_numpy() - 1
        which = np.repeat(which, runs.get_column("size").to_numpy()).astype(np.uint32)
        columns = {name: [block[name] for block in blocks] for name in _COLUMNS}
        strings = {name: gather(column, which, pairs) for name, column in columns.items()}
        return _table(strings, runs)


class _PartReader:
    """Reads the pairs of a part from the beginning to the end."""

    def __init__(self, path: Path) -> None:
        self._reader = pa.ipc.open_file(pa.OSFile(str(path)))
        self._next = 0
        self._held: list[pa.RecordBatch] = []

    def take(self, rows: int) -> Mapping[str, Strings]:
        """Returns the next rows."""
        held = sum(batch.num_rows for batch in self._held)
        while held < rows:
            self._held.append(self._reader.get_batch(self._next))
            held += self._held[-1].num_rows
            self._next += 1
        table = pa.Table.from_batches(self._held)
        self._held = table.slice(rows).to_batches()
        return {name: as_strings(table[name].slice(0, rows)) for name in _COLUMNS}


def _strings(blocks: store.Blocks, replies: Places, messages: Places) -> dict[str, Strings]:
    found = {}
    for name, (of_reply, column) in _COLUMNS.items():
        places = replies if of_reply else messages
        columns = [block[column] for block in blocks]
        found[name] = gather(columns, places[0], places[1], store.PREFIXES.get(column, ""))
    return found


def _table(strings: Mapping[str, Strings], runs: pl.DataFrame) -> pa.Table:
    sizes = runs.get_column("size").to_numpy()
    parts = np.repeat(runs.get_column("split").to_numpy(), sizes)
    arrays = [column.to_arrow() for column in strings.values()]
    arrays.append(pa.Array.from_buffers(pa.int8(), len(parts), [None, pa.py_buffer(parts)]))
    return pa.table(arrays, [*strings, "part"])
