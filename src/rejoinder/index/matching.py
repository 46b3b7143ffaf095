"""Search by words in several segments together: BM25 (`index.matcher`).

Words of a query weigh as much as their number, times how rare they are in the language: "what" and
"did" ask, and say nothing of what is asked for.
"""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from rejoinder.index.hits import Found, best_of, placed
from rejoinder.index.manifest import keys_of
from rejoinder.index.matcher import WordQueries
from rejoinder.index.segment import BY_WORDS, Absent, Segment
from rejoinder.text.languages import Stem, with_digits_in_words
from rejoinder.text.normalize import words_of
from rejoinder.text.ragged import offsets_of

FREQUENT, RARE = 50, 1_000
"""Words of a rank up to the first weigh nothing, and from the second on all."""
Ranks = Mapping[str, int]
"""Ranks of words in a language, the most frequent first; empty: they are not known."""
Weights = Mapping[str, float]
"""Words of a query as they stand in an index, and how much each weighs, above 0."""


def weights_of(
    query: str, stem: Stem, ranks: Ranks, names: frozenset[str] = frozenset()
) -> Weights:
    """Returns the words of a query and their weights.

    >>> weights_of("What did Ann eat?", list, {"what": 9, "did": 20, "eat": 2_000})
    {'ann': 1.0, 'eat': 1.0}
    >>> weights_of("What did", list, {"what": 9, "did": 20})
    {'what': 1.0, 'did': 1.0}

    Args:
        query: What is searched for.
        stem: How the words of the index are made.
        ranks: Ranks of words in the language, the most frequent first.
        names: Words that name an author, and say nothing of a text.
    """
    written = words_of(with_digits_in_words(query))
    stems = stem(written)
    weights = dict.fromkeys(stems, 0.0)
    for word, one in zip(written, stems, strict=True):
        if word not in names:  # a form is rare where the word is not: "problems"
            weights[one] += min(rarity(ranks.get(word)), rarity(ranks.get(one)))
    found = {word: weight for word, weight in weights.items() if weight}
    return found or {word: float(times) for word, times in Counter(stems).items()}


def rarity(rank: int | None) -> float:
    """Returns what a word weighs, from 0 to 1, by its rank; None: it is not known.

    >>> rarity(10), rarity(5_000), rarity(None)
    (0.0, 1.0, 1.0)
    """
    if rank is None or rank >= RARE:
        return 1.0
    if rank <= FREQUENT:
        return 0.0
    share = math.log((rank + 1) / FREQUENT) / math.log(RARE / FREQUENT)
    return round(min(share, 1.0), 3)


class WordSearch:
    """Queries to segments, by words."""

    def __init__(self, segments: Sequence[Segment], queries: Sequence[Weights]) -> None:
        """Weighs the words of queries by BM25's idf in all segments together.

        Deleted texts don't count in it; those of a filter do.

        Raises:
            InputError: the index is damaged.
        """
        for segment in segments:
            segment.refuse_cut(BY_WORDS)
        self._count = len(queries)
        self._matchers = [segment.matcher for segment in segments]
        texts = sum(segment.entry.count for segment in segments)
        length = sum(matcher.length for matcher in self._matchers)
        self._mean = length / max(texts, 1)
        distinct = list(dict.fromkeys(chain.from_iterable(queries)))
        keys = keys_of(distinct)
        found = [matcher.find(keys) for matcher in self._matchers]
        having = sum((having for _, having in found), np.zeros(len(keys), np.int64))
        idf = np.log1p((texts - having + 0.5) / (having + 0.5))
        wanted, weights, begins = _wanted(queries, distinct, keys, idf)
        sums = np.concatenate([[0.0], np.cumsum(weights)])
        self.most: NDArray[np.float64] = np.maximum(sums[begins[1:]] - sums[begins[:-1]], 1e-9)
        """(Q,) float64: more than any text's score."""
        self.having = dict(zip(distinct, having.tolist(), strict=True))
        """The number of texts that have each word."""
        self._parts: list[WordQueries] = []
        for places, _ in found:
            known = places[wanted] >= 0
            ends = offsets_of(known.astype(np.int64))[begins]
            self._parts.append(WordQueries(places[wanted[known]], weights[known], ends))

    def best(self, top_k: int, absent: Sequence[Absent]) -> list[Found]:
        """Returns for each query the `top_k` texts with the highest BM25, best first.

        Texts without a word of the query are not found, nor those `absent` of each segment.
        """
        results: list[list[Found]] = [[] for _ in range(self._count)]
        for number, (matcher, part, hidden) in enumerate(
            zip(self._matchers, self._parts, absent, strict=True)
        ):
            if matcher.length:
                best = matcher.best(part, self._mean, top_k, hidden)
                for parts, (rows, scores) in zip(results, best, strict=True):
                    parts.append(Found(placed(number, rows), scores))
        return [best_of(parts, top_k) for parts in results]

    def shares(self, query: int, segment: int, rows: NDArray[np.int64]) -> NDArray[np.float64]:
        """Returns the BM25 of (N,) rows of a segment, ascending, as shares of `most`, 0 to 1."""
        matcher, part = self._matchers[segment], self._parts[segment]
        of_query = slice(*part.begins[query : query + 2].tolist())
        words, weights = part.words[of_query], part.weights[of_query]
        if not len(words):
            return np.zeros(len(rows))
        scores = matcher.scores(words, weights, self._mean, rows)
        return np.asarray(scores / self.most[query])


def _wanted(
    queries: Sequence[Weights],
    distinct: Sequence[str],
    keys: NDArray[np.uint64],
    idf: NDArray[np.float64],
) -> tuple[NDArray[np.int64], NDArray[np.float64], NDArray[np.int64]]:
    """Returns the words of all queries, places in `distinct`, their weights, and where each begins.

    The rarest word of a query is first. All segments add them in this order, so that equal texts
    have equal scores.
    """
    numbers = {word: number for number, word in enumerate(distinct)}
    begins = offsets_of(np.fromiter(map(len, queries), np.int64, len(queries)))
    total = int(begins[-1])
    flat = chain.from_iterable(queries)
    words = np.fromiter(map(numbers.__getitem__, flat), np.int64, total)
    times = chain.from_iterable(query.values() for query in queries)
    weights = idf[words] * np.fromiter(times, np.float64, total)
    of_query = np.repeat(np.arange(len(queries)), np.diff(begins))
    order = np.lexsort((keys[words], -idf[words], of_query))
    return words[order], weights[order], begins
