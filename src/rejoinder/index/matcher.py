"""BM25 scores of the texts of a segment.

The score of a text is the sum over the words of a query of idf * tf / (tf + k1 * (1 - b + b * l)),
where tf is how often the text has the word, l its length over the mean length, and idf the
logarithm of 1 + (N - n + .5) / (n + .5) for a word in n of N texts (Kamphuis et al. 2020, "Lucene
(accurate)"). N, n and the mean count the texts of all segments that are not deleted.

A kernel in C (`_matches.c`) first sums upper bounds, one byte per word and text, and then computes
exact scores only for texts that can be among the best. Words that add little are skipped (MaxScore,
Turtle and Flood 1995).
Without the kernel, NumPy adds all words to the scores of all texts.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rejoinder.index.words import Words
from rejoinder.inference.outputs import in_threads
from rejoinder.io.files.system import default_workers
from rejoinder.registry import kernel

K1, B = 0.9, 0.2
_MARGIN = 1e-5
"""More than the rounding error of a share."""
_SLICE = 64
"""Most queries that a thread searches at a time, sharing each cached column."""
_FREQUENT = 16
"""A word is frequent if at least one text in this many has it. In a million messages, 36 words are,
and make up seven eighths of the matches of a query's words. A column takes a byte per text."""
_WHOLE, _MORE = 63, 3
"""The bound for a share of 1, and the largest count stored in the high bits of the byte."""

Scores = NDArray[np.float32]
Rows = NDArray[np.uint32]


@dataclass(frozen=True)
class WordQueries:
    """Words of queries. Query i has the words from `begins[i]` to `begins[i + 1]`."""

    words: NDArray[np.int64]
    """(total,) int64: words of a segment; the word with the greatest idf of a query comes first."""
    weights: NDArray[np.float64]
    """(total,) float64: their idf, times their count in the query."""
    begins: NDArray[np.int64]
    """(Q + 1,) int64."""

    def __len__(self) -> int:
        return len(self.begins) - 1


class _Shares:
    """Contributions of words to scores, for one mean length of the texts in the index."""

    def __init__(self, words: Words, frequent: int, mean: float) -> None:
        self.mean = mean
        self.slack: Scores = (K1 * (1 - B + B / mean * words.lengths)).astype(np.float32)
        self.bounds: NDArray[np.float64] = np.full(len(words.offsets) - 1, np.nan)
        self.bytes: NDArray[np.uint8] = np.empty(len(words.rows), np.uint8)
        """(pairs,) uint8: upper bound of a word's share in a text, and its count; filled on use."""
        self.columns: NDArray[np.uint8] = np.empty((frequent, len(words.lengths)), np.uint8)
        """(F, rows) uint8: the same for frequent words, in all texts."""


