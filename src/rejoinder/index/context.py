"""The messages around a hit: those of its thread or, if it has none, of its channel, by time."""

from collections.abc import Sequence
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from rejoinder.index.segment import Segment

Place = tuple[int, int]
"""A segment and a row in it."""


class Conversations:
    """The conversations of an index. Each is put in order once."""

    def __init__(self, segments: Sequence[Segment]) -> None:
        self._segments = segments
        self._known: dict[tuple[str, str], NDArray[np.int64]] = {}

    def around(self, place: Place, count: int) -> tuple[list[Place], list[Place]]:
        """Returns at most `count` messages before and after one.

        Messages without a time come last, in the order in which they were added.

        Raises:
            InputError: the index is damaged.
        """
        about = self._segments[place[0]].about(place[1])
        if "thread" in about:
            places = self._places("thread", about["thread"])
        elif "source" in about:
            places = self._places("source", about["source"])
        else:
            return [], []
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
