"""BM25 of the texts of a segment.

The score of a text is the sum over the words of a query of idf * tf / (tf + k1 * (1 - b + b * l)),
where tf is how often the text has the word, l its length over the mean length, and idf the
logarithm of 1 + (N - n + .5) / (n + .5) for a word of n of N texts (Kamphuis et al. 2020, "Lucene
(accurate)"). N, n and the mean are those of the texts of all segments that are not deleted.

Words are scored one by one, rare ones first. Texts that only have the others are left out as soon
as these can't bring a text among the best (MaxScore, Turtle and Flood 1995).
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from rejoinder.index.words import Words

K1, B = 1.5, 0.75
_MARGIN = 1e-5
"""More than the rounding error of a score, as a share of it."""

Scores = NDArray[np.float32]
Rows = NDArray[np.int64]


class Matcher:
    """The words of a segment, without those of deleted texts."""

    def __init__(self, words: Words, absent: NDArray[np.bool_] | None) -> None:
        """Prepares a search.

        Args:
            words: The words of all texts.
            absent: (rows,) bool, the deleted texts. None: there are none.

        Raises:
            InputError: a file of words was changed.
        """
        self._words, self._absent = words, absent
        lengths = words.lengths if absent is None else words.lengths[~absent]
        self.length = int(lengths.sum(dtype=np.int64))
        """Number of words of all texts."""
        self._texts = words.texts_with(absent)
        self._mean = 0.0
        self._slack: Scores = np.empty(0, np.float32)
        self._bounds: dict[int, float] = {}

    def sums(self) -> Scores:
        """Returns an array for `best`: a zero for each text."""
        return np.zeros(len(self._words.lengths), np.float32)

    def find(self, keys: NDArray[np.uint64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Returns the (N,) int64 numbers of words and of texts that have them; -1 and 0 if none."""
        found = self._words.find(keys)
        known = found >= 0
        texts = np.zeros(len(keys), np.int64)
        texts[known] = self._texts[found[known]]
        return found, texts

    def best(
        self, words: Sequence[int], weights: Sequence[float], mean: float, top_k: int, sums: Scores
    ) -> tuple[Rows, Scores]:
        """Returns the texts with the highest scores above 0, at most `top_k`, best first.

        Args:
            words: Words of this segment, the one with the greatest weight first.
            weights: Their idf, times their number in the query.
            mean: Mean length of a text in the index.
            top_k: Number of texts, at least 1.
            sums: (rows,) float32 zeros, which they are again afterwards.
        """
        self._prepare(mean)
        rest = self._rest(words, weights)
        touched: list[NDArray[np.uint32]] = []
        least, done = 0.0, 0
        while done < len(words) and rest[done] >= least:
            rows, scores = self._scores(words[done], weights[done])
            sums[rows] += scores
            touched.append(rows)
            done += 1
            least = max(least, _least(sums[rows], top_k))
        near = [each[sums[each] >= least - rest[done]] for each in touched]
        rows = np.unique(np.concatenate([np.empty(0, np.uint32), *near]))
        scores = sums[rows]
        for each in touched:
            sums[each] = 0
        # no other text can be among the best
        for number in range(done, len(words)):
            scores = scores + self._scores_of(rows, words[number], weights[number])
            least = max(least, _least(scores, top_k))
            kept = scores >= least - rest[number + 1]
            rows, scores = rows[kept], scores[kept]
        found = np.flatnonzero((scores > 0) & (scores >= _least(scores, top_k)))
        order = found[np.lexsort((rows[found], -scores[found]))][:top_k]
        return rows[order].astype(np.int64), scores[order]

    def _rest(self, words: Sequence[int], weights: Sequence[float]) -> NDArray[np.float64]:
        """Returns for each word the most that it and the words after it add to a score, and 0."""
        most = [weight * self._bound(word) for word, weight in zip(words, weights, strict=True)]
        return np.append(np.cumsum(most[::-1])[::-1], 0.0)

    def _prepare(self, mean: float) -> None:
        if mean == self._mean:
            return
        slack = K1 * (1 - B + B / mean * self._words.lengths)
        if self._absent is not None:
            slack[self._absent] = np.inf  # their scores are 0
        self._slack, self._mean, self._bounds = slack.astype(np.float32), mean, {}

    def _bound(self, word: int) -> float:
        """Returns the highest score of a text for a word of weight 1."""
        bound = self._bounds.get(word)
        if bound is None:
            bound = float(self._scores(word, 1.0)[1].max(initial=0)) * (1 + _MARGIN)
            self._bounds[word] = bound
        return bound

    def _scores(self, word: int, weight: float) -> tuple[NDArray[np.uint32], Scores]:
        """Returns the texts with a word, and what it adds to their scores."""
        stretch = self._words.stretch(word)
        rows = self._words.rows[stretch]
        return rows, self._shares(rows, self._words.counts[stretch], weight)

    def _scores_of(self, rows: NDArray[np.uint32], word: int, weight: float) -> Scores:
        """Returns what a word adds to the scores of texts, in ascending order."""
        stretch = self._words.stretch(word)
        having = self._words.rows[stretch]
        if not len(having):
            return np.zeros(len(rows), np.float32)
        at = np.minimum(np.searchsorted(having, rows), len(having) - 1)
        scores = self._shares(rows, self._words.counts[stretch][at], weight)
        return np.where(having[at] == rows, scores, np.float32(0))

    def _shares(
        self, rows: NDArray[np.uint32], counts: NDArray[np.number], weight: float
    ) -> Scores:
        times = counts.astype(np.float32)
        return np.asarray(np.float32(weight) * (times / (times + self._slack[rows])), np.float32)


def _least(scores: Scores, top_k: int) -> float:
    """Returns a little less than the score of the text in place `top_k`; 0 if there are fewer."""
    if len(scores) < top_k:
        return 0.0
    return float(np.partition(scores, len(scores) - top_k)[len(scores) - top_k]) * (1 - _MARGIN)
