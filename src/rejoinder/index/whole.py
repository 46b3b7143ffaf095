"""`WholeIndex`: all texts of an index as columns, of which only what is used is read."""

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any, TypeVar, overload

import numpy as np
from numpy.typing import NDArray

from rejoinder.index.segment import Segment
from rejoinder.index.where import Conditions
from rejoinder.protocols import Embeddings

T = TypeVar("T")


class WholeIndex:
    """The N texts of segments in the order in which they were added, without the deleted ones."""

    def __init__(self, segments: Sequence[Segment], dim: int) -> None:
        """Prepares to read; `dim` is that of the embeddings, D."""
        self._segments, self._dim = segments, dim
        self._rows = [np.flatnonzero(~segment.deleted) for segment in segments]
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

    @cached_property
    def embeddings(self) -> Embeddings:
        """(N, D), in the type in which they are stored; copied unless there is one segment."""
        parts = [
            one.embeddings if len(rows) == one.entry.rows else one.embeddings[rows]
            for one, rows in zip(self._segments, self._rows, strict=True)
        ]
        if not parts:
            return np.empty((0, self._dim), np.float32)
        return parts[0] if len(parts) == 1 else np.concatenate(parts)

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
