"""Lists of ids of different lengths, as two flat arrays: what the text side hands to encoders."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class Ragged:
    """A batch of id lists.

    Sentence i holds `ids[offsets[i]:offsets[i + 1]]`.

    >>> batch = Ragged(np.array([5, 7, 2], np.int32), np.array([0, 2, 2, 3]))
    >>> len(batch), batch.lengths.tolist(), batch[0].tolist()
    (3, [2, 0, 1], [5, 7])
    """

    ids: NDArray[np.int32]
    """(total,) int32, the ids of all sentences one after the other."""
    offsets: NDArray[np.int64]
    """(N + 1,) int64, where each sentence begins; the last is `len(ids)`."""

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __getitem__(self, index: int) -> NDArray[np.int32]:
        return self.ids[self.offsets[index] : self.offsets[index + 1]]

    @property
    def lengths(self) -> NDArray[np.int64]:
        """(N,) int64, the number of ids of each sentence."""
        return np.diff(self.offsets)

    def take(self, rows: NDArray[np.int64]) -> "Ragged":
        """The sentences at `rows`, in that order, as a batch of their own.

        >>> batch = Ragged(np.array([5, 7, 2], np.int32), np.array([0, 2, 2, 3]))
        >>> batch.take(np.array([2, 0])).ids.tolist()
        [2, 5, 7]
        """
        lengths = self.lengths[rows]
        offsets = np.zeros(len(rows) + 1, np.int64)
        np.cumsum(lengths, out=offsets[1:])
        within = np.arange(offsets[-1]) - np.repeat(offsets[:-1], lengths)
        return Ragged(self.ids[np.repeat(self.offsets[rows], lengths) + within], offsets)

    def first(self, count: int) -> "Ragged":
        """The first `count` ids of each sentence.

        >>> batch = Ragged(np.array([5, 7, 2], np.int32), np.array([0, 2, 2, 3]))
        >>> batch.first(1).ids.tolist()
        [5, 2]
        """
        lengths = self.lengths
        if not len(lengths) or lengths.max() <= count:
            return self
        within = np.arange(len(self.ids)) - np.repeat(self.offsets[:-1], lengths)
        offsets = np.zeros(len(self.offsets), np.int64)
        np.cumsum(np.minimum(lengths, count), out=offsets[1:])
        return Ragged(self.ids[within < count], offsets)


def concatenate(first: Ragged, second: Ragged) -> Ragged:
    """The sentences of `first`, then those of `second`."""
    return Ragged(
        np.concatenate([first.ids, second.ids]),
        np.concatenate([first.offsets, second.offsets[1:] + first.offsets[-1]]),
    )
