"""Pairs of rows with a cosine of at least a floor, among millions of rows.

Up to 20,000 rows, all are compared. Of more, each is compared with the rows of its nearest cells.
Cells are those of spherical k-means in the 128 directions in which the rows differ most; cosines
are those of whole rows. A pair is missed where neither of its rows has the other's cell among its
nearest. `Survey` tells how many are, by a sample of rows that are compared with all others.

The cosine from which two texts mean the same: from labelled pairs, or from a rate of errors.
"""

from collections.abc import Callable
from dataclasses import dataclass
from threading import Lock
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import NDArray

from rejoinder.encoders.layers import Array
from rejoinder.inference.outputs import each_batch
from rejoinder.measures import Floats, Indices
from rejoinder.protocols import Embeddings

if TYPE_CHECKING:
    from statistics import NormalDist

Numbers = NDArray[np.int32]
Progress = Callable[[int, int], None]
"""Called with the number of rows that were compared, and that of all."""

_COMPARED = 20_000
"""Rows up to which all pairs are compared."""
_CELL = 256
"""Mean number of rows of a cell."""
_PROBED = 4
"""Cells with whose rows a row is compared."""
_DIRECTIONS = 128
_SAMPLE, _ROUNDS = 32, 4
"""Rows of the sample for each cell, and rounds of k-means."""
_DIRECTED = 16_384
"""Rows whose directions are taken."""
_BLOCK = 1_024
"""Rows that are compared with others at a time."""
_BLOCK_SCORES = 1 << 22


@dataclass(frozen=True)
class NearPairs:
    """P pairs of N rows; no pair is there twice."""

    rows: int
    """N."""
    first: Numbers
    """(P,) int32: a row of each pair."""
    second: Numbers
    """(P,) int32: the other row."""
    scores: Array
    """(P,) float32: their cosine, from the floor to 1."""

    def __len__(self) -> int:
        return len(self.first)

    def where(self, kept: NDArray[np.bool_]) -> "NearPairs":
        """Returns the pairs that a (P,) mask keeps."""
        return NearPairs(self.rows, self.first[kept], self.second[kept], self.scores[kept])


@dataclass(frozen=True)
class Survey:
    """S sampled rows, each compared with all N others."""

    places: Indices
    """(S,) int64: the rows."""
    best: Array
    """(S,) float32: the cosine of each with its nearest other row."""
    pairs: NearPairs
    """The pairs of sampled rows, from `LEAST` on; a pair of two sampled rows is there twice."""

    def count(self, floor: float) -> float:
        """Returns an estimate of the number of pairs of all rows from a floor on."""
        found = np.count_nonzero(self.pairs.scores >= floor)
        return found / max(len(self.places), 1) * self.pairs.rows / 2

    def found(self, pairs: NearPairs, floor: float) -> "Found":
        """Returns which of the sample's pairs from a floor on are among others.

        Rounding may have put a pair on either side of the floor: those just above do not count.
        """
        wanted = self.pairs.where(self.pairs.scores >= floor + 1e-4)
        sampled = np.zeros(pairs.rows, np.bool_)
        sampled[self.places] = True
        near = pairs.where(sampled[pairs.first] | sampled[pairs.second])
        return Found(wanted.scores, np.isin(_keys(wanted), _keys(near)))


@dataclass(frozen=True)
class Found:
    """Pairs of sampled rows, and whether they were found."""

    scores: Array
    """(M,) float32: their cosines."""
    found: NDArray[np.bool_]
    """(M,) bool."""

    def recall(self, threshold: float) -> float:
        """Returns the share of the pairs from a threshold on that were found; 1 of none."""
        wanted = self.found[self.scores >= threshold]
        return float(wanted.mean()) if len(wanted) else 1.0


def _keys(pairs: NearPairs) -> Indices:
    low, high = np.minimum(pairs.first, pairs.second), np.maximum(pairs.first, pairs.second)
    return low.astype(np.int64) * pairs.rows + high


LEAST = 0.5
"""The least floor: cosines below are those of texts with little in common."""


