"""Hashes of ids: which are there, and where."""

import numpy as np
from numpy.typing import NDArray

from rejoinder.kernels import kernel

Hashes = NDArray[np.uint64]
SAME_HASH = "two ids have the same hash"


def among(values: Hashes, ordered: Hashes) -> NDArray[np.bool_]:
    """Returns (N,) whether each value is in `ordered`, which is in increasing order."""
    if not len(ordered):
        return np.zeros(len(values), np.bool_)
    index = np.searchsorted(ordered, values)
    index[index == len(ordered)] = 0
    found: NDArray[np.bool_] = ordered[index] == values
    return found


def places(hashes: Hashes, wanted: Hashes) -> NDArray[np.int64]:
    """Returns (N,) the index of each wanted hash among different ones, -1 where it is not there.

    >>> places(np.uint64([7, 5]), np.uint64([5, 6, 7])).tolist()
    [1, -1, 0]
    """
    native = kernel("corpus.reading._join")
    if native is not None:
        return np.frombuffer(native.places(hashes, wanted), np.int64)
    if not len(hashes):
        return np.full(len(wanted), -1)
    order = np.argsort(hashes)
    place = order[np.minimum(np.searchsorted(hashes, wanted, sorter=order), len(hashes) - 1)]
    return np.where(hashes[place] == wanted, place, -1)
