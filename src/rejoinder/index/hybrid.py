"""Search by meaning and by words together: reciprocal rank fusion (Cormack et al. 2009).

A text in place r of a list gets a share of 1 / (60 + r) from it, and the sum of both is its score.
The scores of the lists do not matter, so cosines and BM25 need no common scale.
"""

from collections import defaultdict
from typing import Literal, get_args

from rejoinder.errors import InputError
from rejoinder.index.hits import Found

Mode = Literal["semantic", "words", "hybrid"]
"""What a search compares: embeddings, words, or both."""
MODES: tuple[Mode, ...] = get_args(Mode)
K = 60
DEPTH = 100
"""Least number of texts that each list has, where the index has them."""


def fuse(meaning: Found, words: Found, weight: float, top_k: int) -> Found:
    """Returns the best `top_k` of two lists.

    >>> fuse([(-0.9, 0, 5), (-0.8, 0, 7)], [(-12.0, 0, 7)], 0.5, 1) == [
    ...     (-(0.5 / 62 + 0.5 / 61), 0, 7)
    ... ]
    True

    Args:
        meaning: Texts by meaning, best first.
        words: Texts by words, best first.
        weight: Share of `meaning`, from 0 to 1.
        top_k: Number of texts.
    """
    scores: defaultdict[tuple[int, int], float] = defaultdict(float)
    for found, share in ((meaning, weight), (words, 1 - weight)):
        for place, (_, number, row) in enumerate(found if share else (), 1):
            scores[number, row] += share / (K + place)
    return sorted((-score, *place) for place, score in scores.items())[:top_k]


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