def survey(rows: Embeddings, most: int = 1_024) -> Survey:
    """Compares at most `most` rows, from all over (N, D) float32 unit rows, with all others."""
    places = np.unique(np.linspace(0, len(rows) - 1, min(most, len(rows))).astype(np.int64))
    best = np.full(len(places), -1, np.float32)
    parts: list[tuple[Indices, Indices, Array]] = []
    sample, step = rows[places], _BLOCK_SCORES // max(len(places), 1)
    for low in range(0, max(len(rows), 1), step):
        products = sample @ rows[low : low + step].T
        own = np.flatnonzero((places >= low) & (places < low + products.shape[1]))
        products[own, places[own] - low] = -1
        np.maximum(best, products.max(axis=1, initial=-1), out=best)
        parts.append(places_from(products, np.float32(LEAST)))
        parts[-1][1][:] += low
    lines, others, scores = (np.concatenate(column) for column in zip(*parts, strict=True))
    first = places[lines].astype(np.int32)
    return Survey(places, best, NearPairs(len(rows), first, others.astype(np.int32), scores))


def near_pairs(
    rows: Embeddings,
    floor: float,
    workers: int = 1,
    progress: Progress = lambda _done, _all: None,
) -> NearPairs:
    """Returns the pairs of (N, D) float32 unit rows with a cosine of at least `floor`.

    The same rows give the same pairs, in the same order, whatever the number of `workers`.
    """
    cells = _Cells(probed_cells(rows, workers))
    found: list[tuple[Numbers, Numbers, Array] | None] = [None] * len(cells.tasks)
    lock, done = Lock(), 0

    def work(part: slice) -> None:
        nonlocal done
        for number in range(part.start, part.stop):
            found[number] = cells.compare(rows, number, floor)
            with lock:
                done += cells.tasks[number][3]
                progress(min(done, len(rows)), len(rows))

    each_batch(len(cells.tasks), 1, workers, work, show=False)
    kept = [one for one in found if one is not None and len(one[0])]
    if not kept:
        empty = np.empty(0, np.int32)
        return NearPairs(len(rows), empty, empty, np.empty(0, np.float32))
    return NearPairs(len(rows), *(np.concatenate(column) for column in zip(*kept, strict=True)))


