"""Search by words in several segments together: BM25 (`index.matcher`)."""

from collections import Counter
from collections.abc import Sequence
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from rejoinder.index.hits import Found, best_of, placed
from rejoinder.index.keys import keys_of
from rejoinder.index.matcher import WordQueries
from rejoinder.index.segment import BY_WORDS, Absent, Segment
from rejoinder.index.words import words_of
from rejoinder.text.ragged import offsets_of


def search_by_words(
    segments: Sequence[Segment], queries: Sequence[str], top_k: int, absent: Sequence[Absent]
) -> list[Found]:
    """Returns for each query the `top_k` texts of all segments with the highest BM25, best first.

    A word that a query has twice counts twice. Texts without a word of the query are not found, nor
    those `absent` of each segment. Deleted texts don't count in BM25; those of a filter do.

    Raises:
        InputError: the index is damaged.
    """
    for segment in segments:
        segment.refuse_cut(BY_WORDS)
    results: list[list[Found]] = [[] for _ in queries]
    matchers = [segment.matcher for segment in segments]
    texts = sum(segment.entry.count for segment in segments)
    length = sum(matcher.length for matcher in matchers)
    if not length:
        return [best_of((), top_k) for _ in queries]
    words = [Counter(words_of(query)) for query in queries]
    distinct = list(dict.fromkeys(chain.from_iterable(words)))
    keys = keys_of(distinct)
    found = [matcher.find(keys) for matcher in matchers]
    having = sum((having for _, having in found), np.zeros(len(keys), np.int64))
    idf = np.log1p((texts - having + 0.5) / (having + 0.5))
    wanted, weights, begins = _wanted(words, distinct, keys, idf)
    for number, (matcher, (places, _), hidden) in enumerate(
        zip(matchers, found, absent, strict=True)
    ):
        known = places[wanted] >= 0
        here = WordQueries(
            places[wanted[known]], weights[known], offsets_of(known.astype(np.int64))[begins]
        )
        best = matcher.best(here, length / texts, top_k, hidden)
        for parts, (rows, scores) in zip(results, best, strict=True):
            parts.append(Found(placed(number, rows), scores))
    return [best_of(parts, top_k) for parts in results]


def _wanted(
    queries: Sequence[Counter[str]],
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
    times = np.fromiter(chain.from_iterable(query.values() for query in queries), np.int64, total)
    of_query = np.repeat(np.arange(len(queries)), np.diff(begins))
    order = np.lexsort((keys[words], -idf[words], of_query))
    return words[order], (idf[words] * times)[order], begins
