"""Sentences in padded groups of like lengths, for encoders that read tokens in order."""

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from rejoinder.text.ragged import Ragged, offsets_of


@dataclass(frozen=True, slots=True)
class Padded:
    """G sentences of similar lengths, padded to T positions, the length of the longest."""

    sentences: NDArray[np.int64]
    """(G,) int64, their indices in the batch."""
    ids: NDArray[np.int64]
    """(G, T) int64, 0 where padded."""
    present: NDArray[np.bool_]
    """(G, T) bool, false where padded."""


def padded_groups(batch: Ragged, positions: int, overhead: int) -> list[Padded]:
    """Returns the sentences, sorted by length, in groups of at most `positions` padded tokens.

    Empty sentences are left out. A longer sentence is a group alone. Groups are cut so that
    they take the least time, if G sentences of T positions take as long as (G + `overhead`) * T
    tokens.
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
    """Returns where to cut ascending `lengths` into groups, see `padded_groups`.

    Sentences of one length stay together, so a shortest path through the different lengths finds
    the best groups. Those of more than `positions` are then divided evenly.
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
