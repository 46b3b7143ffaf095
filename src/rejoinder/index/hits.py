"""Hits: places of texts in segments with scores, and what a search returns."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rejoinder.index.context import Conversations, Place
from rejoinder.index.segment import Segment

Found = list[tuple[float, int, int]]
"""Negated scores, segments, and rows in them: sorted, the best come first."""

_RELEASED = 16
"""After the hits of so many queries, a large index is released from memory."""
_KEPT_BYTES = 1 << 31
"""An index whose embeddings have at most so many bytes stays in memory once it is read."""


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
    """Of a message of an export, as far as it is known: `author`, `time` (seconds since 1970 in
    UTC), `source` (its channel), `thread`, `answers` (id of the message it answers), `link`."""
    before: Sequence[IndexedText] = ()
    """With `context`: messages before it in its thread or, if it has none, in its channel."""
    after: Sequence[IndexedText] = ()
    """Likewise the messages after it."""


def placed(number: int, rows: NDArray[np.integer], scores: NDArray[np.float32]) -> Found:
    """Returns the places of (N,) rows of the segment with a number."""
    return [
        (-score, number, row) for row, score in zip(rows.tolist(), scores.tolist(), strict=True)
    ]


def is_large(segments: Sequence[Segment]) -> bool:
    """Returns whether segments are read row by row, and released from memory after some hits."""
    return sum(segment.embeddings.nbytes for segment in segments) > _KEPT_BYTES


def hits_of(
    segments: Sequence[Segment], results: Sequence[Found], context: int = 0
) -> list[list[IndexHit]]:
    """Returns the ids and texts of what was found, with `context` messages before and after."""
    large, hits = is_large(segments), []
    conversations = Conversations(segments)

    def text(place: Place) -> IndexedText:
        segment, row = segments[place[0]], place[1]
        return IndexedText(segment.ids[row], segment.texts[row], segment.about(row))

    def hit(negated: float, number: int, row: int) -> IndexHit:
        segment = segments[number]
        known = segment.ids[row], -negated, segment.texts[row], segment.about(row)
        if not context:
            return IndexHit(*known)
        before, after = conversations.around((number, row), context)
        return IndexHit(*known, [*map(text, before)], [*map(text, after)])

    for number, found in enumerate(results):
        hits.append([hit(*place) for place in found])
        # for each place that is read, the system maps up to 2 MB of the file
        if large and (number % _RELEASED == 0 or number == len(results) - 1):
            for segment in segments:
                segment.release()
    return hits
