"""Embeddings as points of a plane: their two principal components."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rejoinder.protocols import Embeddings


@dataclass(frozen=True)
class Projection:
    """Points of a plane."""

    points: NDArray[np.float32]
    """(N, 2), centred on the origin; the first axis is that of the greatest variance."""
    shares: tuple[float, float]
    """The share of the variance of the embeddings that each axis shows, from 0 to 1."""


def project(embeddings: Embeddings) -> Projection:
    """Returns (N, D) embeddings on their first two principal components.

    Equal embeddings always give equal points: the sign of an axis is such that its greatest
    coordinate, by magnitude, is positive.

    >>> project(np.array([[0, 0], [4, 0], [0, 2], [4, 2]], np.float32)).shares
    (0.8, 0.2)
    """
    centred = embeddings.astype(np.float64)
    centred -= centred.mean(axis=0)
    rows, dim = centred.shape
    # the smaller of the two products has the same eigenvalues as the larger
    gram = centred @ centred.T if rows < dim else centred.T @ centred
    values, vectors = np.linalg.eigh(gram)
    total = float(values.sum())
    points, shares = np.zeros((rows, 2)), [0.0, 0.0]
    for axis in range(min(2, len(values))):
        value, vector = max(float(values[-1 - axis]), 0.0), vectors[:, -1 - axis]
        column = vector * value**0.5 if rows < dim else centred @ vector
        sign = -1 if column[np.argmax(np.abs(column))] < 0 else 1
        points[:, axis] = sign * column
        shares[axis] = round(value / total, 6) if total > 0 else 0.0
    return Projection(points.astype(np.float32), (shares[0], shares[1]))
