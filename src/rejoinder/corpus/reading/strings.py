"""Columns of strings as two buffers: gathered from several columns, hashed, sorted."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import polars as pl
import pyarrow as pa
from numpy.typing import NDArray

from rejoinder.kernels import kernel

Index = NDArray[np.uint32]
Hashes = NDArray[np.uint64]


class Strings(NamedTuple):
    """(N,) strings without nulls, laid out as in a `large_string` array of Arrow."""

    content: memoryview
    """All strings, one after the other, in UTF-8."""
    ends: memoryview
    """(N + 1,) int64: string i is `content[ends[i]:ends[i + 1]]`."""

    def __len__(self) -> int:
        return self.ends.nbytes // 8 - 1

    @property
    def lengths(self) -> NDArray[np.int64]:
        """(N,) bytes of each string."""
        ends = np.frombuffer(self.ends, np.int64)
        return ends[1:] - ends[:-1]

    @property
    def nbytes(self) -> int:
        """Bytes of both buffers."""
        ends = np.frombuffer(self.ends, np.int64)
        return int(ends[-1] - ends[0]) + self.ends.nbytes

    def hashes(self, prefix: str = "") -> Hashes:
        """Returns (N,) a hash of each string, the same within one process.

        A `prefix` of three bytes is left out of the strings that have it.
        """
        native = kernel("corpus.reading._strings")
        if native is not None:
            return np.frombuffer(native.hashes([self], prefix), np.uint64)
        return self.to_polars().str.strip_prefix(prefix).hash().to_numpy()

    def starts_with(self, prefix: bytes) -> NDArray[np.bool_]:
        """Returns (N,) whether each string starts with `prefix`.

        >>> as_strings(pl.Series(["t3_a", "t", ""])).starts_with(b"t3_").tolist()
        [True, False, False]
        """
        ends = np.frombuffer(self.ends, np.int64)
        content = np.frombuffer(self.content, np.uint8)
        found = self.lengths >= len(prefix)
        for index, byte in enumerate(prefix):
            rows = np.flatnonzero(found)
            found[rows] = content[ends[rows] + index] == byte
        return found

    def order_in_runs(self, starts: NDArray[np.int64]) -> NDArray[np.int64]:
        """Returns (N,) the rows of R runs, each run's strings in the order of their bytes.

        `starts` has the first row of each run, and N.

        >>> as_strings(pl.Series(["b", "a", "a"])).order_in_runs(np.array([0, 2, 3])).tolist()
        [1, 0, 2]
        """
        native = kernel("corpus.reading._strings")
        if native is not None:
            return np.frombuffer(native.order_in_runs([self], starts), np.int64)
        runs = np.repeat(np.arange(len(starts) - 1), np.diff(starts))
        rows = pl.DataFrame({"run": runs, "string": self.to_polars()})
        return rows.select(pl.arg_sort_by("run", "string")).to_series().cast(pl.Int64).to_numpy()

    def to_arrow(self) -> pa.LargeStringArray:
        """Returns the strings as an array of Arrow that shares their memory."""
        buffers = (pa.py_buffer(self.ends), pa.py_buffer(self.content))
        return pa.LargeStringArray.from_buffers(len(self), *buffers)

    def to_polars(self) -> pl.Series:
        """Returns the strings as a series of Polars that shares their memory."""
        return pl.Series(self.to_arrow(), dtype=pl.String)


def as_strings(values: pa.Array | pa.ChunkedArray | pl.Series) -> Strings:
    """Returns the strings of an array; a null becomes an empty string."""
    if isinstance(values, pl.Series):
        values = as_arrow(values)
    if isinstance(values, pa.ChunkedArray):
        values = one_array(values)
    if values.type != pa.large_string():
        values = values.cast(pa.large_string())
    _, ends, content = values.buffers()
    first, rows = values.offset, len(values)
    ends = memoryview(ends)[8 * first : 8 * (first + rows + 1)] if rows else memoryview(bytes(8))
    return Strings(memoryview(content or b""), ends)


def as_arrow(values: pl.Series) -> pa.Array:
    """Returns the values of a series as one array of Arrow, strings as `large_string`."""
    return values.rechunk().to_arrow(compat_level=pl.CompatLevel.oldest())


def one_array(values: pa.ChunkedArray) -> pa.Array:
    """Returns the values as one array, without a copy of a single chunk."""
    if values.num_chunks == 1:
        return values.chunk(0)
    return pa.concat_arrays(values.chunks) if values.num_chunks else pa.nulls(0, values.type)


def as_table(frame: pl.DataFrame) -> pa.Table:
    """Returns the columns of a frame as arrays of Arrow, strings as `large_string`."""
    return frame.to_arrow(compat_level=pl.CompatLevel.oldest())


def take_rows(table: pa.Table, rows: NDArray[np.int64]) -> pa.Table:
    """Returns chosen rows of a table."""
    # an array of NumPy would do, but pyarrow would import pandas to look at it
    content = pa.py_buffer(rows.astype(np.int64))
    index = pa.Array.from_buffers(pa.int64(), len(rows), [None, content])
    return table.take(index)


def array_of(content: Any, ends: Any, present: Any) -> pa.LargeStringArray:
    """Returns (N,) strings from buffers as in `Strings`, null where the byte of `present` is 0."""
    exists = np.frombuffer(present, np.bool_)
    bits = None if exists.all() else pa.py_buffer(np.packbits(exists, bitorder="little"))
    buffers = pa.py_buffer(ends), pa.py_buffer(content), bits
    return pa.LargeStringArray.from_buffers(len(exists), *buffers)


def gather(columns: Sequence[Strings], which: Index, rows: Index, prefix: str = "") -> Strings:
    """Returns (N,) strings: string i is row `rows[i]` of column `which[i]`.

    A `prefix` of three bytes is left out of the strings that have it.

    >>> column = as_strings(pl.Series(["t3_a", "b"]))
    >>> gather([column], *np.uint32([[0, 0], [1, 0]]), prefix="t3_").to_polars().to_list()
    ['b', 'a']
    """
    native = kernel("corpus.reading._strings")
    if native is not None:
        content, ends = native.gather(list(columns), which, rows, prefix)
        return Strings(memoryview(content), memoryview(ends))
    starts = np.cumsum([0, *map(len, columns)])
    together = pl.concat([pl.Series([], dtype=pl.String), *(one.to_polars() for one in columns)])
    found = together.gather(starts[which] + rows)
    return as_strings(found.str.strip_prefix(prefix) if prefix else found)