class _Cells:
    """Which rows are in which cells, and which others are compared with those."""

    def __init__(self, probes: Numbers) -> None:
        """`probes` are (N, P) int32: the nearest cells of each row, the first of which it is in."""
        self._probes, cells = probes, int(probes.max(initial=0)) + 1
        self._own, self._begins = by_cell(probes[:, :1], cells)
        self._guests, self._guest_begins = by_cell(probes[:, 1:], cells)
        self.tasks: list[tuple[int, bool, int, int]] = []
        """Cells, whether guests are compared with them, the first one, and how many."""
        for guests, begins in ((False, self._begins), (True, self._guest_begins)):
            sizes = np.diff(begins).tolist()
            self.tasks += [
                (cell, guests, low, min(_BLOCK, size - low))
                for cell, size in enumerate(sizes)
                for low in range(0, size, _BLOCK)
            ]

    def compare(
        self, rows: Embeddings, number: int, floor: float
    ) -> tuple[Numbers, Numbers, Array]:
        """Returns the pairs that a task finds: rows, other rows and cosines."""
        cell, guests, low, count = self.tasks[number]
        own = self._own[self._begins[cell] : self._begins[cell + 1]]
        if guests:
            begin = self._guest_begins[cell] + low
            lines = self._guests[begin : begin + count]
        else:
            lines, own = own[low : low + count], own[low:]
        first, second, scores = [], [], []
        block, step = rows[lines], max(_BLOCK_SCORES // len(lines), 1)
        for begin in range(0, len(own), step):
            others = own[begin : begin + step]
            line, other, score = places_from(block @ rows[others].T, np.float32(floor))
            kept = self._once(lines[line], others[other]) if guests else other + begin > line
            first.append(lines[line[kept]])
            second.append(others[other[kept]])
            scores.append(np.minimum(score[kept], 1))
        return np.concatenate(first), np.concatenate(second), np.concatenate(scores)

    def _once(self, guests: Numbers, others: Numbers) -> NDArray[np.bool_]:
        """Returns which pairs of a guest and another are not found the other way round, too."""
        both = (self._probes[others, 1:] == self._probes[guests, :1]).any(axis=1)
        return np.asarray(~both | (guests < others))


def by_cell(probes: Numbers, cells: int) -> tuple[Numbers, Indices]:
    """Returns the rows by their cells, and where those of each cell begin."""
    flat = probes.ravel()
    order = np.argsort(flat, kind="stable")
    begins = np.searchsorted(flat[order], np.arange(cells + 1))
    return (order // max(probes.shape[1], 1)).astype(np.int32), begins


def places_from(products: Array, floor: np.float32 | Array) -> tuple[Indices, Indices, Array]:
    """Returns the lines, columns and values of products from a floor on, or a floor per line."""
    places = np.flatnonzero(products >= floor)
    lines, columns = np.divmod(places, products.shape[1])
    return lines, columns, products.ravel()[places]


def probed_cells(
    rows: Embeddings, workers: int, probed: int = _PROBED, compared: int = _COMPARED
) -> Numbers:
    """Returns (N, P) int32: the `probed` cells that are nearest to each row, or all of fewer.

    There is one cell of up to `compared` rows.
    """
    if len(rows) <= compared:
        return np.zeros((len(rows), 1), np.int32)
    count = 2 ** round(np.log2(len(rows) / _CELL))
    places = np.linspace(0, len(rows) - 1, min(_SAMPLE * count, len(rows))).astype(np.int64)
    low = _directed(rows, workers)
    centroids = _centroids(low[places], count, workers)
    return _nearest_cells(low, centroids, min(probed, count), workers)


def _directed(rows: Embeddings, workers: int) -> Embeddings:
    """Returns rows in the directions in which they differ most, (N, 128)."""
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
    """Returns (count, D) float32 unit rows around which the sample lies."""
    centroids = _unit(sample[np.linspace(0, len(sample) - 1, count).astype(np.int64)])
    for _ in range(_ROUNDS):
        cells = _nearest_cells(sample, centroids, 1, workers)[:, 0]
        order = np.argsort(cells, kind="stable")
        used, begins = np.unique(cells[order], return_index=True)
        centroids[used] = _unit(np.add.reduceat(sample[order], begins, axis=0))
    return centroids


def _unit(rows: Embeddings) -> Embeddings:
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    return np.asarray(rows / np.maximum(lengths, np.float32(1e-12)), np.float32)


def _nearest_cells(low: Embeddings, centroids: Embeddings, count: int, workers: int) -> Numbers:
    found = np.empty((len(low), count), np.int32)

    def work(part: slice) -> None:
        products = low[part] @ centroids.T
        lines = np.arange(len(products))
        for place in range(count):
            best = products.argmax(axis=1)
            found[part, place] = best
            products[lines, best] = -np.inf

    each_batch(len(low), _BLOCK, workers, work, show=False)
    return found


Basis = Literal["given", "examples", "false positives", "default"]

LEAST_THRESHOLD, MOST_THRESHOLD, DEFAULT_THRESHOLD = 0.85, 0.97, 0.9
"""Least and largest threshold that a rate gives, and the one where none can be estimated.

Of pairs from .85 on, 74 % of Quora's mean the same, 94 % of Twitter's and of medical questions,
96 % of PARADE's; below, texts have a topic in common."""
_QUANTILES = (0.1, 0.4)
"""Quantiles of the nearest cosines by which those of texts without a duplicate are fitted: at most
60 % of the texts may have one."""
_CROWDED, _NEAR = 0.01, 0.95
"""Where so many texts without a duplicate would have one as near as this, the fit is one of texts
with duplicates."""
_FEWEST_TEXTS = 100
_FEWEST = 1_000
"""Neighbouring pairs that are needed to say how near they are."""


@dataclass(frozen=True)
class Estimate:
    """A threshold, and what may be expected of it."""

    threshold: float
    """Cosine from which texts mean the same."""
    basis: Basis
    """Where it comes from: `given`, `examples`, `false positives`, or `default`: there are few
    texts, or most have a near one, so that chance can't be told apart."""
    by_chance: float | None = None
    """Estimated share of texts without a duplicate that have one by chance at the threshold."""
    neighbours: float | None = None
    """Share of messages that are as near to the message before them in the conversation."""
    precision: float | None = None
    """Share of the examples from the threshold on that mean the same."""
    recall: float | None = None
    """Share of the examples that mean the same which are from the threshold on."""
    f1: float | None = None


def threshold_of_examples(scores: Floats, alike: NDArray[np.bool_], least: float) -> Estimate:
    """Returns the threshold with the highest F1 on labelled pairs, between two of their scores.

    >>> alike = np.array([True, True, False])
    >>> round(threshold_of_examples(np.array([0.9, 0.8, 0.6]), alike, 0.5).threshold, 4)
    0.7

    Args:
        scores: (P,) cosines.
        alike: (P,) bool: whether the texts of a pair mean the same; some do.
        least: The least threshold.
    """
    order = np.argsort(-scores, kind="stable")
    ranked, right = scores[order], np.cumsum(alike[order])
    below = np.maximum(np.append(ranked[1:], least), least)
    f1 = np.where(ranked > below, 2 * right / (np.arange(len(order)) + 1 + right[-1]), 0)
    best = int(f1.argmax())
    threshold = round(float(ranked[best] + below[best]) / 2, 4) if f1[best] else least
    chosen = scores >= threshold
    precision, recall = (
        int((chosen & alike).sum()) / max(int(x.sum()), 1) for x in (chosen, alike)
    )
    measured = (round(value, 4) for value in (precision, recall, float(f1[best])))
    return Estimate(threshold, "examples", None, None, *measured)


def threshold_of_rate(
    nearest: Array, neighbours: Array, rate: float, most: float = MOST_THRESHOLD
) -> Estimate:
    """Returns the least threshold at which a share of at most `rate` is taken for the same.

    Both of texts without a duplicate, by chance, and of messages and those before them.

    The cosine of a text without a duplicate with its nearest other text is taken to be normal. Its
    mean and deviation follow from the lower part of the nearest cosines (an empirical null, Efron
    2004), because the upper part are texts with a duplicate.

    Args:
        nearest: (S,) cosines of sampled texts with their nearest others.
        neighbours: (M,) cosines of messages with those before them; few do not count.
        rate: Above 0, below 1.
        most: The largest threshold.
    """
    wanted = [LEAST_THRESHOLD]
    if len(neighbours) >= _FEWEST:
        wanted.append(float(np.quantile(neighbours, 1 - rate)))
    if is_crowded(nearest):
        basis: Basis = "default"
        wanted.append(DEFAULT_THRESHOLD)
    else:
        basis = "false positives"
        wanted.append(_null(nearest).inv_cdf(1 - rate))
    return expected_at(round(min(max(wanted), most), 4), basis, nearest, neighbours)


def expected_at(threshold: float, basis: Basis, nearest: Array, neighbours: Array) -> Estimate:
    """Returns what may be expected of a threshold; see `threshold_of_rate`."""
    chance = None if is_crowded(nearest) else round(1 - _null(nearest).cdf(threshold), 6)
    known = len(neighbours) >= _FEWEST
    near = round(float((neighbours >= threshold).mean()), 6) if known else None
    return Estimate(threshold, basis, chance, near)


def is_crowded(nearest: Array) -> bool:
    """Returns whether texts without a duplicate can't be told apart: they are few."""
    return len(nearest) < _FEWEST_TEXTS or _null(nearest).inv_cdf(1 - _CROWDED) > _NEAR


def _null(nearest: Array) -> "NormalDist":
    from statistics import NormalDist  # loads decimals and fractions

    low, high = np.quantile(nearest.astype(np.float64), _QUANTILES).tolist()
    unit = [NormalDist().inv_cdf(share) for share in _QUANTILES]
    deviation = (high - low) / (unit[1] - unit[0])
    return NormalDist(high - deviation * unit[1], max(deviation, 1e-6))
