"""Batches of two-sided rows, which streams hand to the model, and the position of a stream."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from rejoinder.text.ragged import Ragged


@dataclass(frozen=True, slots=True)
class Position:
    """Position of a stream: its next row is row `offset` of window `window` of epoch `epoch`."""

    epoch: int = 0
    window: int = 0
    offset: int = 0


@dataclass(frozen=True, slots=True)
class Batch:
    """B rows as token ids: sentences 0 to B-1 are the left sides, B to 2B-1 the right sides.

    The sides are inputs and responses, premises and hypotheses, or two sentences of a group.
    Sentences from 2B on are further candidates that belong to no row.
    """

    sentences: Ragged
    left_keys: NDArray[np.int64]
    """(B,) int64, equal for equal texts of left sides."""
    right_keys: NDArray[np.int64]
    """(B,) int64, equal for equal texts of right sides."""
    after: Position
    """Position of the stream once this batch is used."""
    labels: NDArray[np.int64] | None = None
    """(B,) int64, classes of the rows, if a classifier learns from them."""


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
