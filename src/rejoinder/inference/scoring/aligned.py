"""Aligns the words of two texts, for a batch of pairs at a time."""

import numpy as np
from numpy.typing import NDArray

from rejoinder.encoders.layers import Array

LEAST = np.float32(0.3)
"""Least cosine of words that are aligned."""


def one_to_one(cosines: Array) -> tuple[NDArray[np.int32], Array]:
    """Aligns words one to one, the nearest first, down to a cosine of `LEAST`.

    `cosines` (N, L1, L2) float32. Returns (N, L1) int32 the partner of each word of the first side,
    or -1, and (N, L1) float32 their cosines, or 0.

    >>> near = np.array([[[0.9, 0.8], [0.85, 0.4]]], np.float32)
    >>> one_to_one(near)[0].tolist()
    [[0, 1]]
    """
    count, width, height = cosines.shape
    partners = np.full((count, width), -1, np.int32)
    reached = np.zeros((count, width), np.float32)
    left, pairs = cosines.copy(), np.arange(count)
    for _ in range(min(width, height)):
        flat = left.reshape(len(pairs), -1)
        places = flat.argmax(axis=1)
        best = flat[np.arange(len(pairs)), places]
        going = best >= LEAST
        if not going.all():
            left, pairs, places, best = left[going], pairs[going], places[going], best[going]
        if not len(pairs):
            break
        one, other = np.divmod(places, height)
        partners[pairs, one], reached[pairs, one] = other, best
        here = np.arange(len(pairs))
        left[here, one, :] = -1
        left[here, :, other] = -1
    return partners, reached


def common_subsequence(same: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Returns (N,) int64 lengths of the longest common subsequences of up to 64 words.

    `same` (N, L1, L2) says which words are equal. All pairs take a step at once, on bits of 64-bit
    integers (Hyyrö 2004).

    >>> common_subsequence(np.eye(3, dtype=bool)[None, :, [1, 0, 2]]).tolist()
    [2]
    """
    bits = np.uint64(1) << np.arange(same.shape[2], dtype=np.uint64)
    matches = (same * bits).sum(axis=2, dtype=np.uint64)
    row = np.full(len(same), np.iinfo(np.uint64).max)
    for step in range(same.shape[1]):
        shared = row & matches[:, step]
        row = (row + shared) | (row - shared)
    found = ~row & bits.sum(dtype=np.uint64)
    bits_found = np.unpackbits(found.view(np.uint8)).reshape(-1, 64)
    return np.asarray(bits_found.sum(axis=1), np.int64)
