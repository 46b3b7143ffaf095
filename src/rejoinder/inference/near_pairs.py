"""Pairs and groups of rows that are near each other, among millions of rows.

`near_pairs` finds pairs with a cosine of at least a floor. It compares all of up to 20,000 rows. If
there are more, it compares each row with the rows of its nearest cells, and misses a pair if
neither row has the other's cell among its nearest. `Survey` estimates how many it misses, from
sampled rows compared with all others. `nearest_pairs` and `communities` compare all rows.
"""

from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from rejoinder.encoders.layers import Array
from rejoinder.inference.neighbours import Numbers, Progress, by_cell, probed_cells
from rejoinder.inference.outputs import in_threads, with_bar
from rejoinder.measures import Indices
from rejoinder.protocols import Embeddings

_COMPARED = 20_000
"""Most rows for which all pairs are compared."""
_PROBED = 4
"""Nearest cells whose rows are compared with a row."""
_BLOCK = 1_024
"""Rows compared with others at a time."""
_BLOCK_SCORES = 1 << 22
_SAMPLE = 4_096
"""Sampled rows that set a lower bound for the best cosines."""
_NONE = np.empty(0, np.int32), np.empty(0, np.int32), np.empty(0, np.float32)
"""No pairs."""
LEAST = 0.5
"""The lowest floor: texts with a lower cosine have little in common."""


@dataclass(frozen=True)
class NearPairs:
    """P distinct pairs of N rows."""

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
        """Returns the pairs where a (P,) mask is true."""
        return NearPairs(self.rows, self.first[kept], self.second[kept], self.scores[kept])


@dataclass(frozen=True)
class Survey:
    """S sampled rows, each compared with all N others."""

    places: Indices
    """(S,) int64: the rows."""
    best: Array
    """(S,) float32: the cosine of each with its nearest other row."""
    pairs: NearPairs
    """Pairs with a sampled row, from `LEAST` up; a pair of two sampled rows occurs twice."""

    def count(self, floor: float) -> float:
        """Returns an estimate of the number of pairs of all rows at or above a floor."""
        found = np.count_nonzero(self.pairs.scores >= floor)
        return found / max(len(self.places), 1) * self.pairs.rows / 2

    def found(self, pairs: NearPairs, floor: float) -> "Found":
        """Returns which of the sample's pairs at or above a floor occur in `pairs`.

        Rounding may move a pair across the floor, so pairs just above it do not count.
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
        """Returns the share of pairs at or above a threshold that were found; 1 if none are."""
        wanted = self.found[self.scores >= threshold]
        return float(wanted.mean()) if len(wanted) else 1.0


def _keys(pairs: NearPairs) -> Indices:
    low, high = np.minimum(pairs.first, pairs.second), np.maximum(pairs.first, pairs.second)
    return low.astype(np.int64) * pairs.rows + high


def survey(rows: Embeddings, most: int = 1_024) -> Survey:
    """Compares at most `most` rows, spread over (N, D) float32 unit rows, with all others."""
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

    The pairs and their order do not depend on the number of `workers`.
    """
    cells = _Cells(probed_cells(rows, workers, _PROBED, _COMPARED))
    parts, done = [_NONE], 0
    compare = partial(cells.compare, rows, np.float32(floor))
    for task, part in zip(cells.tasks, in_threads(compare, cells.tasks, workers), strict=True):
        parts.append(part)
        done += len(task[1])
        progress(min(done, len(rows)), len(rows))
    return NearPairs(len(rows), *(np.concatenate(column) for column in zip(*parts, strict=True)))


