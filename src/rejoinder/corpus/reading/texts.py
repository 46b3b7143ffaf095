"""Clean texts and their numbers of letters, by a kernel in C where it was built."""

import numpy as np
import polars as pl
import pyarrow as pa
from numpy.typing import NDArray

from rejoinder.corpus.reading.cleaning import cleaned
from rejoinder.corpus.reading.letters import count_letters, letter_table
from rejoinder.corpus.reading.strings import as_arrow, as_strings, gather
from rejoinder.kernels import kernel

_UNCLEAN = 2
"""The bit by which the kernel marks texts that cleaning may change."""


def clean_and_letters(texts: pa.LargeStringArray) -> tuple[pa.LargeStringArray, NDArray[np.int32]]:
    """Returns (N,) cleaned texts, null where cleaning changes nothing, and (N,) int32 letters.

    >>> texts = pa.array(["as it is", "R&amp;D 中文"], pa.large_string())
    >>> clean, letters = clean_and_letters(texts)
    >>> clean.to_pylist(), letters.tolist()
    ([None, 'R&D 中文'], [6, 7])
    """
    native = kernel("corpus.reading._strings")
    if native is None:
        series = pl.Series(texts, dtype=pl.String)
        return as_arrow(cleaned(series)), count_letters(series)
    counts, kinds = native.text_facts(*as_strings(texts), letter_table())
    letters = np.frombuffer(counts, np.int32)
    rows = np.flatnonzero(np.frombuffer(kinds, np.uint8) & _UNCLEAN)
    if not len(rows):
        return pa.nulls(len(texts), pa.large_string()), letters
    chosen = gather([as_strings(texts)], np.zeros(len(rows), np.uint32), rows.astype(np.uint32))
    return _scattered(cleaned(chosen.to_polars()), rows, len(texts)), letters


def _scattered(values: pl.Series, rows: NDArray[np.intp], count: int) -> pa.LargeStringArray:
    """Returns (N,) strings: those of `values` in their rows, null in the others."""
    changed = as_arrow(values.drop_nulls())
    rows = rows[values.is_not_null().to_numpy()]
    strings = as_strings(changed)
    sizes, present = np.zeros(count + 1, np.int64), np.zeros(count, np.bool_)
    sizes[rows + 1] = np.diff(np.frombuffer(strings.ends, np.int64))
    present[rows] = True
    bits = np.packbits(present, bitorder="little")
    buffers = pa.py_buffer(np.cumsum(sizes)), pa.py_buffer(strings.content), pa.py_buffer(bits)
    return pa.LargeStringArray.from_buffers(count, *buffers)
