"""Unknown words and bigrams of known ones, hashed into a fixed number of buckets.

Both functions are part of the model format (text rules 1): they must never change.
"""

from zlib import crc32

import numpy as np
import polars as pl
from numpy.typing import NDArray

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_FIRST = np.uint64(0xBF58476D1CE4E5B9)
_SECOND = np.uint64(0x94D049BB133111EB)


def bigram_buckets(
    left: NDArray[np.int32], right: NDArray[np.int32], buckets: int
) -> NDArray[np.int32]:
    """The bucket of each pair of word ids: splitmix64 of `left * 2**32 + right`, modulo `buckets`.

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


def word_buckets(words: pl.Series, buckets: int) -> NDArray[np.int32]:
    """(n,) int32, the bucket of each word by its spelling: CRC-32 of its UTF-8, modulo `buckets`.

    >>> word_buckets(pl.Series(["kerrville", "Ulaanbaatar"]), 1000).tolist()
    [294, 390]
    """
    sums = (crc32(word.encode()) for word in words)
    return (np.fromiter(sums, np.uint32, len(words)) % np.uint32(buckets)).astype(np.int32)
