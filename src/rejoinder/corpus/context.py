"""The turns before the message of a pair, as a column `context` of the shards.

They are added to what an engine has written, so that all engines write the same.
"""

import mmap
from array import array
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

import msgspec
import numpy as np
import polars as pl
import pyarrow as pa
from numpy.typing import NDArray

from rejoinder.corpus.manifest import Shard
from rejoinder.corpus.reading.columns import as_arrow, clean_and_letters
from rejoinder.corpus.writer import add_column

_TYPE = pa.list_(pa.large_string())
_NONE = -1
Rows = NDArray[np.int64]


class _Link(msgspec.Struct):
    id: str
    before: str | None = None


class _Said(msgspec.Struct):
    text: str


def add_context(
    folder: Path, shards: Sequence[Shard], files: Sequence[Path], turns: int
) -> list[Shard]:
    """Adds the column to shards: up to `turns` texts, the oldest first.

    `files` are those of `convert`, whose messages name the one before them.
    """
    with _opened(files) as said:

        def column(table: pa.Table) -> pa.Array:
            return said.before(table["input_id"].to_pylist(), turns)

        return [add_column(folder, shard, "context", _TYPE, column) for shard in shards]


@contextmanager
def _opened(files: Sequence[Path]) -> Iterator["_Messages"]:
    with ExitStack() as stack:
        contents: list[mmap.mmap] = []
        for path in files:
            if path.stat().st_size:
                file = stack.enter_context(path.open("rb"))
                content = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
                contents.append(stack.enter_context(content))
        yield _Messages(contents)


class _Messages:
    """Messages by id: 28 bytes for each; their texts stay in the files."""

    def __init__(self, contents: Sequence[mmap.mmap]) -> None:
        self._contents = contents
        self._firsts: list[int] = []
        """Row of the first message of each file."""
        decoder = msgspec.json.Decoder(_Link)
        ids, links, starts = array("q"), array("q"), array("q")
        for content in contents:
            self._firsts.append(len(ids))
            start = 0
            while line := content.readline():
                link = decoder.decode(line)
                ids.append(_key(link.id))
                links.append(0 if link.before is None else _key(link.before))
                starts.append(start)
                start += len(line)
        self._starts = np.array(starts)
        unordered = np.array(ids)
        # of copies of a message the first counts
        self._order = np.argsort(unordered, kind="stable").astype(np.int32)
        self._ids = unordered[self._order]
        self._before = self._rows(np.array(links)).astype(np.int32)

    def _rows(self, keys: Rows) -> Rows:
        """Returns (N,) the rows of messages by the keys of their ids."""
        places = np.searchsorted(self._ids, keys)
        places[places == len(self._ids)] = 0
        return np.where(self._ids[places] == keys, self._order[places], _NONE)

    def before(self, ids: Sequence[str], turns: int) -> pa.Array:
        """Returns (N,) lists of the texts before messages, the oldest first."""
        rows = self._rows(np.array([_key(one) for one in ids]))
        chain: list[Rows] = []
        for _ in range(turns):
            rows = np.where(rows == _NONE, _NONE, self._before[rows]).astype(np.int64)
            chain.insert(0, rows)
        table = np.stack(chain, axis=1)
        said = table != _NONE
        wanted, which = np.unique(table[said], return_inverse=True)
        texts = _clean(self._texts(wanted.tolist())).gather(which)
        borders = np.zeros(len(ids) + 1, np.int32)
        np.cumsum(said.sum(axis=1), out=borders[1:])
        buffers = [None, pa.py_buffer(borders)]
        return pa.Array.from_buffers(_TYPE, len(ids), buffers, children=[as_arrow(texts)])

    def _texts(self, rows: Iterable[int]) -> Iterator[str]:
        decoder = msgspec.json.Decoder(_Said)
        for row in rows:
            number = int(np.searchsorted(self._firsts, row, side="right")) - 1
            content = self._contents[number]
            content.seek(int(self._starts[row]))
            yield decoder.decode(content.readline()).text


def _key(id_: str) -> int:
    return hash(id_.removeprefix("t1_"))  # as extraction calls it


def _clean(texts: Iterable[str]) -> pl.Series:
    """Returns texts as the pairs have them."""
    given = pl.Series(list(texts), dtype=pl.String)
    clean, _ = clean_and_letters(as_arrow(given))
    return pl.select(pl.coalesce(pl.Series(clean, dtype=pl.String), given)).to_series()
