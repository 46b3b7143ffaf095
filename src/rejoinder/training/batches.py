"""What streams hand to the model: batches of two-sided rows, and where a stream stands."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from rejoinder.text.ragged import Ragged


@dataclass(frozen=True, slots=True)
class Position:
    """Where a stream stands: the next row is `offset` of `window` of `epoch`."""

    epoch: int = 0
    window: int = 0
    offset: int = 0


@dataclass(frozen=True, slots=True)
class Batch:
    """B rows as ids: sentences 0 to B-1 are the left sides, B to 2B-1 their right sides.

    Inputs and responses, premises and hypotheses, two sentences of a group. What comes behind 2B
    are more candidates, that belong to no row.
    """

    sentences: Ragged
    left_keys: NDArray[np.int64]
    """(B,) int64, equal where two left sides are one text."""
    right_keys: NDArray[np.int64]
    """(B,) int64, equal where two right sides are one text."""
    after: Position
    """Where the stream stands once this batch is used."""
    labels: NDArray[np.int64] | None = None
    """(B,) int64, classes of the rows, where they are what is learned."""


class BatchSize(Protocol):
    """The batch size of the n-th batch from the start of this stream (phases change it)."""

    def __call__(self, number: int, /) -> int:
        """Rows of that batch."""
        ...


class Stream(Protocol):
    """The extension point for data: an endless sequence of batches, from any position on."""

    name: str
    rows: int
    """Of an epoch."""

    def batches(self, start: Position, size: BatchSize) -> Iterator[Batch]:
        """Batches without end from `start`."""
        ...


def drop_ids(batch: Ragged, share: float, generator: np.random.Generator) -> Ragged:
    """`batch` without a random `share` of its ids; a sentence may lose all of them."""
    keep = generator.random(len(batch.ids), dtype=np.float32) >= share
    ends = np.zeros(len(keep) + 1, np.int64)
    np.cumsum(keep, out=ends[1:])
    return Ragged(batch.ids[keep], ends[batch.offsets])
