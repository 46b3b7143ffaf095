"""`WholeIndex`: all texts of an index as columns, of which only what is used is read."""

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar, overload

import numpy as np
from numpy.typing import NDArray

from rejoinder.index.hits import Found, segments_and_rows
from rejoinder.index.nearest import search_segments
from rejoinder.index.reader import IndexReader
from rejoinder.index.segment import Segment
from rejoinder.index.where import Conditions
from rejoinder.measures import Indices
from rejoinder.protocols import Embeddings

T = TypeVar("T")
_MANY = 0.1
"""Share of wanted texts from which lists are used."""


class WholeIndex:
    """The N texts of segments in the order in which they were added, without the deleted ones."""

    def __init__(self, index: IndexReader) -> None:
        """Prepares to read the state of an index that was opened."""
        self._segments, self._dim = index.segments, index.manifest.dim
        self._rows = [np.flatnonzero(~segment.deleted) for segment in self._segments]
        self._begins = np.cumsum([0, *map(len, self._rows)])

    def __len__(self) -> int:
        return int(self._begins[-1])

    @property
    def ids(self) -> Sequence[str]:
        """The id of each text."""
        return _Column(len(self), lambda place: self._at(place, lambda one, row: one.ids[row]))

    @property
    def texts(self) -> Sequence[str]:
        """The texts."""
        return _Column(len(self), lambda place: self._at(place, lambda one, row: one.texts[row]))

    @property
    def about(self) -> Sequence[dict[str, Any]]:
        """What is known about each text."""
        return _Column(len(self), lambda place: self._at(place, Segment.about))

    def rows(self, places: Indices) -> Embeddings:
        """Returns the (K, D) float32 embeddings of the texts at (K,) places."""
        found = np.empty((len(places), self._dim), np.float32)
        numbers = np.searchsorted(self._begins, places, side="right") - 1
        for number in np.unique(numbers).tolist():
            here = numbers == number
            rows = self._rows[number][places[here] - self._begins[number]]
            found[here] = self._segments[number].embeddings[rows]
        return found

    def nearest(
        self, queries: Embeddings, most: int, wanted: NDArray[np.bool_]
    ) -> Iterator[tuple[Indices, Embeddings]]:
        """Yields for each query the places of the nearest `wanted` texts, and the cosines.

        Where many texts are wanted, and segments have lists, a near one may be missed.

        Args:
            queries: (Q, D) float32, unit or zero rows.
            most: Number of texts per query.
            wanted: (N,) bool.

        Raises:
            InputError: the index is damaged.
            MissingExtraError: a segment has lists, and FAISS is not installed.
        """
        share = np.count_nonzero(wanted) / max(len(wanted), 1)
        if share >= _MANY and any(one.lists for one in self._segments):
            deleted = [one.absent() for one in self._segments]
            # of the nearest texts, as many are wanted as of all, or less
            top_k = math.ceil(most / share)
            found = search_segments(self._segments, queries, top_k, absent=deleted)
            for one in found:
                places, scores = self._placed(one)
                kept = wanted[places]
                yield places[kept][:most], scores[kept][:most]
            return
        absent = [np.ones(one.entry.rows, np.bool_) for one in self._segments]
        for number, rows in enumerate(self._rows):
            begin = self._begins[number]
            absent[number][rows[wanted[begin : begin + len(rows)]]] = False
        found = search_segments(self._segments, queries, most, absent=absent, exact=True)
        yield from map(self._placed, found)

    def _placed(self, found: Found) -> tuple[Indices, Embeddings]:
        """Returns the places of what was found, and the scores."""
        numbers, rows = segments_and_rows(found.places)
        places = np.empty(len(rows), np.int64)
        for number in np.unique(numbers).tolist():
            here = numbers == number
            known = np.searchsorted(self._rows[number], rows[here])
            places[here] = self._begins[number] + known
        return places, np.asarray(found.scores, np.float32)

    def meeting(self, conditions: Conditions) -> NDArray[np.bool_]:
        """Returns (N,) bool: which texts meet conditions.

        Raises:
            InputError: a file was changed.
        """
        found = [
            np.zeros(len(rows), np.bool_)
            if (absent := one.absent(conditions)) is None
            else ~absent[rows]
            for one, rows in zip(self._segments, self._rows, strict=True)
        ]
        return np.concatenate([np.empty(0, np.bool_), *found])

    def _at(self, place: int, read: Callable[[Segment, int], T]) -> T:
        number = int(np.searchsorted(self._begins, place, side="right")) - 1
        return read(self._segments[number], int(self._rows[number][place - self._begins[number]]))


class _Column(Sequence[T]):
    """Values by their places from 0 on."""

    def __init__(self, count: int, read: Callable[[int], T]) -> None:
        self._count, self._read = count, read

    def __len__(self) -> int:
        return self._count

    @overload
    def __getitem__(self, place: int) -> T: ...
    @overload
    def __getitem__(self, place: slice) -> list[T]: ...
    def __getitem__(self, place: int | slice) -> T | list[T]:
        if isinstance(place, slice):
            return [self._read(each) for each in range(*place.indices(self._count))]
        if not 0 <= place < self._count:
            raise IndexError(f"{place} is not among {self._count:,}")
        return self._read(place)
