"""How much meaning counts in a hybrid search, learnt from pairs."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from rejoinder.corpus.shards import Pairs
from rejoinder.index.hits import IndexHit
from rejoinder.index.hybrid import DEPTH, fuse
from rejoinder.index.indexing import Index
from rejoinder.inference.encoder import SentenceEncoder

WEIGHTS = (0.5, 0.4, 0.6, 0.3, 0.7, 0.2, 0.8, 0.1, 0.9, 0.0, 1.0)
"""The shares of meaning that are tried, up to either alone. Of equally good ones the first wins."""
_QUERIES = 1_000
_Places = NDArray[np.int64]


@dataclass(frozen=True)
class SearchWeight:
    """What finds the replies of the dev split, and how well.

    Scores are MRR: the mean of 1 / place of the reply among 100 hits, 0 where it is not there.
    """

    weight: float
    """The share of meaning by which both find most."""
    meaning: float
    words: float
    both: float
    queries: int


def search_weight(encoder: SentenceEncoder, pairs: Pairs, folder: Path) -> SearchWeight:
    """Returns the weight by which hybrid searches for the replies of the dev split find most.

    All different replies are indexed in `folder`, as responses. A query is a message; there are at
    most 1,000, from all over the split.
    """
    rows = pairs.frame("dev", ["input", "response"])
    replies = rows["response"].unique(maintain_order=True)
    numbers = {reply: number for number, reply in enumerate(replies)}
    asked = rows.gather_every(-(-len(rows) // _QUERIES))
    right = [numbers[reply] for reply in asked["response"]]
    index = Index.create(folder, [(str(n), reply) for reply, n in numbers.items()], encoder,
                         response=True, recall=1)  # fmt: skip
    queries = asked["input"].to_list()
    meaning = [_places(hits) for hits in index.search(queries, DEPTH)]
    words = [_places(hits) for hits in index.search(queries, DEPTH, mode="words")]
    found = {weight: _mrr(_fused(meaning, words, weight), right) for weight in WEIGHTS}
    best = max(WEIGHTS, key=lambda weight: found[weight])
    return SearchWeight(best, _mrr(meaning, right), _mrr(words, right), found[best], len(queries))


def _places(hits: Sequence[IndexHit]) -> _Places:
    return np.array([int(hit.id) for hit in hits], np.int64)


def _fused(meaning: Sequence[_Places], words: Sequence[_Places], weight: float) -> list[_Places]:
    both = zip(meaning, words, strict=True)
    return [fuse(first, second, weight, DEPTH).places for first, second in both]


def _mrr(found: Sequence[_Places], right: Sequence[int]) -> float:
    """Returns the mean of 1 / place of what is right.

    >>> _mrr([np.array([4, 7]), np.array([5])], [7, 6])
    0.25
    """
    ranks = [
        sum(1 / (1 + place) for place in np.flatnonzero(places == one).tolist())
        for places, one in zip(found, right, strict=True)
    ]
    return float(np.mean(ranks))
