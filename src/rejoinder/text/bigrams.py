"""Bigrams of known words, hashed into a fixed number of buckets by a function of our own."""

import numpy as np
from numpy.typing import NDArray

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_FIRST = np.uint64(0xBF58476D1CE4E5B9)
_SECOND = np.uint64(0x94D049BB133111EB)


def bigram_buckets(
    left: NDArray[np.int32], right: NDArray[np.int32], buckets: int
) -> NDArray[np.int32]:
    """The bucket of each pair of word ids: splitmix64 of `left * 2**32 + right`, modulo `buckets`.

    The function is part of the model format (text rules 1): it must never change.

    Args:
        left: (n,) int32, ids of the first words, >= 0.
        right: (n,) int32, ids of the words after them, >= 0.
        buckets: number of buckets, > 0.

    >>> bigram_buckets(np.array([0, 1, 2], np.int32), np.array([1, 0, 3], np.int32), 1000).tolist()
    [465, 56, 455]
    """
    mixed = (left.astype(np.uint64) << np.uint64(32)) | right.astype(np.uint64)
    mixed += _GOLDEN
    mixed = (mixed ^ (mixed >> np.uint64(30))) * _FIRST
    mixed = (mixed ^ (mixed >> np.uint64(27))) * _SECOND
    mixed ^= mixed >> np.uint64(31)
    return (mixed % np.uint64(buckets)).astype(np.int32)
