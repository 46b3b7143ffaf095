"""Hash buckets for unknown words and for bigrams of known words.

Both functions are part of the model format (text rules 1): they must never change.
"""

from collections.abc import Sequence
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from rejoinder.text.splitmix import GOLDEN_GAMMA, mix64


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
