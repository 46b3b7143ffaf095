"""Searches several segments together, by words (BM25, `index.matcher`) and by meaning.

The weight of a word in a query is its count times its rarity in the language: "what" and "did"
say nothing about the topic of a question.
"""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from rejoinder.index.files import keys_of
from rejoinder.index.hits import Found, best_of, is_large, placed
from rejoinder.index.lists import Lists
from rejoinder.index.matcher import WordQueries
from rejoinder.index.segment import BY_WORDS, Absent, Segment
from rejoinder.protocols import Embeddings
from rejoinder.text.languages import Stem, with_digits_in_words
from rejoinder.text.normalize import words_of
from rejoinder.text.ragged import offsets_of

FREQUENT, RARE = 50, 1_000
"""Words weigh 0 up to the first rank, and 1 from the second rank."""
Ranks = Mapping[str, int]
"""Ranks of words in a language, most frequent first; empty if unknown."""
Weights = Mapping[str, float]
"""Words of a query in the form that the index stores, with weights above 0."""


def weights_of(
    query: str, stem: Stem, ranks: Ranks, names: frozenset[str] = frozenset()
) -> Weights:
    """Returns the words of a query and their weights.

    >>> weights_of("What did Ann eat?", list, {"what": 9, "did": 20, "eat": 2_000})
    {'ann': 1.0, 'eat': 1.0}
    >>> weights_of("What did", list, {"what": 9, "did": 20})
    {'what': 1.0, 'did': 1.0}

    Args:
        query: The query.
        stem: Function that stems words as the index does.
        ranks: Ranks of words in the language, most frequent first.
        names: Words that name an author and say nothing about a text; left out.
    """
    written = words_of(with_digits_in_words(query))
    stems = stem(written)
    weights = dict.fromkeys(stems, 0.0)
    for word, one in zip(written, stems, strict=True):
        if word not in names:  # a form can be rare if its stem is not: "problems"
            weights[one] += min(rarity(ranks.get(word)), rarity(ranks.get(one)))
    found = {word: weight for word, weight in weights.items() if weight}
    return found or {word: float(times) for word, times in Counter(stems).items()}


