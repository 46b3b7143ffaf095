"""Sums over rows, and updates of rows by sums: by a kernel in C (`_rows.c`) or by torch.

The kernel works on the CPU, with as many threads as torch has. A sum is computed by one thread, in
the order of its rows, so that the number of threads does not change it. Kernel and torch agree up
to the rounding of float32 sums.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from rejoinder.encoders.nn.shares import bounds_of, parallel
from rejoinder.kernels import kernel

_LEAST_WORK = 2_048
"""Rows to read below which a second thread does not pay."""

EPSILON = 1e-8
"""What Adagrad adds to the roots that it divides by."""


@dataclass(frozen=True, slots=True)
class RowSums:
    """Sums of rows: sum i is of the rows `places[offsets[i]:offsets[i + 1]]` of `values`."""

    values: Tensor
    """(V, W) float32."""
    places: Tensor
    """(n,) int64."""
    offsets: Tensor
    """(S + 1,) int64."""

    def computed(self) -> Tensor:
        """Returns the sums, (S, W)."""
        native = self._native()
        if native is None:
            return F.embedding_bag(
                self.places, self.values, self.offsets, mode="sum", include_last_offset=True
            )
        out: Tensor = self.values.new_empty(len(self.offsets) - 1, self.values.shape[1])
        self._shared(native.sum_rows, out.numpy())
        return out

    def mean_squares(self) -> Tensor:
        """Returns (S,) the mean of the squared entries of each sum."""
        native = self._native()
        if native is None:
            return _mean_squares(self.computed())
        out: Tensor = self.values.new_empty(len(self.offsets) - 1)
        self._shared(native.mean_squares, out.numpy())
        return out

    def move(self, table: Tensor, rows: Tensor, squares: Tensor, rate: float) -> None:
        """Moves the rows `rows` (S,) of a table (R, W) against the sums, their gradients.

        The rows must all be different. With `squares` (R,) it is a step of Adagrad, to which the
        mean square of each gradient is added first; if they are (0,), it is one of plain SGD.
        """
        native = self._native()
        if native is not None:
            numbers = table.numpy(), rows.numpy(), squares.numpy(), rate, EPSILON
            self._shared(native.move_rows, *numbers)
            return
        moves = self.computed()
        if len(squares):
            found = squares.index_select(0, rows).add_(_mean_squares(moves))
            squares.index_copy_(0, rows, found)
            moves *= (rate / found.sqrt().add_(EPSILON)).unsqueeze(1)
        else:
            moves *= rate
        table.index_copy_(0, rows, table.index_select(0, rows).sub_(moves))

    @property
    def _width(self) -> int:
        return self.values.shape[1]

    def _native(self) -> Any:
        """Returns the kernel, or None where it can't be used."""
        fits = self.values.device.type == "cpu" and self.values.is_contiguous()
        return kernel("encoders.nn._rows") if fits else None

    def _shared(self, work: Callable[..., None], *more: Any) -> None:
        """Has threads do `work` in shares."""
        values, places, offsets = self.values.numpy(), self.places.numpy(), self.offsets.numpy()
        threads = torch.get_num_threads() if len(places) >= _LEAST_WORK else 1
        bounds = bounds_of(offsets + np.arange(len(offsets)), threads)
        work(parallel(), threads, bounds, self._width, values, places, offsets, *more)


def _mean_squares(sums: Tensor) -> Tensor:
    norms: Tensor = torch.linalg.vector_norm(sums, dim=1)
    return norms.square_().div_(sums.shape[1])
