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

Rows = NDArray[np.float32]


def fit_letters(words: Sequence[str], rows: Rows, buckets: int) -> Rows:
    """Returns (buckets, D) float32 rows of sequences of letters.

    A ridge regression, by conjugate gradients: `words` are the most frequent first, and `rows`
    (W, D) are theirs.
    """
    chosen = slice(_FREQUENT if len(words) > 2 * _FREQUENT else 0, None)
    found = [letter_buckets(word, buckets) for word in words[chosen]]
    starts = np.cumsum([0, *map(len, found)])
    letters = sp.csr_matrix(
        (np.ones(starts[-1], np.float32), np.concatenate(found), starts), (len(found), buckets)
    )
    backward = letters.T.tocsr()
    fitted = np.zeros((buckets, rows.shape[1]), np.float32)
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