class _Cells:
    """The rows of each cell, and the other rows to compare with them."""

    def __init__(self, probes: Numbers) -> None:
        """`probes` are (N, P) int32: the nearest cells of each row; the first contains it."""
        self._probes, cells = probes, int(probes.max(initial=0)) + 1
        members = by_cell(probes[:, :1], cells)
        self.tasks: list[tuple[bool, Numbers, Numbers]] = []
        """Whether the rows are guests of a cell, the rows, and the rows to compare them with."""
        for guests, lines in ((False, members), (True, by_cell(probes[:, 1:], cells))):
            self.tasks += [
                (guests, some[low : low + _BLOCK], own if guests else own[low:])
                for some, own in zip(lines, members, strict=True)
                for low in range(0, len(some), _BLOCK)
            ]

    def compare(
        self, rows: Embeddings, floor: np.float32, task: tuple[bool, Numbers, Numbers]
    ) -> tuple[Numbers, Numbers, Array]:
        """Returns the pairs found by a task: rows, other rows and cosines."""
        guests, lines, own = task
        parts = [_NONE]
        block, step = rows[lines], max(_BLOCK_SCORES // len(lines), 1)
        for begin in range(0, len(own), step):
            others = own[begin : begin + step]
            line, other, score = places_from(block @ rows[others].T, floor)
            kept = self._once(lines[line], others[other]) if guests else other + begin > line
            parts.append((lines[line[kept]], others[other[kept]], np.minimum(score[kept], 1)))
        first, second, scores = (np.concatenate(column) for column in zip(*parts, strict=True))
        return first, second, scores

    def _once(self, guests: Numbers, others: Numbers) -> NDArray[np.bool_]:
        """Returns which pairs of a guest and another row are not also found from the other side."""
        both = (self._probes[others, 1:] == self._probes[guests, :1]).any(axis=1)
        return np.asarray(~both | (guests < others))


def places_from(products: Array, floor: np.float32 | Array) -> tuple[Indices, Indices, Array]:
    """Returns the rows, columns and values of products at or above a floor, or a floor per row."""
    places = np.flatnonzero(products >= floor)
    lines, columns = np.divmod(places, products.shape[1])
    return lines, columns, products.ravel()[places]


def nearest_pairs(
    rows: Embeddings, top_k: int, max_pairs: int, workers: int = 1, *, show: bool = False
) -> list[list[float | int]]:
    """Returns `[score, i, j]` of the `max_pairs` best pairs; see `Comparisons.paraphrase_mining`.

    `rows` are (N, D) float32, unit or zero rows. `workers` is the number of threads.
    """
    best, count = _BestPairs(len(rows), max_pairs), min(top_k, len(rows) - 1)
    if count < 1:
        return []
    lows = range(0, len(rows), _BLOCK)
    found = in_threads(lambda low: _nearest_others(rows, low, count, best.least), lows, workers)
    for pairs in with_bar(found, "comparing", len(lows), show=show):
        best.add(*pairs)
    return best.scored(rows)


def _nearest_others(
    rows: Embeddings, low: int, count: int, least: np.float32
) -> tuple[Indices, Indices, Array]:
    """Returns the `count` nearest other rows of each row of the block that begins at `low`.

    The result is three flat arrays: rows, their neighbours, and scores of at least `least`.
    """
    block = rows[low : low + _BLOCK]
    border = np.full(len(block), least, np.float32)
    lines, others, scores = np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0, np.float32)
    step = _BLOCK_SCORES // _BLOCK
    for start in range(0, len(rows), step):
        products = block @ rows[start : start + step].T
        own = np.arange(max(low, start), min(low + len(block), start + products.shape[1]))
        products[own - low, own - start] = -np.inf
        sample = products[:, :_SAMPLE]
        if start == 0 and count < sample.shape[1]:
            border = np.maximum(border, np.partition(sample, -count, axis=1)[:, -count])
        line, other, score = places_from(products, border[:, None])
        lines = np.concatenate([lines, line])
        others = np.concatenate([others, other + start])
        scores = np.concatenate([scores, score])
        kept = _best_of_each(lines, scores, count, border)
        lines, others, scores = lines[kept], others[kept], scores[kept]
    return lines + low, others, scores


def _best_of_each(lines: Indices, scores: Array, count: int, border: Array) -> Indices:
    """Returns the positions of the `count` best pairs per line; raises its border to the worst."""
    order = np.argsort(lines, kind="stable")
    ends = np.searchsorted(lines[order], np.arange(len(border)), side="right").tolist()
    kept, begin = [], 0
    for line, end in enumerate(ends):
        places, begin = order[begin:end], end
        if len(places) >= count:
            best = _largest(scores[places], count)
            places, border[line] = places[best], scores[places[best]].min()
        kept.append(places)
    return np.concatenate(kept)


