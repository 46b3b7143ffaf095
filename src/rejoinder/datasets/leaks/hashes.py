"""Hashes of normalised sentences and of pairs of sentences, which the shipped list consists of."""

import numpy as np
import polars as pl
from numpy.typing import NDArray

from rejoinder.text.columns import normalize
from rejoinder.text.splitmix import GOLDEN_GAMMA, mix64

_ROWS = 32_768
"""Number of sentences that are hashed at a time."""
_LONGEST = 1_024
"""Most bytes of a normalised sentence. Longer texts match nothing: no such set has longer ones."""

_POWERS = np.array([pow(GOLDEN_GAMMA, i, 2**64) for i in range(1, _LONGEST + 1)], dtype=np.uint64)


def comparable(sentences: pl.Series) -> pl.Series:
    """Returns sentences in a form that all editions of a set share.

    That is NFKC, lower case, and only letters and digits, with single spaces between words.

    >>> comparable(pl.Series(["A man's  dog.", "a man 's dog ."])).to_list()
    ['a man s dog', 'a man s dog']
    """
    return normalize(sentences).str.replace_all(r"[^\p{L}\p{M}\p{N}]+", " ").str.strip_chars(" ")


def sentence_hashes(sentences: pl.Series) -> NDArray[np.uint64]:
    """Returns (N,) uint64, a hash of the comparable form of each sentence.

    Empty and very long sentences have the hash 0. The hash is a polynomial in the UTF-8 bytes
    modulo 2**64, followed by the finaliser of splitmix64. The shipped list consists of these
    hashes: whoever changes the function has to build the list again.
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
    offsets = np.arange(len(flat)) - np.repeat(starts, kept)
    terms = (flat.astype(np.uint64) + np.uint64(1)) * _POWERS[offsets]
    sums = np.add.reduceat(terms, starts) if len(kept) else np.empty(0, np.uint64)
    hashes = np.zeros(len(texts), np.uint64)
    hashes[fit] = mix64(sums)
    return hashes


def pair_hashes(first: pl.Series, second: pl.Series) -> NDArray[np.uint64]:
    """Returns (N,) uint64, a hash of each pair of sentences that ignores their order.

    It is 0 if the hash of one of the sentences is 0.

    >>> dogs, cats = pl.Series(["A dog.", ""]), pl.Series(["a cat", "a cat"])
    >>> bool((pair_hashes(dogs, cats) == pair_hashes(cats, dogs)).all())
    True
    """
    return combined_hashes(sentence_hashes(first), sentence_hashes(second))


def combined_hashes(first: NDArray[np.uint64], second: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Returns (N,) uint64, the hashes of pairs, from the hashes of their sentences.

    The hash is the smaller one times an odd number plus the larger one, modulo 2**64, followed by
    the finaliser of splitmix64. The shipped list depends on it, as on `sentence_hashes`.
    """
    low, high = np.minimum(first, second), np.maximum(first, second)
    mixed = mix64(low * np.uint64(GOLDEN_GAMMA) + high)
    return np.where(low == 0, np.uint64(0), mixed)
