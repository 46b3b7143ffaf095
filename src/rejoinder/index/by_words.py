"""Search by words in several segments together: BM25 (`index.matcher`)."""

from collections import Counter
from collections.abc import Sequence
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from rejoinder.index.hits import Found, placed
from rejoinder.index.keys import keys_of
from rejoinder.index.segment import BY_WORDS, Segment
from rejoinder.text.normalize import tokens_of


def search_by_words(segments: Sequence[Segment], queries: Sequence[str], top_k: int) -> list[Found]:
    """Returns for each query the `top_k` texts of all segments with the highest BM25, best first.

    A word that a query has twice counts twice. Texts without a word of the query are not found.

    Raises:
        InputError: the index is damaged.
    """
    for segment in segments:
        segment.refuse_cut(BY_WORDS)
    results: list[Found] = [[] for _ in queries]
    matchers = [segment.matcher for segment in segments]
    texts = sum(segment.entry.count for segment in segments)
    length = sum(matcher.length for matcher in matchers)
    if not length:
        return results
    words = [Counter(tokens_of(query)) for query in queries]
    distinct = list(dict.fromkeys(chain.from_iterable(words)))
    keys = keys_of(distinct)
    found = [matcher.find(keys) for matcher in matchers]
    having = sum((having for _, having in found), np.zeros(len(keys), np.int64))
    idf = np.log1p((texts - having + 0.5) / (having + 0.5))
    wanted = _wanted(words, distinct, keys, idf)
    for number, (matcher, (places, _)) in enumerate(zip(matchers, found, strict=True)):
        sums = matcher.sums()
        for result, (at, weights) in zip(results, wanted, strict=True):
            known = places[at] >= 0
            here, shares = places[at[known]].tolist(), weights[known].tolist()
            result += placed(number, *matcher.best(here, shares, length / texts, top_k, sums))
    return [sorted(result)[:top_k] for result in results]


def _wanted(
    queries: Sequence[Counter[str]],
    distinct: Sequence[str],
    keys: NDArray[np.uint64],
    idf: NDArray[np.float64],
) -> list[tuple[NDArray[np.int64], NDArray[np.float64]]]:
    """Returns for each query the places of its words in `distinct`, and weights, greatest first.

    All segments add them in this order, so that equal texts have equal scores.
    """
    numbers = {word: number for number, word in enumerate(distinct)}
    wanted = []
    for words in queries:
        at = np.fromiter(map(numbers.__getitem__, words), np.int64, len(words))
        weights = idf[at] * np.fromiter(words.values(), np.float64, len(words))
        order = np.lexsort((keys[at], -weights))
        wanted.append((at[order], weights[order]))
    return wanted