def _largest(scores: Array, count: int) -> Indices:
    """Returns the positions of the `count` largest scores, ascending; the first among equals.

    >>> _largest(np.array([2, 1, 3, 2, 2], np.float32), 3).tolist()
    [0, 2, 3]
    """
    least = np.partition(scores, -count)[-count]
    chosen = scores > least
    equal = np.flatnonzero(scores == least)
    chosen[equal[: count - np.count_nonzero(chosen)]] = True
    return np.flatnonzero(chosen)


class _BestPairs:
    """The best pairs found so far. Memory holds three times the wanted number."""

    def __init__(self, rows: int, wanted: int) -> None:
        self._rows, self._wanted = rows, wanted
        self._keys = np.empty(0, np.int64)
        self._scores = np.empty(0, np.float32)
        self.least = np.float32(-np.inf)
        """Pairs with a lower score are not among the best."""

    def add(self, first: Indices, second: Indices, scores: Array) -> None:
        """Adds pairs; a pair may be added twice, once from each side."""
        keys = np.minimum(first, second) * self._rows + np.maximum(first, second)
        self._keys = np.concatenate([self._keys, keys])
        self._scores = np.concatenate([self._scores, scores])
        if len(self._keys) > 3 * self._wanted:
            self._keep_best()

    def _keep_best(self) -> None:
        self._keys, places = np.unique(self._keys, return_index=True)
        self._scores = self._scores[places]
        if len(self._keys) > self._wanted:
            best = _largest(self._scores, self._wanted)
            self._keys, self._scores = self._keys[best], self._scores[best]
            self.least = self._scores.min()

    def scored(self, rows: Embeddings) -> list[list[float | int]]:
        """Returns `[score, i, j]` of the best pairs, in order.

        A matrix product can round a pair differently depending on its position. The scores are
        therefore computed again, pair by pair, so that equal pairs have equal scores.
        """
        self._keep_best()
        first, second = np.divmod(self._keys, max(self._rows, 1))
        scores = np.empty(len(first), np.float32)
        for low in range(0, len(first), _BLOCK):
            part = slice(low, low + _BLOCK)
            scores[part] = np.einsum("nd,nd->n", rows[first[part]], rows[second[part]])
        order = np.lexsort((self._keys, -scores))
        columns = (scores[order].tolist(), first[order].tolist(), second[order].tolist())
        return [[score, i, j] for score, i, j in zip(*columns, strict=True)]


def communities(
    rows: Embeddings, threshold: np.float32, least: int, *, show: bool = False
) -> list[list[int]]:
    """Returns the indices of each community; see `Comparisons.community_detection`.

    `rows` are (N, D) float32, unit or zero rows.
    """
    sizes = _neighbours(rows, threshold, show=show)
    centres = np.argsort(-sizes, kind="stable")[: np.count_nonzero(sizes >= least)]
    used = np.zeros(len(rows), np.bool_)
    found: list[list[int]] = []
    step = max(_BLOCK_SCORES // max(len(rows), 1), 1)
    while len(centres := centres[~used[centres]]):
        block, centres = centres[:step], centres[step:]
        for centre, scores in zip(block.tolist(), rows[block] @ rows.T, strict=True):
            if used[centre]:
                continue
            members = np.flatnonzero((scores >= threshold) & ~used)
            if len(members) < least:
                continue
            members = members[np.argsort(-scores[members], kind="stable")]
            found.append([centre, *members[members != centre].tolist()])
            used[found[-1]] = True
    return sorted(found, key=len, reverse=True)


def _neighbours(rows: Embeddings, threshold: np.float32, *, show: bool) -> Indices:
    """Returns (N,) counts: rows with a product of at least `threshold` with each row."""
    counts = np.zeros(len(rows), np.int64)
    starts = range(0, len(rows), _BLOCK)
    step = _BLOCK_SCORES // _BLOCK
    for low in with_bar(starts, "comparing", len(starts), show=show):
        block = rows[low : low + _BLOCK]
        for start in range(low, len(rows), step):
            near = block @ rows[start : start + step].T >= threshold
            counts[low : low + len(block)] += near.sum(axis=1, dtype=np.uint16)
            # the same pairs seen from the other side, without those inside the block
            after = max(low + len(block), start)
            others = near[:, after - start :].sum(axis=0, dtype=np.uint16)
            counts[after : after + len(others)] += others
    return counts
