"""Cosine and angular similarity of rows of vectors."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from rejoinder.measures.arrays import Floats


def cosines(first: NDArray[np.float32], second: NDArray[np.float32]) -> tuple[Floats, int]:
    """Returns (N,) float64 cosines of rows of two (N, D) arrays, within [-1, 1].

    The cosine with a zero vector is 0. The second value is the number of pairs with such a vector.
    """
    left, right = first.astype(np.float64), second.astype(np.float64)
    lengths = np.linalg.norm(left, axis=1) * np.linalg.norm(right, axis=1)
    products = (left * right).sum(axis=1)
    cosine = np.divide(products, lengths, out=np.zeros_like(products), where=lengths > 0)
    return np.clip(cosine, -1.0, 1.0), int((lengths == 0).sum())


def angular_similarity(cosine: NDArray[np.floating[Any]]) -> NDArray[Any]:
    """Returns -arccos of cosines, in radians: 0 for the same direction, -pi for the opposite.

    Yang et al. 2018, eq. (1). The shape and dtype are those of `cosine`.

    >>> angular_similarity(np.array([1.0, 0.0])).round(4).tolist()
    [-0.0, -1.5708]
    """
    return -np.arccos(cosine)  # type: ignore[no-any-return]