def rarity(rank: int | None) -> float:
    """Returns the weight of a word, from 0 to 1, by its rank (None if unknown).

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
    """Searches segments by the words of queries."""

    def __init__(self, segments: Sequence[Segment], queries: Sequence[Weights]) -> None:
        """Weighs the words of queries by BM25's idf in all segments together.

        The idf ignores deleted texts, but counts texts that a filter leaves out.

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
        # rarest word of a query first, in all segments alike, so that equal texts score the same
        begins = offsets_of(np.fromiter(map(len, queries), np.int64, len(queries)))
        numbers = {word: number for number, word in enumerate(distinct)}
        wanted = np.array([numbers[word] for query in queries for word in query], np.int64)
        times = np.array([times for query in queries for times in query.values()], np.float64)
        of_query = np.repeat(np.arange(len(queries)), np.diff(begins))
        order = np.lexsort((keys[wanted], -idf[wanted], of_query))
        wanted, weights = wanted[order], (idf[wanted] * times)[order]
        sums = np.concatenate([[0.0], np.cumsum(weights)])
        self.most: NDArray[np.float64] = np.maximum(sums[begins[1:]] - sums[begins[:-1]], 1e-9)
        """(Q,) float64: upper bounds of the score of any text."""
        self.having = dict(zip(distinct, having.tolist(), strict=True))
        """The number of texts that have each word."""
        self._parts: list[WordQueries] = []
        for places, _ in found:
            known = places[wanted] >= 0
            ends = offsets_of(known.astype(np.int64))[begins]
            self._parts.append(WordQueries(places[wanted[known]], weights[known], ends))

    def best(self, top_k: int, absent: Sequence[Absent]) -> list[Found]:
        """Returns for each query the `top_k` texts with the highest BM25, best first.

        Texts without a word of the query are not found, nor the `absent` texts of each segment.
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
        """Returns BM25 of (N,) ascending rows of a segment, as shares of `most`, from 0 to 1."""
        matcher, part = self._matchers[segment], self._parts[segment]
        of_query = slice(*part.begins[query : query + 2].tolist())
        words, weights = part.words[of_query], part.weights[of_query]
        if not len(words):
            return np.zeros(len(rows))
        scores = matcher.scores(words, weights, self._mean, rows)
        return np.asarray(scores / self.most[query])


_QUERIES = 1_024
"""Queries whose candidates are in memory at a time."""


def search_segments(
    segments: Sequence[Segment],
    queries: Embeddings,
    top_k: int,
    *,
    absent: Sequence[Absent],
    exact: bool = False,
) -> list[Found]:
    """Returns for each query the `top_k` best texts of all segments, best first.

    Segments with lists are searched approximately unless `exact`: the best candidates of all such
    segments get exact scores. A segment is scanned if its lists give too few candidates.

    Args:
        segments: The segments.
        queries: (Q, D) float32.
        top_k: Number of texts per query.
        absent: Texts of each segment to leave out, including the deleted texts.
        exact: Compare each query with all texts. Lists know only deleted texts, so a search with
            other `absent` texts is exact.

    Raises:
        InputError: the index is damaged.
        MissingExtraError: FAISS is not installed, and a segment has lists.
    """
    for segment in segments:
        segment.refuse_cut()
    results: list[list[Found]] = [[] for _ in queries]
    listed = {i: segment.lists for i, segment in enumerate(segments) if segment.lists and not exact}
    for number, segment in enumerate(segments):
        if number not in listed:
            rows, scores = segment.nearest(queries, top_k, absent[number])
            for parts, *found in zip(results, placed(number, rows), scores, strict=True):
                parts.append(Found(*found))
    large = is_large(segments)
    for begin in range(0, len(queries) if listed else 0, _QUERIES):
        block = queries[begin : begin + _QUERIES]
        rough = _candidates(segments, listed, block, top_k)
        for index, (query, places) in enumerate(zip(block, rough, strict=True)):
            results[begin + index] += _scored(segments, places, query, top_k, large=large)
    return [best_of(parts, top_k) for parts in results]


def _candidates(
    segments: Sequence[Segment], listed: dict[int, Lists], queries: Embeddings, top_k: int
) -> list[tuple[NDArray[np.int64], NDArray[np.int64]]]:
    """Returns for each query the segments and rows of the best candidates of all lists."""
    counts = [lists.probing.candidates_for(top_k) for lists in listed.values()]
    # with N segments, each needs fewer candidates: the overall best are spread over all
    wanted = math.ceil(max(counts) * math.sqrt(len(counts)))
    parts = []
    for count, (number, lists) in zip(counts, listed.items(), strict=True):
        rows, scores = _present(segments[number], lists, queries, count, top_k)
        parts.append((rows, scores, np.full(rows.shape, number)))
    rows, scores, numbers = (np.concatenate(each, axis=1) for each in zip(*parts, strict=True))
    if rows.shape[1] > wanted:
        best = np.argpartition(-scores, wanted - 1, axis=1)[:, :wanted]
        rows, scores, numbers = (
            np.take_along_axis(array, best, axis=1) for array in (rows, scores, numbers)
        )
    kept = np.isfinite(scores)
    return [(numbers[q][kept[q]], rows[q][kept[q]]) for q in range(len(queries))]


def _present(
    segment: Segment, lists: Lists, queries: Embeddings, wanted: int, top_k: int
) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
    """Returns candidates of a segment; missing and deleted ones have the score -inf."""
    left = segment.entry.count
    # more, because some candidates are deleted
    count = min(-(-wanted * segment.entry.rows // max(left, 1)), segment.entry.rows)
    rows, scores = lists.candidates(queries, count)
    absent = (rows < 0) | segment.deleted[rows]
    scores = np.where(absent, np.float32(-np.inf), scores)
    short = np.flatnonzero((~absent).sum(axis=1) < min(top_k, left))
    if len(short):
        exact, values = segment.nearest(queries[short], top_k, segment.absent())
        scores[short] = -np.inf
        rows[short, : exact.shape[1]], scores[short, : exact.shape[1]] = exact, values
    return rows, scores


def _scored(
    segments: Sequence[Segment],
    places: tuple[NDArray[np.int64], NDArray[np.int64]],
    query: Embeddings,
    top_k: int,
    *,
    large: bool,
) -> list[Found]:
    """Returns the `top_k` best candidates of each segment, by exact scores."""
    numbers, rows = places
    found = []
    for number in np.flatnonzero(np.bincount(numbers)).tolist():
        here = np.sort(rows[numbers == number])
        scores = segments[number].scores(here, query, map_file=not large)
        if top_k < len(scores):
            kept = scores >= np.partition(scores, -top_k)[-top_k]
            here, scores = here[kept], scores[kept]
        best = np.argsort(-scores, kind="stable")[:top_k]
        found.append(Found(placed(number, here[best]), scores[best]))
    return found