class Matcher:
    """The words of a segment, without those of deleted texts."""

    def __init__(self, words: Words, absent: NDArray[np.bool_] | None) -> None:
        """Prepares a search.

        Args:
            words: The words of all texts.
            absent: (rows,) bool, the deleted texts. None if no text is deleted.

        Raises:
            InputError: a file of words was changed.
        """
        self._words = words
        lengths = words.lengths if absent is None else words.lengths[~absent]
        self.length = int(lengths.sum(dtype=np.int64))
        """Total number of words in all texts."""
        self._texts = words.texts_with(absent)
        sizes = np.diff(words.offsets)
        self._frequent = np.flatnonzero(sizes * _FREQUENT >= max(len(words.lengths), 1))
        """(F,) int64: the frequent words, ascending."""
        self._shares: _Shares | None = None

    def find(self, keys: NDArray[np.uint64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Returns (N,) int64 word numbers and counts of texts with each; -1 and 0 if unknown."""
        found = self._words.find(keys)
        known = found >= 0
        texts = np.zeros(len(keys), np.int64)
        texts[known] = self._texts[found[known]]
        return found, texts

    def best(
        self, queries: WordQueries, mean: float, top_k: int, absent: NDArray[np.bool_] | None
    ) -> list[tuple[Rows, Scores]]:
        """Returns for each query the texts with the highest scores, best first.

        Args:
            queries: Words of this segment.
            mean: Mean length of a text in the index.
            top_k: Most texts per query, at least 1. Their scores are above 0.
            absent: (rows,) bool, texts to leave out, including the deleted texts.
        """
        shares = self._shares
        if shares is None or shares.mean != mean:  # the mean changes with the index
            shares = self._shares = _Shares(self._words, len(self._frequent), mean)
        top_k = min(top_k, len(shares.slack))
        native = kernel("index._matches")
        if native is not None:
            return self._by_kernel(native, shares, queries, top_k, absent)
        return [
            self._by_numpy(shares, queries.words[part], queries.weights[part], top_k, absent)
            for part in map(slice, queries.begins[:-1].tolist(), queries.begins[1:].tolist())
        ]

    def scores(
        self,
        words: NDArray[np.int64],
        weights: NDArray[np.float64],
        mean: float,
        rows: NDArray[np.int64],
    ) -> NDArray[np.float64]:
        """Returns the scores of (N,) rows, ascending, for words and their weights; see `best`."""
        scores = np.zeros(len(rows))
        slack = K1 * (1 - B + B / mean * self._words.lengths[rows])
        for word, weight in zip(words.tolist(), weights.tolist(), strict=True):
            stretch = self._words.stretch(word)
            having = self._words.rows[stretch]
            at = np.minimum(np.searchsorted(having, rows.astype(np.uint32)), len(having) - 1)
            times = np.where(having[at] == rows, self._words.counts[stretch][at], 0)
            scores += weight * (times / (times + slack))
        return scores

    def _by_kernel(
        self,
        native: Any,
        shares: _Shares,
        queries: WordQueries,
        top_k: int,
        absent: NDArray[np.bool_] | None,
    ) -> list[tuple[Rows, Scores]]:
        count, words = len(queries), self._words
        slots = self._slots(shares, queries.words)
        most = queries.weights * shares.bounds[queries.words]
        sums = np.concatenate([[0.0], np.cumsum(most)])
        # upper bound of the sum for a word and all later words
        rests = np.repeat(sums[queries.begins[1:]], np.diff(queries.begins)) - sums[:-1]
        step = min(_SLICE, -(-count // default_workers()))
        rows, scores = np.empty((count, top_k), np.uint32), np.empty((count, top_k), np.float32)
        sizes = np.zeros(count, np.int64)

        def search(begin: int) -> None:
            end = min(begin + step, count)
            begins = queries.begins[begin : end + 1]
            part = slice(begins[0], begins[-1])
            native.best(
                top_k, absent, words.rows, words.counts, shares.slack, words.offsets, shares.bytes,
                shares.columns, queries.words[part], slots[part], begins - begins[0],
                queries.weights[part], rests[part],
                rows[begin:end], scores[begin:end], sizes[begin:end],
            )  # fmt: skip

        for _ in in_threads(search, range(0, count, step or 1), default_workers()):
            pass
        found = zip(rows, scores, sizes.tolist(), strict=True)
        return [(of_query[:size], some[:size]) for of_query, some, size in found]

    def _by_numpy(
        self,
        shares: _Shares,
        words: NDArray[np.int64],
        weights: NDArray[np.float64],
        top_k: int,
        absent: NDArray[np.bool_] | None,
    ) -> tuple[Rows, Scores]:
        """Does the work of `best` for one query."""
        sums = np.zeros(len(shares.slack), np.float32)
        for word, weight in zip(words.tolist(), weights.tolist(), strict=True):
            rows, scores = self._scores(shares, word, weight)
            sums[rows] += scores
        if absent is not None:
            sums[absent] = 0
        least = np.partition(sums, len(sums) - top_k)[len(sums) - top_k]
        found = np.flatnonzero((sums >= least) & (sums > 0))
        order = found[np.lexsort((found, -sums[found]))][:top_k]
        return order.astype(np.uint32), sums[order]

    def _slots(self, shares: _Shares, words: NDArray[np.int64]) -> NDArray[np.int64]:
        """Returns (total,) int64: columns of words, -1 for rare words. Fills their bytes first."""
        slots = np.searchsorted(self._frequent, words)
        slots[np.append(self._frequent, -1)[slots] != words] = -1
        new, first = np.unique(words, return_index=True)
        for word, slot in zip(new.tolist(), slots[first].tolist(), strict=True):
            if np.isnan(shares.bounds[word]):
                self._write(shares, word, slot)
        return slots

    def _write(self, shares: _Shares, word: int, slot: int) -> None:
        """Writes the bytes of a word, and its column if it has one."""
        rows, added = self._scores(shares, word, 1.0)
        stretch = self._words.stretch(word)
        counts = np.minimum(self._words.counts[stretch], _MORE)
        shares.bytes[stretch] = np.ceil(_WHOLE * added) + (_WHOLE + 1) * counts
        if slot >= 0:
            column = np.zeros(shares.columns.shape[1], np.uint8)
            column[rows] = shares.bytes[stretch]
            shares.columns[slot] = column  # at once: another thread may read it
        # last: a thread that sees it uses the other arrays
        shares.bounds[word] = added.max(initial=0) * (1 + _MARGIN)

    def _scores(self, shares: _Shares, word: int, weight: float) -> tuple[Rows, Scores]:
        """Returns the texts with a word, and the word's share of their scores."""
        stretch = self._words.stretch(word)
        rows = self._words.rows[stretch]
        times = self._words.counts[stretch].astype(np.float32)
        try:
            slack = shares.slack[rows]
        except IndexError:  # the files changed after the check
            raise self._words.damaged("words.rows") from None
        return rows, np.asarray(np.float32(weight) * (times / (times + slack)), np.float32)
