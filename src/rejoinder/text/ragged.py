"""Ragged lists of ids as two flat arrays: the features of a batch of sentences.

Also groups sentences of similar lengths with padding, for encoders that read tokens in order.
"""

from dataclasses import dataclass
from itertools import pairwise

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
    """(total,) int32, the ids of all sentences, joined."""
    offsets: NDArray[np.int64]
    """(N + 1,) int64, the offset of each sentence in `ids`, then `len(ids)`."""

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __getitem__(self, index: int) -> NDArray[np.int32]:
        return self.ids[self.offsets[index] : self.offsets[index + 1]]

    @property
    def lengths(self) -> NDArray[np.int64]:
        """(N,) int64, the number of ids of each sentence."""
        return self.offsets[1:] - self.offsets[:-1]  # np.diff takes 15 times as long for a few

    def part(self, start: int, stop: int) -> "Ragged":
        """Returns the sentences from `start` to before `stop`, without copying ids.

        >>> Ragged(np.array([5, 7, 2], np.int32), np.array([0, 2, 3])).part(1, 2).ids.tolist()
        [2]
        """
        offsets = self.offsets[start : stop + 1]
        return Ragged(self.ids[offsets[0] : offsets[-1]], offsets - offsets[0])

    def take(self, indices: NDArray[np.int64]) -> "Ragged":
        """Returns the sentences with the given indices, in that order.

        >>> batch = Ragged(np.array([5, 7, 2], np.int32), np.array([0, 2, 2, 3]))
        >>> batch.take(np.array([2, 0])).ids.tolist()
        [2, 5, 7]
        """
        starts = self.offsets[indices]  # avoids the lengths of all: a batch needs few
        lengths = self.offsets[indices + 1] - starts
        offsets = offsets_of(lengths)
        places = np.arange(offsets[-1]) + np.repeat(starts - offsets[:-1], lengths)
        return Ragged(self.ids[places], offsets)

    def first(self, count: int) -> "Ragged":
        """Returns the first `count` ids of each sentence.

        >>> batch = Ragged(np.array([5, 7, 2], np.int32), np.array([0, 2, 2, 3]))
        >>> batch.first(1).ids.tolist()
        [5, 2]
        """
        lengths = self.lengths
        if not len(lengths) or lengths.max() <= count:
            return self
        within = np.arange(len(self.ids)) - np.repeat(self.offsets[:-1], lengths)
        return Ragged(self.ids[within < count], offsets_of(np.minimum(lengths, count)))

    def only(self, kept: NDArray[np.bool_]) -> "Ragged":
        """Returns the ids where the (total,) mask `kept` is true.

        >>> batch = Ragged(np.array([5, 7, 2], np.int32), np.array([0, 2, 2, 3]))
        >>> batch.only(batch.ids > 4).lengths.tolist()
        [2, 0, 0]
        """
        return Ragged(self.ids[kept], offsets_of(kept.astype(np.int64))[self.offsets])


def offsets_of(lengths: NDArray[np.int64]) -> NDArray[np.int64]:
    """Returns (N + 1,) int64 offsets from (N,) lengths."""
    return np.concatenate([[0], np.cumsum(lengths)], dtype=np.int64)


def concatenate(*parts: Ragged) -> Ragged:
    """Returns the sentences of one or more parts, in order."""
    ids = np.concatenate([part.ids for part in parts])
    return Ragged(ids, offsets_of(np.concatenate([part.lengths for part in parts])))


@dataclass(frozen=True, slots=True)
class Padded:
    """G sentences of similar lengths, padded to T positions, the length of the longest."""

    sentences: NDArray[np.int64]
    """(G,) int64, indices of the sentences in the batch."""
    ids: NDArray[np.int64]
    """(G, T) int64, 0 where padded."""
    present: NDArray[np.bool_]
    """(G, T) bool, false where padded."""


def padded_groups(batch: Ragged, positions: int, overhead: int) -> list[Padded]:
    """Returns the sentences, sorted by length, in groups of at most `positions` padded tokens.

    Empty sentences are left out. A sentence of more than `positions` tokens forms its own group.
    Groups are cut to take the least time, if G sentences of T positions take as long as
    (G + `overhead`) * T tokens.
    """
    lengths = batch.lengths
    order = np.argsort(lengths, kind="stable")
    order = order[lengths[order] > 0]
    groups = []
    for begin, end in pairwise(_cuts(lengths[order], positions, overhead)):
        chosen = order[begin:end]
        part = batch.take(chosen)
        present = np.arange(part.lengths.max()) < part.lengths[:, None]
        ids = np.zeros(present.shape, np.int64)
        ids[present] = part.ids
        groups.append(Padded(chosen, ids, present))
    return groups


def _cuts(lengths: NDArray[np.int64], positions: int, overhead: int) -> list[int]:
    """Returns where to cut ascending `lengths` into groups; see `padded_groups`.

    Sentences of the same length stay together, so a shortest path over the distinct lengths finds
    the best groups. Groups of more than `positions` are then divided evenly.
    """
    distinct, counts = np.unique(lengths, return_counts=True)
    ends = offsets_of(counts)
    time = np.zeros(len(ends), np.int64)  # of the groups up to each end
    before = np.zeros(len(ends), np.int64)  # where the last of them begins
    for last, length in enumerate(distinct, start=1):
        times = time[:last] + (ends[last] - ends[:last] + overhead) * length
        before[last] = times.argmin()
        time[last] = times[before[last]]
    cuts, last = [len(lengths)], len(distinct)
    while last:
        begin, end = int(ends[before[last]]), int(ends[last])
        pieces = -(-(end - begin) // max(1, positions // int(distinct[last - 1])))
        cuts += [end - (end - begin) * piece // pieces for piece in range(1, pieces + 1)]
        last = int(before[last])
    return cuts[::-1]
