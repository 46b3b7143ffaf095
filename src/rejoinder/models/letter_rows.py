"""Rows of sequences of letters, fitted so that those of a known word add up to its row."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from rejoinder.text.features import WordFeatures
from rejoinder.text.letters import letter_buckets

_FREQUENT = 500
"""So many most frequent words are left out: what they mean is not in their letters."""
_PENALTY = 3.0
_ITERATIONS = 12
_PULL = 2.0
"""How many times its own weight the rarest word's letters have in its row."""
_RARE = 0.25
"""The share of the known words that are rare: they are as unknown words would be."""
_LENGTH = 0.85
"""How long the sum of an unknown word's letters is, where a rare word's row is 1. The regression
alone makes it half as long, and an unknown word, often a name, would then count less than any
other; chosen on STS-B dev, SemRel and news (docs/measurements/languages.md)."""

Rows = NDArray[np.float32]


def with_letter_rows(features: WordFeatures, rows: Rows, buckets: int) -> tuple[WordFeatures, Rows]:
    """Returns features that read unknown words by their letters, and rows with those of letters.

    Buckets of unknown words, and rows of letters that there are already, are left out. Rows of rare
    words turn towards their letters and keep their lengths.
    """
    known = rows[: len(features.vocabulary)]
    counts = letter_counts(features.vocabulary.words, buckets)
    letters = fit_letters(counts, known)
    spelt = np.asarray(counts @ letters, np.float32)
    rare = slice(-max(1, int(_RARE * len(known))), None)
    long, short = (float(np.median(_lengths(each[rare]))) for each in (known, spelt))
    letters *= np.float32(_LENGTH * long / short if short else 1)
    features = replace(features, unknown_buckets=0, letter_buckets=buckets, arabic_letter_buckets=0)
    return features, np.concatenate([turned(known, spelt), letters])


def letter_counts(words: Sequence[str], buckets: int, arabic: int = 0) -> sp.csr_matrix:
    """Returns (W, buckets + arabic) float32 counts of the sequences of each word."""
    found = [letter_buckets(word, buckets, arabic) for word in words]
    starts = np.cumsum([0, *map(len, found)])
    ones = np.ones(starts[-1], np.float32)
    return sp.csr_matrix((ones, np.concatenate(found), starts), (len(found), buckets + arabic))


def fit_letters(counts: sp.csr_matrix, rows: Rows) -> Rows:
    """Returns (buckets, D) float32 rows of sequences of letters.

    A ridge regression, by conjugate gradients: `counts` and `rows` (W, D) are those of words, the
    most frequent first.
    """
    chosen = slice(_FREQUENT if len(rows) > 2 * _FREQUENT else 0, None)
    letters = counts[chosen]
    backward = letters.T.tocsr()
    fitted: Rows = np.zeros((letters.shape[1], rows.shape[1]), np.float32)
    residual = np.asarray(backward @ rows[chosen], np.float32)
    direction, size = residual.copy(), (residual**2).sum(axis=0)
    for _ in range(_ITERATIONS):
        product = backward @ (letters @ direction) + np.float32(_PENALTY) * direction
        step = size / np.maximum((direction * product).sum(axis=0), 1e-12)
        fitted += step * direction
        residual -= step * product
        after = (residual**2).sum(axis=0)
        direction = residual + after / np.maximum(size, 1e-12) * direction
        size = after
    return fitted


def turned(rows: Rows, spelt: Rows) -> Rows:
    """Returns (W, D) float32 rows of words, turned towards the sums of rows of their letters.

    The rarer a word, the more: training met it too seldom. By Zipf's law the r-th most frequent
    of W words was met W / r times as often as the last.
    """
    share = np.linspace(0, _PULL, len(rows), endpoint=False, dtype=np.float32)[:, None]
    moved = (rows + share * spelt) / (np.float32(1) + share)
    made: Rows = moved * (_lengths(rows) / np.maximum(_lengths(moved), np.float32(1e-12)))
    return made


def _lengths(rows: Rows) -> Rows:
    lengths: Rows = np.linalg.norm(rows, axis=1, keepdims=True)
    return lengths
