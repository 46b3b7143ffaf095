"""Finds the nearest rows of each row, among all rows or in the nearest cells.

`nearest_rows` compares queries with all rows, in blocks of bounded memory. If there are many rows,
`nearest_others` compares each row with the rows in its nearest cells, and misses few neighbours.
Cells come from spherical k-means in the 128 directions in which the rows differ most.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from rejoinder.encoders.layers import Array
from rejoinder.errors import InputError
from rejoinder.inference.inputs import whole_number
from rejoinder.inference.outputs import each_batch, in_threads
from rejoinder.measures import Indices, unit_rows
from rejoinder.protocols import Embeddings

_QUERY_BLOCK = 256
"""Queries per block. With `_BLOCK_SCORES` it bounds the memory used."""
_BLOCK_SCORES = 1 << 22
"""Scores held in memory at a time."""
_MARGIN = np.float32(1e-5)
"""More than the rounding error of a float32 matrix product of unit rows."""
Numbers = NDArray[np.int32]
Progress = Callable[[int, int], None]
"""Called with the number of compared rows, and the number of all rows."""
_CELL = 256
"""Mean number of rows of a cell."""
_DIRECTIONS = 128
_SAMPLE, _ROUNDS = 32, 4
"""Sampled rows per cell, and rounds of k-means."""
_DIRECTED = 16_384
"""Sampled rows from which the directions are computed."""
_ASSIGNED = 1_024
"""Rows assigned to cells at a time."""
_PROBED = 12
"""Nearest cells to search: of 100,000 messages, they hold 79 % of the 15 nearest of each."""
_COMPARED = 4_096
"""Most rows for which all are compared."""
_LINES, _CELL_SCORES = 8_192, 1 << 21
"""Rows whose neighbours are chosen at a time, and cosines that each thread holds at a time."""


class NotFiniteError(InputError):
    """A score is not finite: queries or rows hold NaN, infinities or huge numbers."""


def nearest_rows(
    queries: Array, corpus: Array, top_k: int, *, absent: NDArray[np.bool_] | None = None
) -> tuple[Indices, Array]:
    """Finds for each query the `top_k` rows of `corpus` with the highest dot product.

    Equal scores are ordered by index, lowest first. A matrix product can round a row differently
    depending on its position in the matrix, so it only selects candidates; their scores are then
    computed row by row. Equal rows therefore have equal scores, and no result depends on the other
    queries.

    Args:
        queries: (Q, D) float32, unit or zero rows.
        corpus: (N, D) float32 or float16, unit or zero rows.
        top_k: Number of rows per query, at least 1.
        absent: (N,) bool, rows to leave out.

    Returns:
        (Q, K) int64 row indices and (Q, K) float32 scores, best first. K is `top_k`, or the number
        of rows that can be found if these are fewer.

    Raises:
        InputError: `top_k` is not a whole number of at least 1, or the dimensions differ.
        NotFiniteError: a score is not finite.
    """
    top_k = whole_number("top_k", top_k)
    if queries.shape[1:] != corpus.shape[1:]:
        raise InputError(
            f"queries of shape {queries.shape} and a corpus of shape {corpus.shape} differ in "
            "dimension."
        )
    present = len(corpus) - (0 if absent is None else int(absent.sum()))
    count = min(top_k, present)
    best = [_Best(query, count) for query in queries] if count else []
    # if most rows are absent, the others are copied
    rows = np.flatnonzero(~absent) if absent is not None and 2 * present < len(corpus) else None
    with np.errstate(over="ignore", invalid="ignore"):  # such scores are refused
        for start in range(0, len(queries), _QUERY_BLOCK):
            query_block = queries[start : start + _QUERY_BLOCK]
            step = max(_BLOCK_SCORES // len(query_block), 1)
            for low in range(0, len(corpus) if rows is None else present, step):
                part = slice(low, low + step)
                given = corpus[part] if rows is None else corpus.take(rows[part], axis=0)
                block = np.asarray(given, np.float32)
                products = query_block @ block.T
                # the sum is finite only if every score is, and needs no array of truth values
                if not math.isfinite(products.sum()):
                    raise NotFiniteError(
                        "the queries or the rows to search hold a number that is not finite."
                    )
                if absent is not None and rows is None:
                    products[:, absent[part]] = -np.inf
                for query_best, scores in zip(best[start:], products, strict=False):
                    query_best.add(scores, block, low)
    shape = (len(queries), count)
    indices = np.array([each.indices for each in best], np.int64).reshape(shape)
    scores = np.array([each.scores for each in best], np.float32).reshape(shape)
    return indices if rows is None else rows[indices], scores


def dots(rows: Array, vector: Array) -> Array:
    """Returns the (N,) float32 dot products of `rows` (N, D) with `vector` (D,).

    Unlike in a matrix product, each result is the same whatever the other rows are.

    >>> dots(np.eye(2, dtype=np.float32), np.array([3, 4], np.float32)).tolist()
    [3.0, 4.0]
    """
    return np.asarray(np.einsum("ij,j->i", rows, vector))  # a sixth of the time of a sum


@dataclass(slots=True)
class _Best:
    """The best rows found so far for one query."""

    query: Array
    count: int
    indices: Indices = field(default_factory=lambda: np.empty(0, np.int64))
    scores: Array = field(default_factory=lambda: np.empty(0, np.float32))

    def add(self, scores: Array, block: Array, low: int) -> None:
        """Adds rows of a block (B, D) of the corpus that begins at row `low`.

        `scores` (B,) come from a matrix product.
        """
        candidates = self._candidates(scores)
        indices = np.concatenate([self.indices, candidates + low])
        exact = np.concatenate([self.scores, dots(block.take(candidates, axis=0), self.query)])
        order = np.lexsort((indices, -exact))[: self.count]
        self.indices, self.scores = indices[order], exact[order]

    def _candidates(self, scores: Array) -> Indices:
        """Returns indices of rows that can be among the best, allowing for rounding."""
        # absent rows score -inf, less than the least finite number
        least = self.scores[-1] if len(self.scores) == self.count else np.finfo(np.float32).min
        indices = np.flatnonzero(scores >= least - _MARGIN)
        if len(indices) > 4 * self.count:
            rough = scores[indices]
            border = np.partition(rough, -self.count)[-self.count]
            indices = indices[rough >= border - 2 * _MARGIN]
        return indices


def nearest_others(
    rows: Embeddings,
    count: int,
    workers: int = 1,
    progress: Progress = lambda _done, _all: None,
) -> tuple[Indices, Array]:
    """Returns the `count` nearest other rows of each row; approximate above 4,096 rows.

    The result does not depend on the number of `workers`.

    Args:
        rows: (N, D) float32, unit rows.
        count: Number of other rows; all of them if there are fewer.
        workers: Number of threads.
        progress: Called with the number of compared rows, and the number of all rows.

    Returns:
        (N, count) int64 rows in no order, -1 where fewer were found, and float32 cosines.
    """
    count = min(count, len(rows) - 1)
    probes = probed_cells(rows, workers, _PROBED, _COMPARED)
    cells, probed = int(probes.max(initial=0)) + 1, probes.shape[1]
    members, visitors = by_cell(probes[:, :1], cells), by_cell(probes, cells)
    found = np.full((len(rows), probed, count), -1, np.int32)
    cosines = np.full(found.shape, -np.inf, np.float32)

    def work(cell: int) -> int:
        others = members[cell]
        step = max(_CELL_SCORES // max(len(others), 1), 1)
        for low in range(0, len(visitors[cell]) if len(others) else 0, step):
            lines = visitors[cell][low : low + step]
            best, scores = _best_in_cell(rows, lines, others, count)
            places = (probes[lines] == cell).argmax(axis=1)
            at = lines, places, slice(best.shape[1])
            found[at], cosines[at] = best, scores
        return len(others)

    done = 0
    for compared in in_threads(work, range(cells), workers):
        done += compared
        progress(done, len(rows))
    nearest = np.empty((len(rows), count), np.int64)
    scores = np.empty((len(rows), count), np.float32)
    for low in range(0, len(rows), _LINES):
        span = slice(low, low + _LINES)
        near, cosine = (array[span].reshape(-1, probed * count) for array in (found, cosines))
        best = np.argpartition(cosine, -count, axis=1)[:, -count:]
        nearest[span] = np.take_along_axis(near, best, axis=1)
        scores[span] = np.take_along_axis(cosine, best, axis=1)
    return nearest, scores


def _best_in_cell(
    rows: Embeddings, lines: Numbers, others: Numbers, count: int
) -> tuple[NDArray[np.int32], Array]:
    """Returns the nearest of `others` (ascending rows) for each of `lines`, excluding itself."""
    products = rows[lines] @ rows[others].T
    own = np.minimum(np.searchsorted(others, lines), len(others) - 1)
    same = np.flatnonzero(others[own] == lines)
    products[same, own[same]] = -np.inf
    count = min(count, len(others))
    best = np.argpartition(products, -count, axis=1)[:, -count:]
    scores = np.take_along_axis(products, best, axis=1)
    return np.where(np.isfinite(scores), others[best], -1), scores


def by_cell(probes: Numbers, cells: int) -> list[Numbers]:
    """Returns the rows of each cell, ascending."""
    flat = probes.ravel()
    order = np.argsort(flat, kind="stable")
    begins = np.searchsorted(flat[order], np.arange(1, cells))
    return np.split((order // max(probes.shape[1], 1)).astype(np.int32), begins)


def probed_cells(rows: Embeddings, workers: int, probed: int, compared: int) -> Numbers:
    """Returns (N, P) int32: the `probed` cells nearest to each row, or all if there are fewer.

    Up to `compared` rows form a single cell.
    """
    if len(rows) <= compared:
        return np.zeros((len(rows), 1), np.int32)
    count = 2 ** round(np.log2(len(rows) / _CELL))
    places = np.linspace(0, len(rows) - 1, min(_SAMPLE * count, len(rows))).astype(np.int64)
    low = _directed(rows, workers)
    centroids = _centroids(low[places], count, workers)
    return _nearest_cells(low, centroids, min(probed, count), workers)


def _directed(rows: Embeddings, workers: int) -> Embeddings:
    """Projects rows on the directions in which they differ most, (N, 128)."""
    if rows.shape[1] <= _DIRECTIONS:
        return rows
    places = np.linspace(0, len(rows) - 1, min(_DIRECTED, len(rows))).astype(np.int64)
    sample = rows[places]
    basis = np.linalg.eigh(sample.T @ sample)[1][:, -_DIRECTIONS:]
    low = np.empty((len(rows), _DIRECTIONS), np.float32)

    def work(part: slice) -> None:
        low[part] = rows[part] @ basis

    each_batch(len(rows), 8_192, workers, work, show=False)
    return low


def _centroids(sample: Embeddings, count: int, workers: int) -> Embeddings:
    """Returns (count, D) float32 unit rows: the k-means centroids of the sample."""
    centroids = unit_rows(sample[np.linspace(0, len(sample) - 1, count).astype(np.int64)])
    for _ in range(_ROUNDS):
        cells = _nearest_cells(sample, centroids, 1, workers)[:, 0]
        order = np.argsort(cells, kind="stable")
        used, begins = np.unique(cells[order], return_index=True)
        centroids[used] = unit_rows(np.add.reduceat(sample[order], begins, axis=0))
    return centroids


def _nearest_cells(low: Embeddings, centroids: Embeddings, count: int, workers: int) -> Numbers:
    found = np.empty((len(low), count), np.int32)

    def work(part: slice) -> None:
        products = low[part] @ centroids.T
        lines = np.arange(len(products))
        for place in range(count):
            best = products.argmax(axis=1)
            found[part, place] = best
            products[lines, best] = -np.inf

    each_batch(len(low), _ASSIGNED, workers, work, show=False)
    return found
