"""Measures of two arrays: correlations, ranks, cosines and angles."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from rejoinder.errors import InputError

Floats = NDArray[np.float64]
"""An array of float64."""
Indices = NDArray[np.int64]
"""An array of int64 that selects rows or items of another array."""

LARGEST = 1e70
"""Largest value that can be correlated: products of four such values don't overflow float64."""


class ScoringError(InputError):
    """A score that is not defined. `evaluate` adds the task and the encoder to the message."""


def pearson_correlation(x: Floats, y: Floats) -> float:
    """Returns Pearson's r of two (N,) arrays.

    Raises:
        ScoringError: a value is not finite or beyond 1e70, or an array is constant, so r is not
            defined.
    """
    return float(row_correlations(checked(x)[None], checked(y)[None])[0])


def row_correlations(x: Floats, y: Floats, *, constant: float | None = None) -> Floats:
    """Returns (B,) float64: Pearson's r of each row of two (B, N) arrays of finite values.

    For a row where one side is constant, r is not defined; the result is `constant`.

    Raises:
        ScoringError: a row is constant, and `constant` is None.
    """
    x = x - x.mean(axis=1, keepdims=True)
    y = y - y.mean(axis=1, keepdims=True)
    spread = np.sqrt((x * x).sum(axis=1) * (y * y).sum(axis=1))
    products: Floats = (x * y).sum(axis=1)
    if constant is not None:
        filled: Floats = np.full_like(products, constant)
        np.divide(products, spread, out=filled, where=spread > 0)
        return filled
    if not spread.all():
        raise ScoringError("all values are equal; a correlation with a constant is undefined.")
    return products / spread  # type: ignore[no-any-return]


def checked(values: Floats) -> Floats:
    """Returns `values` as float64, after checking that they can be correlated.

    Raises:
        ScoringError: a value is not finite or beyond 1e70.
    """
    values = np.asarray(values, np.float64)
    if not np.isfinite(values).all():
        raise ScoringError(f"score {int(np.argmin(np.isfinite(values)))} is not finite.")
    large = np.abs(values) > LARGEST
    if large.any():
        row = int(np.argmax(large))
        raise ScoringError(f"score {row} is {values[row]:.3g}; at most {LARGEST:.0e} is needed.")
    return values


def ranks(values: Floats) -> Floats:
    """Returns the (N,) ranks of values, from 1 for the smallest; ties get their mean rank.

    >>> ranks(np.array([10.0, 30.0, 10.0])).tolist()
    [1.5, 3.0, 1.5]
    """
    _, places, counts = np.unique(values, return_inverse=True, return_counts=True)
    found: Floats = mean_ranks(counts)[places]
    return found


def mean_ranks(counts: Indices) -> Floats:
    """Returns (..., M) mean ranks of M distinct values that occur `counts` times each.

    The values increase along the last axis.
    """
    shared: Floats = counts.cumsum(axis=-1) - (counts - 1) / 2
    return shared


def spearman_correlation(x: Floats, y: Floats) -> float:
    """Returns Spearman's rho of two (N,) arrays: Pearson's r of their ranks.

    Raises:
        ScoringError: see `pearson_correlation`.
    """
    return pearson_correlation(ranks(checked(x)), ranks(checked(y)))


def unit_rows(rows: NDArray[np.float32]) -> NDArray[np.float32]:
    """Returns (N, D) rows scaled to length 1; zero rows stay zero."""
    return np.asarray(rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-12))


def cosines(first: NDArray[np.float32], second: NDArray[np.float32]) -> tuple[Floats, int]:
    """Returns (N,) float64 cosines of rows of two (N, D) arrays, within [-1, 1].

    The cosine with a zero vector is 0. The second value is the number of pairs with a zero vector.
    """
    left, right = first.astype(np.float64), second.astype(np.float64)
    lengths = np.linalg.norm(left, axis=1) * np.linalg.norm(right, axis=1)
    products = (left * right).sum(axis=1)
    cosine = np.divide(products, lengths, out=np.zeros_like(products), where=lengths > 0)
    return np.clip(cosine, -1.0, 1.0), int((lengths == 0).sum())


def angular_similarity(cosine: NDArray[np.floating[Any]]) -> NDArray[Any]:
    """Returns -arccos of cosines, in radians: 0 for the same direction, -pi for the opposite.

    Yang et al. 2018, eq. (1). Shape and dtype are the same as for `cosine`.

    >>> angular_similarity(np.array([1.0, 0.0])).round(4).tolist()
    [-0.0, -1.5708]
    """
    return -np.arccos(cosine)  # type: ignore[no-any-return]
