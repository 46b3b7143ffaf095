"""Exact search: the nearest rows of a matrix, a bounded piece of scores at a time."""

import numpy as np
from numpy.typing import NDArray

from rejoinder.errors import InputError

_SCORES = 1 << 22
"""Scores held at a time."""


def nearest_rows(
    queries: NDArray[np.float32], corpus: NDArray[np.float32], top_k: int
) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
    """For each query the `top_k` rows of `corpus` with the highest dot product.

    Equal scores are ordered by row, the lower first.

    Args:
        queries: (Q, D) float32.
        corpus: (N, D) float32.
        top_k: how many; at most N come back.

    Returns:
        (Q, K) int64 rows and (Q, K) float32 scores, best first.

    Raises:
        InputError: `top_k` is below 1, or widths differ.
    """
    if top_k < 1:
        raise InputError(f"top_k must be 1 or more; got {top_k}.")
    if queries.shape[1:] != corpus.shape[1:]:
        raise InputError(f"queries of shape {queries.shape} and corpus {corpus.shape} misfit.")
    count = min(top_k, len(corpus))
    rows = np.zeros((len(queries), count), np.int64)
    scores = np.full((len(queries), count), -np.inf, np.float32)
    if not count or not len(queries):
        return rows, scores
    step = max(count, _SCORES // len(queries), 1)
    for start in range(0, len(corpus), step):
        block = queries @ corpus[start : start + step].T
        here = np.broadcast_to(np.arange(start, start + block.shape[1]), block.shape)
        all_scores = block if not start else np.hstack([scores, block])
        all_rows = here if not start else np.hstack([rows, here])
        best = _best(all_scores, count)
        scores = np.take_along_axis(all_scores, best, axis=1)
        rows = np.take_along_axis(all_rows, best, axis=1)
    return rows, scores


def _best(scores: NDArray[np.float32], count: int) -> NDArray[np.int64]:
    """(Q, count) places of the highest scores, best first, the leftmost first among equals."""
    if scores.shape[1] > 4 * count:
        # only what reaches the count-th score can be among the best: the rest is not sorted
        border = np.partition(scores, -count, axis=1)[:, -count]
        places = np.empty((len(scores), count), np.int64)
        for row, least in enumerate(border):
            candidates = np.flatnonzero(scores[row] >= least)
            order = np.argsort(-scores[row, candidates], kind="stable")[:count]
            places[row] = candidates[order]
        return places
    return np.argsort(-scores, axis=1, kind="stable")[:, :count]
