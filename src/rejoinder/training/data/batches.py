"""Batches of two-sided rows, which streams hand to the model, made ahead of their use."""

from collections import deque
from collections.abc import Callable, Generator, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from rejoinder.errors import InputError
from rejoinder.io.formats.text_lines import Count, Record
from rejoinder.text.ragged import Ragged


class Position(Record, frozen=True):
    """Position of a stream: its next row is row `offset` of window `window` of epoch `epoch`."""

    epoch: Count = 0
    window: Count = 0
    offset: Count = 0


@dataclass(frozen=True, slots=True)
class Part:
    """One of `count` nearly equal parts of every batch: that of one worker."""

    index: int = 0
    count: int = 1

    def of(self, size: int) -> slice:
        """Returns the part of a sequence; all parts together are the whole, in order.

        >>> [Part(index, 3).of(8) for index in range(3)]
        [slice(0, 2, None), slice(2, 5, None), slice(5, 8, None)]
        """
        return slice(size * self.index // self.count, size * (self.index + 1) // self.count)

    def check(self, rows: int, what: str) -> None:
        """Checks that each part has two rows or more, one to rank and one to rank it by.

        Raises:
            InputError: it would not.
        """
        if self.count > 1 and rows < 2 * self.count:
            raise InputError(
                f"batches of {what} have {rows} rows, which {self.count} workers can't divide; "
                f"allowed: from {2 * self.count} rows. Raise batch_size, or start fewer workers."
            )

    def seed(self) -> tuple[int, ...]:
        """Returns numbers that tell apart the random draws of parts; none for a whole."""
        return () if self.count == 1 else (self.index, self.count)


WHOLE = Part()


@dataclass(frozen=True, slots=True)
class Batch:
    """A part of B rows as token ids, b of them: left sides, then right sides, then others.

    The sides are inputs and responses, premises and hypotheses, or two sentences of a group.
    Sentences from 2b on are further candidates that belong to no row.
    """

    sentences: Ragged
    """Those of `part`."""
    left_keys: NDArray[np.int64]
    """(B,) int64, equal for equal texts of left sides; of all parts."""
    right_keys: NDArray[np.int64]
    """(B,) int64, equal for equal texts of right sides; of all parts."""
    after: Position
    """Position of the stream once this batch is used."""
    labels: NDArray[np.int64] | None = None
    """(B,) int64, classes of the rows of all parts, if a classifier learns from them."""
    part: Part = WHOLE


BatchSize = Callable[[], int]
"""Returns the number of rows of the next batch, which changes with the phase."""


class Stream(Protocol):
    """The extension point for data: an endless sequence of batches from any position on."""

    name: str
    rows: int
    """Number of rows in an epoch."""

    def batches(self, start: Position, size: BatchSize) -> Iterator[Batch]:
        """Yields batches without end from `start`."""
        ...


def drop_ids(batch: Ragged, share: float, generator: np.random.Generator) -> Ragged:
    """Returns `batch` without a random `share` of its ids; a sentence may lose all of them."""
    return batch.only(generator.random(len(batch.ids), dtype=np.float32) >= share)


def duplicates(left_keys: NDArray[np.int64], right_keys: NDArray[np.int64]) -> NDArray[np.int64]:
    """Returns (2, M) int64, index pairs (i, j) where row j's right text also fits row i's left.

    That is the case where the right texts of i and j are equal, or their left texts are: the
    response of j then answers input i as well. Ascending in i, without the diagonal.

    Args:
        left_keys: (B,) int64, equal where left texts are equal.
        right_keys: (B,) int64, equal where right texts are equal.

    >>> duplicates(np.array([1, 2, 1]), np.array([7, 7, 9])).tolist()
    [[0, 0, 1, 2], [1, 2, 0, 0]]
    """
    size = len(left_keys)
    equal = [_equal_pairs(keys) for keys in (left_keys, right_keys)]
    flat = np.unique(np.concatenate([rows * size + columns for rows, columns in equal]))
    pairs = np.stack([flat // size, flat % size])
    return pairs[:, pairs[0] != pairs[1]]


def _equal_pairs(keys: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Returns all (i, j) with `keys[i] == keys[j]`, of keys that occur more than once."""
    _, group, counts = np.unique(keys, return_inverse=True, return_counts=True)
    order = np.argsort(group, kind="stable")
    starts = np.cumsum(counts) - counts
    several = np.flatnonzero(counts[group] > 1)
    sizes = counts[group[several]]
    within = np.arange(sizes.sum()) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    return np.repeat(several, sizes), order[np.repeat(starts[group[several]], sizes) + within]


Item = TypeVar("Item")


def prefetched(items: Generator[Item, None, None], ahead: int) -> Generator[Item, None, None]:
    """Yields items, none of which may be None, that a thread makes up to `ahead` of their use.

    Closing it waits for the item that is being made, if any, and closes `items`. An error of
    `items` is raised after the items that came before it.
    """
    thread = ThreadPoolExecutor(1, "prefetch")
    try:
        upcoming = deque(thread.submit(next, items, None) for _ in range(ahead))
        while (item := upcoming.popleft().result()) is not None:
            upcoming.append(thread.submit(next, items, None))
            yield item
    finally:
        thread.shutdown(cancel_futures=True)
        items.close()
