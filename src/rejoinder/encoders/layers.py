"""Dense layers without torch: the counterpart of `encoders.nn.dense` in torch.

Embedding tables of 8-bit whole numbers, with one scale per row.
"""

import math
from collections.abc import Callable, Mapping
from functools import cache
from importlib.util import find_spec
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rejoinder.errors import ModelError
from rejoinder.kernels import kernel

Array = NDArray[np.float32]

_NOT_FINITE = "an embedding is not finite: the weights of the model are too large."


def _gelu(x: Array) -> Array:
    return np.asarray(0.5 * x * (1.0 + _erf()(x / np.float32(2**0.5))), np.float32)


@cache
def _erf() -> Callable[[Array], NDArray[Any]]:
    """Returns the error function for arrays: SciPy's if it is installed, else `math`'s, slower."""
    if find_spec("scipy") is not None:
        from scipy.special import erf

        return lambda x: np.asarray(erf(x))
    each = np.frompyfunc(math.erf, 1, 1)
    return lambda x: np.asarray(each(x), np.float64)


_ACTIVATIONS: dict[str, Callable[[Array], Array]] = {
    "gelu": _gelu,
    "none": lambda x: x,
    "relu": lambda x: np.maximum(x, 0),
    "tanh": np.tanh,
}


class Layers:
    """Linear layers with an activation between them, and a residual connection if configured."""

    def __init__(
        self, name: str, config: Mapping[str, Any], tensors: Mapping[str, NDArray[Any]]
    ) -> None:
        """Takes the tensors `NAME.layers.0.weight`, `NAME.layers.0.bias`, … of a model."""
        self.activation = _ACTIVATIONS[config["activation"]]
        each = [f"{name}.layers.{number}" for number in range(len(config["layers"]))]
        self.weights = [
            (_transposed(tensors[f"{a}.weight"]), np.asarray(tensors[f"{a}.bias"], np.float32))
            for a in each
        ]
        self.residual = bool(config["residual"]) and bool(self.weights)
        skip = tensors.get(f"{name}.skip.weight")
        self.skip = None if skip is None else _transposed(skip)

    def __call__(self, x: Array) -> Array:
        """(N, inputs) float32 to (N, outputs) float32."""
        y = x
        for number, (weight, bias) in enumerate(self.weights):
            y = (self.activation(y) if number else y) @ weight + bias
        if not self.residual:
            return y
        return y + (x if self.skip is None else x @ self.skip)


def _transposed(weight: NDArray[Any]) -> Array:
    return np.asarray(weight, np.float32).T


def unit_rows(x: Array) -> Array:
    """Returns (N, D) float32 rows scaled to length 1; zero rows stay zero.

    Computed by a kernel in C (`encoders/dan/_sums.c`) or, where it is not built, NumPy.

    Raises:
        ModelError: a row is not finite, which finite but huge weights can cause.
    """
    native = kernel("encoders.dan._sums")
    if native is None or not x.size:
        lengths = finite(np.sqrt(np.einsum("nd,nd->n", x, x)))
        factors = np.float32(1) / np.maximum(lengths, np.float32(1e-12))
        return np.multiply(x, factors[:, None], dtype=np.float32)
    rows = np.ascontiguousarray(x, np.float32)
    out = np.empty_like(rows)
    if not native.unit_rows(rows.shape[1], rows, out):
        raise ModelError(_NOT_FINITE)
    return out


def finite(values: Array) -> Array:
    """Returns `values`, which must be finite.

    Raises:
        ModelError: a value is not finite.
    """
    if not np.isfinite(values).all():
        raise ModelError(_NOT_FINITE)
    return values


Tensors = dict[str, NDArray[Any]]

LARGEST = 31
"""Largest number of a row. 127 would fit, and is read; but STS-B dev of `rejoinder-base` is the
same to .0002 with 127, 63, 31 and 15, and its table, compressed as in a wheel, takes 21.5 MB with
127 and 16.3 with 31."""


def scales_name(table: str) -> str:
    """Returns the name of the scales of a table's rows.

    >>> scales_name("encoder.table.weight")
    'encoder.table.scales'
    """
    return f"{table.removesuffix('.weight')}.scales"


def quantize_rows(
    table: NDArray[np.floating],
) -> tuple[NDArray[np.int8], NDArray[np.float32]]:
    """Returns (R, D) int8 rows and their (R,) float32 scales; `rows * scales` is near `table`.

    The scale of a row is its largest magnitude divided by `LARGEST`, so no value is off by more
    than half a scale, up to rounding in float32. A zero row has the scale 0.

    >>> rows, scales = quantize_rows(np.array([[0.5, -1.27], [0.0, 0.0]], np.float32))
    >>> rows.tolist(), scales.tolist()
    ([[12, -31], [0, 0]], [0.04096774011850357, 0.0])
    """
    largest = np.abs(table).max(axis=1, initial=0).astype(np.float32)
    scales: NDArray[np.float32] = np.divide(largest, LARGEST, dtype=np.float32)
    divisors = np.where(scales > 0, scales, np.float32(1))[:, None]
    # a scale below the least normal float32 is so coarse that a quotient may exceed it
    rounded = np.clip(np.rint(table / divisors), -LARGEST, LARGEST)
    return rounded.astype(np.int8), scales


def dequantize_rows(rows: NDArray[np.int8], scales: NDArray[np.float32]) -> NDArray[np.float32]:
    """Returns (R, D) float32, the rows times their (R,) scales; infinite where that overflows."""
    with np.errstate(over="ignore"):
        return np.multiply(rows, scales[:, None], dtype=np.float32)


def dequantized(tensors: Mapping[str, NDArray[Any]]) -> Tensors:
    """Returns the tensors of a model with float32 tables instead of int8 ones and their scales."""
    plain = dict(tensors)
    for name, tensor in tensors.items():
        if tensor.dtype == np.int8:
            plain[name] = dequantize_rows(tensor, plain.pop(scales_name(name)))
    return plain
