"""Hashes of normalised sentences, and of pairs of them: the shipped list is made of these."""

import numpy as np
import polars as pl
from numpy.typing import NDArray

from rejoinder.formats.splitmix import GOLDEN_GAMMA, mix64
from rejoinder.text.normalize import normalize

_ROWS = 32_768
_LONGEST = 1_024
"""Bytes of a normalised sentence; no evaluation sentence is longer, so longer texts are none."""

_POWERS = np.array([pow(GOLDEN_GAMMA, i, 2**64) for i in range(1, _LONGEST + 1)], dtype=np.uint64)


def comparable(sentences: pl.Series) -> pl.Series:
    """Sentences as all forms of a set have them: NFKC, lower case, letters and digits alone.

    >>> comparable(pl.Series(["A man's  dog.", "a man 's dog ."])).to_list()
    ['a man s dog', 'a man s dog']
    """
    return normalize(sentences).str.replace_all(r"[^\p{L}\p{M}\p{N}]+", " ").str.strip_chars(" ")


def sentence_hashes(sentences: pl.Series) -> NDArray[np.uint64]:
    """(N,) uint64, a hash of each sentence in its comparable form; 0 for empty and very long ones.

    A polynomial in the UTF-8 bytes modulo 2**64, then the finaliser of splitmix64. The shipped
    list is made of these hashes: the function must not change without it.
    """
    parts = [
        _hashes(comparable(sentences.slice(start, _ROWS)))
        for start in range(0, len(sentences), _ROWS)
    ]
    return np.concatenate(parts) if parts else np.empty(0, np.uint64)


def _hashes(texts: pl.Series) -> NDArray[np.uint64]:
    lengths = texts.str.len_bytes().to_numpy().astype(np.int64)
    fit = (lengths > 0) & (lengths <= _LONGEST)
    flat = np.frombuffer("".join(texts.filter(pl.Series(fit))).encode(), np.uint8)
    kept = lengths[fit]
    starts = np.cumsum(kept) - kept
    places = np.arange(len(flat)) - np.repeat(starts, kept)
    terms = (flat.astype(np.uint64) + np.uint64(1)) * _POWERS[places]
    sums = np.add.reduceat(terms, starts) if len(kept) else np.empty(0, np.uint64)
    hashes = np.zeros(len(texts), np.uint64)
    hashes[fit] = mix64(sums)
    return hashes


def pair_hashes(first: pl.Series, second: pl.Series) -> NDArray[np.uint64]:
    """(N,) uint64, a hash of each two sentences in either order; 0 where one of theirs is 0.

    See `joined`.

    >>> one, other = pl.Series(["A dog.", ""]), pl.Series(["a cat", "a cat"])
    >>> bool((pair_hashes(one, other) == pair_hashes(other, one)).all())
    True
    """
    return joined(sentence_hashes(first), sentence_hashes(second))


def joined(first: NDArray[np.uint64], second: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """(N,) uint64, the hashes of pairs from those of their sentences.

    The smaller one times an odd number plus the larger, modulo 2**64, then the finaliser of
    splitmix64. As with `sentence_hashes`, the shipped list depends on it.
    """
    low, high = np.minimum(first, second), np.maximum(first, second)
    mixed = mix64(low * np.uint64(GOLDEN_GAMMA) + high)
    return np.where(low == 0, np.uint64(0), mixed)
