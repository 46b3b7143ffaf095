"""Rows times the weights of a dense layer, by a kernel in C or NumPy."""

from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rejoinder.kernels import kernel

Array = NDArray[np.float32]


class Linear:
    """A dense layer without an activation: rows times the weights, plus the biases.

    Computed by a kernel in C (`_layers.c`), where a row has the same bits in any batch, or,
    where it is not built or the processor has no AVX2, by NumPy, where the batch rounds it.
    """

    def __init__(self, weight: NDArray[Any], bias: NDArray[Any] | None = None) -> None:
        """Takes (outputs, inputs) weights and (outputs,) biases, which are zero by default."""
        self._weight = np.ascontiguousarray(weight, np.float32)
        given = np.zeros(len(weight)) if bias is None else bias
        self._bias = np.ascontiguousarray(given, np.float32)

    def __call__(self, x: Array) -> Array:
        """(N, inputs) float32 to (N, outputs) float32."""
        native = kernel("encoders._layers")
        if native is None or not self._weight.size:
            return x @ self._weight.T + self._bias
        rows = np.ascontiguousarray(x, np.float32)
        out = np.empty((len(rows), len(self._bias)), np.float32)
        native.dense(rows.shape[1], rows, self._panels, self._bias, out)
        return out

    @cached_property
    def _panels(self) -> Array:
        return _in_panels(self._weight, kernel("encoders._layers").PANEL)


def _in_panels(weight: Array, width: int) -> Array:
    """Returns (panels, inputs, width), the columns of `width` outputs together, padded by zeros."""
    outputs, inputs = weight.shape
    panels = -(-outputs // width)
    padded = np.zeros((panels * width, inputs), np.float32)
    padded[:outputs] = weight
    return np.ascontiguousarray(padded.reshape(panels, width, inputs).transpose(0, 2, 1))
