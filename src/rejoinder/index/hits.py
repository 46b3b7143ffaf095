"""Hits: the places and scores of texts that a search found, and the results it returns.

A hit can come with the messages around it, from its thread or, if it has none, its channel.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from rejoinder.index.segment import Segment

Place = tuple[int, int]
"""The number of a segment, and a row in it."""


class Conversations:
    """The conversations of an index. Each is sorted once."""

    def __init__(self, segments: Sequence[Segment]) -> None:
        self._segments = segments
        self._known: dict[tuple[str, str], NDArray[np.int64]] = {}

    def around(self, place: Place, count: int) -> tuple[list[Place], list[Place]]:
        """Returns up to `count` messages before a message, and up to `count` after it.

        Messages without a time come last, in the order in which they were added.

        Raises:
            InputError: the index is damaged.
        """
        about = self._segments[place[0]].about(place[1])
        name: Literal["thread", "source"] = "thread" if "thread" in about else "source"
        if name not in about:
            return [], []
        places = self._places(name, about[name])
        at = int(np.flatnonzero((places == place).all(axis=1))[0])
        before, after = places[max(at - count, 0) : at], places[at + 1 : at + 1 + count]
        return [(n, row) for n, row in before.tolist()], [(n, row) for n, row in after.tolist()]

    def _places(self, name: Literal["thread", "source"], value: str) -> NDArray[np.int64]:
        """Returns the (N, 2) segments and rows of a thread or a channel, in order."""
        if (name, value) in self._known:
            return self._known[name, value]
        places, times = [np.empty((0, 2), np.int64)], [np.empty(0)]
        for number, segment in enumerate(self._segments):
            if segment.fields is None:
                continue
            rows = segment.fields.conversation(name, value)
            rows = rows[~segment.deleted[rows]]
            places.append(np.column_stack((np.full(len(rows), number), rows)))
            times.append(segment.fields.times[rows])
        order = np.argsort(np.concatenate(times), kind="stable")  # NaN comes last
        self._known[name, value] = np.concatenate(places)[order]
        return self._known[name, value]


ROW_BITS = 32
_RELEASED = 16
"""Number of queries after whose hits a large index is released from memory."""
_KEPT_BYTES = 1 << 31
"""Most bytes of embeddings for which an index stays in memory once it is read."""


@dataclass(frozen=True, slots=True)
class Found:
    """The K texts found for a query, best first; equal scores in the order of addition."""

    places: NDArray[np.int64]
    """(K,) int64, see `placed`."""
    scores: NDArray[np.floating]
    """(K,)"""


@dataclass(frozen=True)
class IndexedText:
    """A text of an index, next to a hit."""

    id: str
    text: str
    about: Mapping[str, Any] = field(default_factory=dict)
    """As in `IndexHit`."""


@dataclass(frozen=True)
class IndexHit:
    """A result of `Index.search`."""

    id: str
    score: float
    """Cosine with the query; BM25 in a search by words; the fused score in a hybrid search."""
    text: str
    about: Mapping[str, Any] = field(default_factory=dict)
    """For a message of an export, where known: `author`, `time` (seconds since 1970 in UTC),
    `source` (its channel), `thread`, `answers` (id of the message it answers, with the `confidence`
    from .7 up, if the export does not state it), `link`."""
    before: Sequence[IndexedText] = ()
    """With `context`: messages before it in its thread or, if it has none, in its channel."""
    after: Sequence[IndexedText] = ()
    """Likewise the messages after it."""


def linked_with(name: str, messages: Sequence[IndexedText]) -> set[str]:
    """Returns the ids of all messages connected with a message by reply links, itself included.

    It follows the links of `messages` both ways, from an answer to its message and back, any number
    of steps.
    """
    linked, known = {name}, 0
    while len(linked) > known:
        known = len(linked)
        for one in messages:
            link = {one.id, one.about.get("answers", one.id)}
            if not link.isdisjoint(linked):
                linked |= link
    return linked


def placed(number: int, rows: NDArray[np.integer]) -> NDArray[np.int64]:
    """Returns the places of (N,) rows of segment `number`; places sort in the order of addition."""
    return np.asarray((number << ROW_BITS) + rows.astype(np.int64))


def segments_and_rows(
    places: NDArray[np.int64],
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Returns the numbers of the segments of (N,) places, and the rows in them."""
    return places >> ROW_BITS, places & ((1 << ROW_BITS) - 1)


def best_of(parts: Sequence[Found], top_k: int) -> Found:
    """Returns the `top_k` best of the texts found in different segments."""
    if len(parts) == 1:
        return Found(parts[0].places[:top_k], parts[0].scores[:top_k])
    places = np.concatenate([np.empty(0, np.int64), *(part.places for part in parts)])
    scores = np.concatenate([np.empty(0, np.float32), *(part.scores for part in parts)])
    order = np.lexsort((places, -scores))[:top_k]
    return Found(places[order], scores[order])


def unscored(places: Sequence[Place]) -> Found:
    """Returns the texts at some places, with score 0."""
    found = [(number << ROW_BITS) + row for number, row in places]
    return Found(np.array(found, np.int64), np.zeros(len(found)))


def is_large(segments: Sequence[Segment]) -> bool:
    """Returns whether segments are so large that they are read row by row, then released."""
    return sum(segment.embeddings.nbytes for segment in segments) > _KEPT_BYTES


def hits_of(
    segments: Sequence[Segment], results: Sequence[Found], context: int = 0
) -> list[list[IndexHit]]:
    """Returns the ids and texts of found texts, with `context` messages before and after."""
    large, hits = is_large(segments), []
    conversations = Conversations(segments)

    def text(place: Place) -> IndexedText:
        segment, row = segments[place[0]], place[1]
        return IndexedText(segment.ids[row], segment.texts[row], segment.about(row))

    def hit(number: int, row: int, score: float) -> IndexHit:
        segment = segments[number]
        known = segment.ids[row], score, segment.texts[row], segment.about(row)
        if not context:
            return IndexHit(*known)
        before, after = conversations.around((number, row), context)
        return IndexHit(*known, [*map(text, before)], [*map(text, after)])

    for number, found in enumerate(results):
        numbers, rows = segments_and_rows(found.places)
        hits.append(list(map(hit, numbers.tolist(), rows.tolist(), found.scores.tolist())))
        # the system maps up to 2 MB of the file for each place that is read
        if large and (number % _RELEASED == 0 or number == len(results) - 1):
            for segment in segments:
                segment.release()
    return hits
