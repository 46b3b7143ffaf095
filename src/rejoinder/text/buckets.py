"""Hash buckets for unknown words and for bigrams of known words, by splitmix64 and CRC-32.

Models (text rules 1) and the shipped lists of leaks depend on them: they must never change.
"""

from collections.abc import Sequence
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

GOLDEN_GAMMA = 0x9E3779B97F4A7C15
"""The odd 64-bit integer nearest to 2**64 over the golden ratio: the increment of splitmix64."""


def mix64(values: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Returns (N,) uint64: each value mixed by the finaliser of splitmix64, a bijection.

    Steele et al. 2014.

    >>> [hex(value) for value in mix64(np.array([0, 1, GOLDEN_GAMMA], np.uint64)).tolist()]
    ['0x0', '0x5692161d100b05e5', '0xe220a8397b1dcdaf']
    """
    values = (values ^ (values >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    values = (values ^ (values >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return values ^ (values >> np.uint64(31))


def bigram_buckets(
    left: NDArray[np.int32], right: NDArray[np.int32], buckets: int
) -> NDArray[np.int32]:
    """Returns (N,) int32, the bucket of each pair of adjacent words, given as (N,) ids >= 0.

    It is splitmix64 of `left * 2**32 + right`, modulo `buckets`.

    >>> bigram_buckets(np.array([0, 1, 2], np.int32), np.array([1, 0, 3], np.int32), 1000).tolist()
    [465, 56, 455]
    """
    pairs = (left.astype(np.uint64) << np.uint64(32)) | right.astype(np.uint64)
    mixed = mix64(pairs + np.uint64(GOLDEN_GAMMA))
    return (mixed % np.uint64(buckets)).astype(np.int32)


def word_buckets(words: Sequence[str], buckets: int) -> NDArray[np.int32]:
    """Returns (N,) int32, the bucket of each word: CRC-32 of its UTF-8, modulo `buckets`.

    >>> word_buckets(["kerrville", "Ulaanbaatar"], 1000).tolist()
    [294, 390]
    """
    checksums = (crc32(word.encode()) for word in words)
    return (np.fromiter(checksums, np.uint32, len(words)) % np.uint32(buckets)).astype(np.int32)
