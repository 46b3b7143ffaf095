"""Scores: pure functions of arrays. `*_correlation` and `precision_*` are better when higher."""

import numpy as np
from numpy.typing import NDArray
from scipy.stats import rankdata

from rejoinder.errors import InputError

Array = NDArray[np.float64]
LARGEST = 1e70
"""Of a value that is correlated: four of them, multiplied, are a number still."""


class ScoringError(InputError):
    """A score that is not defined; `evaluate` adds the task and the encoder to the message."""


def pearson_correlation(x: Array, y: Array) -> float:
    """Pearson's r of two (N,) arrays.

    Raises:
        InputError: a value is not finite or beyond 1e70, or one of the arrays is constant: r is not
            defined.
    """
    return float(_pearson(_checked(x)[None], _checked(y)[None])[0])


def spearman_correlation(x: Array, y: Array) -> float:
    """Spearman's rho of two (N,) arrays: Pearson's r of their ranks, ties at their mean rank.

    Raises:
        InputError: see `pearson_correlation`.
    """
    return pearson_correlation(rankdata(_checked(x)), rankdata(_checked(y)))


def _pearson(x: Array, y: Array) -> Array:
    """(B,) r of each row of (B, N) arrays."""
    x = x - x.mean(axis=1, keepdims=True)
    y = y - y.mean(axis=1, keepdims=True)
    spread = np.sqrt((x * x).sum(axis=1) * (y * y).sum(axis=1))
    if not spread.all():
        raise ScoringError(
            "a correlation with a constant is not defined, and all values are equal; scores that "
            "differ are needed."
        )
    return (x * y).sum(axis=1) / spread  # type: ignore[no-any-return]


def _checked(values: Array) -> Array:
    values = np.asarray(values, np.float64)
    if not np.isfinite(values).all():
        raise ScoringError(f"score {int(np.argmin(np.isfinite(values)))} is not finite.")
    large = np.abs(values) > LARGEST
    if large.any():
        row = int(np.argmax(large))
        raise ScoringError(f"score {row} is {values[row]:.3g}; at most {LARGEST:.0e} is needed.")
    return values


def cosines(first: NDArray[np.float32], second: NDArray[np.float32]) -> tuple[Array, int]:
    """(N,) float64 cosine of each row of `first` with that of `second`, (N, D) each.

    The cosine of a zero vector is 0.

    Returns:
        The cosines, within [-1, 1], and how many pairs hold a zero vector.
    """
    first, second = first.astype(np.float64), second.astype(np.float64)
    lengths = np.linalg.norm(first, axis=1) * np.linalg.norm(second, axis=1)
    products = (first * second).sum(axis=1)
    cosine = np.divide(products, lengths, out=np.zeros_like(products), where=lengths > 0)
    return np.clip(cosine, -1.0, 1.0), int((lengths == 0).sum())


def angular_similarity(cosine: Array) -> Array:
    """(N,) float64, -arccos of the cosine, in radians: 0 the same, -pi opposite.

    Yang et al. 2018, eq. (1).

    >>> angular_similarity(np.array([1.0, 0.0])).round(4).tolist()
    [-0.0, -1.5708]
    """
    return -np.arccos(cosine)


def rescaled(values: Array) -> Array:
    """(N,) float64 stretched to the scale of gold: the least is 0, the most 5.

    Cer et al. 2017, footnote 20.

    Raises:
        InputError: all values are equal.
    """
    low, high = float(values.min()), float(values.max())
    if low == high:
        raise ScoringError("scores that are all equal can't be rescaled to 0-5.")
    return 5 * (values - low) / (high - low)


def share_within_one(values: Array, gold: Array) -> float:
    """Share of the rescaled (N,) values that are at most 1.0 from gold (Cer et al. 2017, §6.6)."""
    return float((np.abs(rescaled(values) - gold) <= 1.0).mean())


def precision_at(ranks: NDArray[np.int64], n: int) -> float:
    """Share of the (N,) ranks, from 1, that are at most `n`: P@N of one right answer each."""
    return float((ranks <= n).mean())
