"""Paraphrase mining and communities: which texts of a collection say the same."""

from threading import Lock

import numpy as np

from rejoinder.encoders.layers import Array
from rejoinder.errors import InputError
from rejoinder.inference.inputs import Sentences, flag, whole_number
from rejoinder.inference.near_pairs import places_from
from rejoinder.inference.outputs import each_batch, with_bar
from rejoinder.inference.search import Comparisons
from rejoinder.io.files.storage import default_workers
from rejoinder.measures import Indices
from rejoinder.protocols import Embeddings

_BLOCK = 512
"""Rows that are compared with others at a time."""
_BLOCK_SCORES = 1 << 21
"""Scores that each thread holds in memory at a time."""
_SAMPLE = 4_096
"""Rows that tell how near the nearest ones must at least be."""


class Mining(Comparisons):
    """Paraphrases and communities among the texts of a collection."""

    _threads: int | None
    """Number of CPU cores; None means all that the process may use."""

    def paraphrase_mining(
        self,
        sentences: Sentences | Embeddings,
        *,
        top_k: int = 100,
        max_pairs: int = 500_000,
        show_progress_bar: bool = False,
    ) -> list[list[float | int]]:
        """Finds the pairs of sentences with the highest cosine.

        They are the pairs of `sentence_transformers.util.paraphrase_mining`. All sentences are
        compared. Memory is bounded by the embeddings and the pairs.

        Args:
            sentences: N sentences, or their embeddings.
            top_k: A pair counts if one of its sentences is among the `top_k` nearest of the other.
            max_pairs: Number of pairs that are returned, the best ones.
            show_progress_bar: Whether to draw a progress bar on standard error.

        Returns:
            `[score, i, j]` of each pair: the cosine and two indices, i < j. The best come first,
            those with equal scores by index.

        Raises:
            InputError: an argument is not valid, or embeddings are not finite or of another
                dimension.
        """
        top_k, most = whole_number("top_k", top_k), whole_number("max_pairs", max_pairs)
        show = flag("show_progress_bar", show_progress_bar)
        cores = self._threads or default_workers()
        return nearest_pairs(self._vectors(sentences), top_k, most, cores, show=show)

    def community_detection(
        self,
        sentences: Sentences | Embeddings,
        *,
        threshold: float = 0.75,
        min_community_size: int = 10,
        show_progress_bar: bool = False,
    ) -> list[list[int]]:
        """Finds groups of sentences around a central one, which each is similar to.

        They are those of `sentence_transformers.util.community_detection`. No sentence is in two of
        them. Memory is bounded by the embeddings.

        Args:
            sentences: N sentences, or their embeddings.
            threshold: The least cosine with the central sentence, from -1 to 1.
            min_community_size: The least number of sentences of a community, at least 1.
            show_progress_bar: Whether to draw a progress bar on standard error.

        Returns:
            The indices of each community, the largest first. In each, the central sentence comes
            first, then the others by falling cosine with it.

        Raises:
            InputError: an argument is not valid, or embeddings are not finite or of another
                dimension.
        """
        least = whole_number("min_community_size", min_community_size)
        show = flag("show_progress_bar", show_progress_bar)
        number = isinstance(threshold, int | float | np.floating)
        if isinstance(threshold, bool) or not number or not -1 <= threshold <= 1:
            raise InputError(f"threshold must be a cosine, from -1 to 1; got {threshold!r}.")
        return communities(self._vectors(sentences), np.float32(threshold), least, show=show)


def nearest_pairs(
    rows: Embeddings, top_k: int, max_pairs: int, workers: int = 1, *, show: bool = False
) -> list[list[float | int]]:
    """Returns `[score, i, j]` of the `max_pairs` best pairs; see `Mining.paraphrase_mining`.

    `rows` are (N, D) float32, unit or zero rows. `workers` is the number of threads.
    """
    best, count, lock = _BestPairs(len(rows), max_pairs), min(top_k, len(rows) - 1), Lock()
    if count < 1:
        return []

    def work(part: slice) -> None:
        found = _nearest_others(rows, part, count, best.least)
        with lock:
            best.add(*found)

    each_batch(len(rows), _BLOCK, workers, work, show=show, what="comparing")
    return best.scored(rows)


def _nearest_others(
    rows: Embeddings, part: slice, count: int, least: np.float32
) -> tuple[Indices, Indices, Array]:
    """Returns the `count` nearest other rows of each row of a part.

    They are pairs in three flat arrays: rows, their neighbours, and scores, all at least `least`.
    """
    block, low = rows[part], part.start
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
    """Returns where the `count` best pairs of each line are, and raises its border to the last."""
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
    """Returns where the `count` largest scores are, in order of place; of equal ones the first.

    >>> _largest(np.array([2, 1, 3, 2, 2], np.float32), 3).tolist()
    [0, 2, 3]
    """
    least = np.partition(scores, -count)[-count]
    chosen = scores > least
    equal = np.flatnonzero(scores == least)
    chosen[equal[: count - np.count_nonzero(chosen)]] = True
    return np.flatnonzero(chosen)


class _BestPairs:
    """The best pairs found so far. Memory holds three times as many as are wanted."""

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

        A matrix product can round a pair differently depending on its position, so the scores are
        computed again, pair by pair: equal pairs have equal scores.
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
    """Returns the indices of each community; see `Mining.community_detection`.

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
    """Returns (N,) how many rows have a product of at least `threshold` with each row."""
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
