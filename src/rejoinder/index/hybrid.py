"""Search by meaning and by words together: reciprocal rank fusion (Cormack et al. 2009).

A text in place r of a list gets a share of 1 / (60 + r) from it, and the sum of both is its score.
The scores of the lists do not matter, so cosines and BM25 need no common scale.
"""

from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from rejoinder.errors import InputError
from rejoinder.index.hits import Found

Mode = Literal["semantic", "words", "hybrid"]
"""What a search compares: embeddings, words, or both."""
MODES: tuple[Mode, ...] = get_args(Mode)
K = 60
DEPTH = 50
"""Least number of texts that each list has, where the index has them. 100 find no more."""


def fuse(meaning: NDArray[np.int64], words: NDArray[np.int64], weight: float, top_k: int) -> Found:
    """Returns the best `top_k` of two lists.

    >>> found = fuse(np.array([5, 7]), np.array([7]), 0.5, 1)
    >>> found.places.tolist(), found.scores.tolist() == [0.5 / 62 + 0.5 / 61]
    ([7], True)

    Args:
        meaning: (N,) int64, places of texts by meaning, best first.
        words: (M,) int64, places of texts by words, best first.
        weight: Share of `meaning`, from 0 to 1.
        top_k: Number of texts.
    """
    lists = [(found, share) for found, share in ((meaning, weight), (words, 1 - weight)) if share]
    shares = [share / np.arange(K + 1.0, K + 1 + len(found)) for found, share in lists]
    places, of = np.unique(np.concatenate([found for found, _ in lists]), return_inverse=True)
    scores = np.asarray(np.bincount(of, np.concatenate(shares), len(places)), np.float64)
    best = np.argsort(-scores, kind="stable")[:top_k]
    return Found(places[best], scores[best])


def check_mode(mode: str, weight: float | None) -> None:
    """Checks a mode of search, and the share of meaning in a hybrid search, if it is given.

    Raises:
        InputError: one is not valid.
    """
    if mode not in MODES:
        raise InputError(f"mode must be one of {', '.join(MODES)}; got {mode!r}.")
    if weight is None:
        return
    if isinstance(weight, bool) or not isinstance(weight, int | float) or not 0 <= weight <= 1:
        raise InputError(f"weight must be a number from 0 to 1; got {weight!r}.")
