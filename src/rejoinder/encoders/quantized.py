"""Embedding tables of 8-bit whole numbers, with one scale per row."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

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
