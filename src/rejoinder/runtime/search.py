"""Exact search: the nearest rows of a matrix, a bounded piece of scores at a time."""

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from rejoinder.errors import InputError
from rejoinder.runtime.inputs import whole_number

Array = NDArray[np.float32]
Rows = NDArray[np.int64]

_QUERIES = 256
"""Queries at a time, and with `_SCORES` the memory that is used."""
_SCORES = 1 << 22
"""Scores held at a time."""
_MARGIN = np.float32(1e-5)
"""More than a matrix product of unit rows in float32 can be off."""


def nearest_rows(queries: Array, corpus: Array, top_k: int) -> tuple[Rows, Array]:
    """For each query the `top_k` rows of `corpus` with the highest dot product.

    Equal scores are ordered by row, the lower first. A matrix product rounds a row differently at
    different places of a matrix, so it only chooses candidates; their scores are computed row by
    row. So equal rows have equal scores, and no result depends on what else is searched for.

    Args:
        queries: (Q, D) float32, unit or zero rows.
        corpus: (N, D) float32, unit or zero rows.
        top_k: how many; at most N come back.

    Returns:
        (Q, K) int64 rows and (Q, K) float32 scores, best first.

    Raises:
        InputError: `top_k` is no whole number of at least 1, or widths differ.
    """
    top_k = whole_number("top_k", top_k)
    if queries.shape[1:] != corpus.shape[1:]:
        raise InputError(f"queries of shape {queries.shape} and corpus {corpus.shape} misfit.")
    best = [_Best(query, min(top_k, len(corpus))) for query in queries]
    for start in range(0, len(queries), _QUERIES):
        block = queries[start : start + _QUERIES]
        step = max(_SCORES // len(block), 1)
        for low in range(0, len(corpus), step):
            piece = corpus[low : low + step]
            for found, scores in zip(best[start:], block @ piece.T, strict=False):
                found.add(scores, piece, low)
    count = min(top_k, len(corpus))
    rows = np.array([found.rows for found in best], np.int64).reshape(len(queries), count)
    return rows, np.array([found.scores for found in best], np.float32).reshape(rows.shape)


def dots(rows: Array, vector: Array) -> Array:
    """(N,) float32 dot products of `rows` (N, D), each the same whatever the other rows are.

    >>> dots(np.eye(2, dtype=np.float32), np.array([3, 4], np.float32)).tolist()
    [3.0, 4.0]
    """
    return np.asarray((rows * vector).sum(axis=1))


@dataclass(slots=True)
class _Best:
    """The best rows so far of one query."""

    query: Array
    count: int
    rows: Rows = field(default_factory=lambda: np.empty(0, np.int64))
    scores: Array = field(default_factory=lambda: np.empty(0, np.float32))

    def add(self, scores: Array, piece: Array, low: int) -> None:
        """Take in the rows of `piece`, which begin at row `low`, by their rough `scores`."""
        places = self._candidates(scores)
        rows = np.concatenate([self.rows, places + low])
        exact = np.concatenate([self.scores, dots(piece[places], self.query)])
        order = np.lexsort((rows, -exact))[: self.count]
        self.rows, self.scores = rows[order], exact[order]

    def _candidates(self, scores: Array) -> Rows:
        """Places that can be among the best, those just below by rounding included."""
        least = self.scores[-1] if len(self.scores) == self.count else np.float32(-np.inf)
        places = np.flatnonzero(scores >= least - _MARGIN)
        if len(places) > 4 * self.count:
            rough = scores[places]
            border = np.partition(rough, -self.count)[-self.count]
            places = places[rough >= border - 2 * _MARGIN]
        return places
