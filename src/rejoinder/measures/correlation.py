"""Pearson's correlation, in NumPy alone. Spearman's is in `ranks`."""

import numpy as np

from rejoinder.errors import InputError
from rejoinder.measures.arrays import Floats

LARGEST = 1e70
"""Largest value that can be correlated: products of four such values don't overflow float64."""


class ScoringError(InputError):
    """A score that is not defined. `evaluate` adds the task and the encoder to the message."""


def pearson_correlation(x: Floats, y: Floats) -> float:
    """Returns Pearson's r of two (N,) arrays.

    Raises:
        ScoringError: a value is not finite or beyond 1e70, or one of the arrays is constant, so
            that r is not defined.
    """
    return float(row_correlations(checked(x)[None], checked(y)[None])[0])


def row_correlations(x: Floats, y: Floats, *, constant: float | None = None) -> Floats:
    """Returns (B,) float64: Pearson's r of each row of two (B, N) arrays of finite values.

    Where one side is constant, r is not defined, and `constant` is returned.

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
        raise ScoringError(
            "a correlation with a constant is not defined, and all values are equal; scores that "
            "differ are needed."
        )
    return products / spread  # type: ignore[no-any-return]


def checked(values: Floats) -> Floats:
    """Returns `values` as float64, all of which can be correlated.

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
