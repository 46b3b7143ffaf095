"""Rows of sequences of letters, fitted so that those of a known word add up to its row."""

from collections.abc import Sequence

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from rejoinder.text.letters import letter_buckets

_FREQUENT = 500
"""So many most frequent words are left out: what they mean is not in their letters."""
_PENALTY = 3.0
_ITERATIONS = 12
_PULL = 2.0
"""How many times its own weight the rarest word's letters have in its row."""

Rows = NDArray[np.float32]


def letter_counts(words: Sequence[str], buckets: int) -> sp.csr_matrix:
    """Returns (W, buckets) float32 counts of the sequences of each word."""
    found = [letter_buckets(word, buckets) for word in words]
    starts = np.cumsum([0, *map(len, found)])
    ones = np.ones(starts[-1], np.float32)
    return sp.csr_matrix((ones, np.concatenate(found), starts), (len(found), buckets))


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


def pulled_to_letters(counts: sp.csr_matrix, rows: Rows, fitted: Rows) -> Rows:
    """Returns (W, D) float32 rows of words, moved towards the sums of rows of their letters.

    The rarer a word, the more: training met it too seldom. By Zipf's law the r-th most frequent
    of W words was met W / r times as often as the last.
    """
    share = np.linspace(0, _PULL, len(rows), endpoint=False, dtype=np.float32)[:, None]
    spelt = np.asarray(counts @ fitted, np.float32)
    pulled: Rows = (rows + share * spelt) / (np.float32(1) + share)
    return pulled
