"""Sums of rows of a table, by a kernel in C (`_sums.c`) or, where it is not built, NumPy.

Both agree up to the rounding of float32 sums.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from rejoinder.encoders.quantized import dequantize_rows
from rejoinder.kernels import kernel
from rejoinder.text.ragged import Ragged

Array = NDArray[np.float32]

_NO_SCALES = np.empty(0, np.float32)


class RowSums:
    """Sums, for each sentence, of the rows of a table that its ids name, divided by n^power.

    n is the number of the sentence's ids, so that power 1 gives means.
    """

    def __init__(
        self, table: NDArray[Any], scales: Array | None = None, power: float = 0.0
    ) -> None:
        """Takes a table (R, D) of float32, float16, or int8 with (R,) float32 scales of rows."""
        self.table, self.power = np.ascontiguousarray(table), float(power)
        self.scales = _NO_SCALES if scales is None else np.ascontiguousarray(scales, np.float32)
        self._native = kernel("encoders.dan._sums")

    def __call__(self, batch: Ragged) -> Array:
        """Returns (N, D) float32; zero rows for sentences without ids.

        Raises:
            ValueError: an id is below 0 or beyond the table.
        """
        if self._native is None:
            sums = self._by_numpy(batch)
            return sums / self._divisors(batch) if self.power else sums
        width = self.table.shape[1]
        out = np.empty((len(batch), width), np.float32)
        ids = np.ascontiguousarray(batch.ids, np.int32)
        offsets = np.ascontiguousarray(batch.offsets, np.int64)
        kind = self.table.dtype.char
        self._native.sums(kind, width, self.power, self.table, self.scales, ids, offsets, out)
        return out

    def _divisors(self, batch: Ragged) -> Array:
        """Returns (N, 1) float32, n^power of each sentence, and 1 of empty ones."""
        counts = np.maximum(batch.lengths, 1)
        return np.asarray(counts**self.power, np.float32)[:, None]

    def _by_numpy(self, batch: Ragged) -> Array:
        """Adds the first rows of all sentences, then the second ones, and so on."""
        if len(batch.ids) and not 0 <= batch.ids.min() <= batch.ids.max() < len(self.table):
            raise ValueError(f"sums: an id is not one of the {len(self.table)} rows")
        used, indices = np.unique(batch.ids, return_inverse=True)
        rows = self.table[used]
        if rows.dtype == np.int8:
            rows = dequantize_rows(rows, self.scales[used])
        lengths = batch.lengths
        longest = np.argsort(-lengths, kind="stable")
        starts, left = batch.offsets[:-1][longest], lengths[longest]
        sums = np.zeros((len(batch), self.table.shape[1]), np.float32)
        for position in range(int(left[0]) if len(left) else 0):
            count = int(np.searchsorted(-left, -position))  # sentences longer than that
            sums[:count] += rows[indices[starts[:count] + position]]
        out = np.empty_like(sums)
        out[longest] = sums
        return out
