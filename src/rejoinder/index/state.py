"""`State`: an index as one change left it. It stays whole while others change the index.

Search by words in several segments together: BM25 (`index.matcher`).

Search by meaning and by words together: reciprocal rank fusion (Cormack et al. 2009).

A text in place r of a list gets a share of 1 / (60 + r) from it, and the sum of both is its score.
The scores of the lists do not matter, so cosines and BM25 need no common scale.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from rejoinder.errors import ConditionError, InputError
from rejoinder.index.fields import refuse_unmet
from rejoinder.index.hits import Found, IndexHit, Place, best_of, hits_of, placed
from rejoinder.index.manifest import FILE, REMEDY, Manifest, SegmentFacts, keys_of, read_manifest
from rejoinder.index.matcher import WordQueries
from rejoinder.index.nearest import search_segments
from rejoinder.index.segment import BY_WORDS, Absent, Segment, places_of
from rejoinder.index.where import Where, conditions_of
from rejoinder.index.words import words_of
from rejoinder.inference.inputs import whole_number
from rejoinder.io.files.claims import Stamp, read_one_state, stamp_of
from rejoinder.io.files.hashed import check_file
from rejoinder.io.files.storage import lacks_memory
from rejoinder.protocols import Embeddings
from rejoinder.text.ragged import offsets_of


@dataclass(frozen=True)
class State:
    """The manifest of an index, and its segments, which are mapped into memory."""

    stamp: Stamp | None
    """Of the manifest's file."""
    manifest: Manifest
    segments: Sequence[Segment]

    def __len__(self) -> int:
        return sum(entry.count for entry in self.manifest.segments)

    def places(self, ids: Sequence[str]) -> list[Place | None]:
        """Returns for each id its segment and row; None if the index lacks it."""
        return places_of(self.segments, ids)

    def texts(self, places: Sequence[Place]) -> list[str]:
        """Returns the texts at some places."""
        return [self.segments[part].texts[row] for part, row in places]

    def embeddings(self, places: Sequence[Place]) -> Embeddings:
        """Returns the (N, D) float32 embeddings of the texts at some places."""
        rows = [self.segments[part].embeddings[[row]] for part, row in places]
        return np.concatenate([np.empty((0, self.manifest.dim)), *rows]).astype(np.float32)

    def nearest(
        self, queries: Embeddings, top_k: int, where: Where | None, *, exact: bool
    ) -> list[Found]:
        """Returns for each query the nearest texts by cosine; see `IndexReader.nearest`."""
        absent = self._absent(where)
        exact = exact or bool(where)
        return search_segments(self.segments, queries, top_k, absent=absent, exact=exact)

    def matching(self, queries: Sequence[str], top_k: int, where: Where | None) -> list[Found]:
        """Returns for each query the texts with the highest BM25; see `IndexReader.matching`."""
        return search_by_words(self.segments, queries, top_k, self._absent(where))

    def having(self, words: Sequence[str]) -> NDArray[np.int64]:
        """Returns the number of texts that have each word, (N,) int64."""
        keys = keys_of(words)
        counts = np.zeros(len(keys), np.int64)
        for segment in self.segments:
            segment.refuse_cut(BY_WORDS)
            counts += segment.matcher.find(keys)[1]
        return counts

    def hits(self, found: Sequence[Found], context: int) -> list[list[IndexHit]]:
        """Returns what was found, with messages around it.

        Raises:
            InputError: `context` is not a whole number.
            ConditionError: the texts are not messages.
        """
        if context != 0:
            context = whole_number("context", context)
            if len(self) and all(segment.fields is None for segment in self.segments):
                raise ConditionError(
                    "context: the texts of the index are not messages of an export, and have no "
                    "others around them."
                )
        return hits_of(self.segments, found, context)

    def _absent(self, where: Where | None) -> list[Absent]:
        """Returns the texts of each segment that a search does not find.

        Raises:
            InputError: a condition is not valid, or no text has its field or one of its values.
        """
        if not where:
            return [segment.absent() for segment in self.segments]
        conditions = conditions_of(where)
        fields = [segment.fields for segment in self.segments if segment.fields is not None]
        refuse_unmet(conditions, fields)
        return [segment.absent(conditions) for segment in self.segments]


def opened(folder: Path, before: State | None = None) -> State:
    """Opens the latest state of an index; another process may be changing it.

    Segments that are also in the state `before` are not opened again.

    Raises:
        InputError: the folder is not an index, or a file is missing or has another size.
    """
    return read_one_state(folder / FILE, partial(_read, folder, before))


def _read(folder: Path, before: State | None) -> State:
    known = {} if before is None else {one.entry.name: one for one in before.segments}
    try:
        stamp = stamp_of(folder / FILE)
        manifest = read_manifest(folder)
        segments = [
            same
            if (same := known.get(entry.name)) is not None and same.entry == entry
            else Segment(folder, entry, manifest)
            for entry in manifest.segments
        ]
    except OSError as error:  # another process just removed it
        if lacks_memory(error):
            raise
        raise InputError(f"{folder} can't be read: {error.strerror or error}.") from None
    return State(stamp, manifest, segments)


def check_segments(folder: Path, entries: Iterable[SegmentFacts]) -> None:
    """Compares every file of segments with its SHA-256 from when it was written.

    Raises:
        InputError: a file has changed.
    """
    for entry in entries:
        for name, facts in entry.files.items():
            check_file(folder / entry.name / name, facts, InputError, REMEDY)


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


Mode = Literal["semantic", "words", "hybrid"]
"""What a search compares: embeddings, words, or both."""
MODES: tuple[Mode, ...] = get_args(Mode)
K = 60
DEPTH = 50
"""Least number of texts that each list has, where the index has them. 100 find no more."""


def fuse(meaning: NDArray[np.int64], words: NDArray[np.int64], weight: float, top_k: int) -> Found:
    """Returns the best `top_k` of two lists.

    >>> found = fuse(np.array([5, 7]), np.array([7]), 0.5, 1)
    >>> found.places.tolist(), found.scores.tolist() == [0.5 / 62 + 0.5 / 61]
    ([7], True)

    Args:
        meaning: (N,) int64, places of texts by meaning, best first.
        words: (M,) int64, places of texts by words, best first.
        weight: Share of `meaning`, from 0 to 1.
        top_k: Number of texts.
    """
    lists = [(found, share) for found, share in ((meaning, weight), (words, 1 - weight)) if share]
    shares = [share / np.arange(K + 1.0, K + 1 + len(found)) for found, share in lists]
    places, of = np.unique(np.concatenate([found for found, _ in lists]), return_inverse=True)
    scores = np.asarray(np.bincount(of, np.concatenate(shares), len(places)), np.float64)
    best = np.argsort(-scores, kind="stable")[:top_k]
    return Found(places[best], scores[best])


def check_mode(mode: str, weight: float | None) -> None:
    """Checks a mode of search, and the share of meaning in a hybrid search, if it is given.

    Raises:
        InputError: one is not valid.
    """
    if mode not in MODES:
        raise InputError(f"mode must be one of {', '.join(MODES)}; got {mode!r}.")
    if weight is None:
        return
    if isinstance(weight, bool) or not isinstance(weight, int | float) or not 0 <= weight <= 1:
        raise InputError(f"weight must be a number from 0 to 1; got {weight!r}.")
