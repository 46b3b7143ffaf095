"""Padded batches for encoders that read tokens in order: groups of sentences of like lengths."""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from rejoinder.encoders.dense import unit_rows
from rejoinder.text.ragged import Ragged, offsets_of


@dataclass(frozen=True, slots=True)
class PaddedGroup:
    """G sentences of similar lengths, padded to T positions, the length of the longest."""

    sentences: Tensor
    """(G,) int64, their indices in the batch."""
    ids: Tensor
    """(G, T) int64, 0 where padded."""
    present: Tensor
    """(G, T) bool, false where padded."""

    def to(self, device: torch.device) -> "PaddedGroup":
        """Returns a copy on `device`."""
        parts = (self.sentences, self.ids, self.present)
        return PaddedGroup(*(part.to(device, non_blocking=True) for part in parts))


@dataclass(frozen=True, slots=True)
class PaddedBatch:
    """A batch of N sentences in groups of similar lengths, without its empty sentences."""

    count: int
    """N, empty sentences included."""
    groups: tuple[PaddedGroup, ...]

    def to(self, device: torch.device) -> "PaddedBatch":
        """Returns a copy on `device`."""
        return PaddedBatch(self.count, tuple(group.to(device) for group in self.groups))


def pad_groups(batch: Ragged, positions: int, overhead: int) -> PaddedBatch:
    """Returns the sentences, sorted by length, in groups of at most `positions` padded tokens.

    A longer sentence forms a group of its own. Groups are cut so that they take the least time, if
    G sentences of T positions take as long as (G + `overhead`) * T tokens. NumPy only.
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
        groups.append(
            PaddedGroup(torch.from_numpy(chosen), torch.from_numpy(ids), torch.from_numpy(present))
        )
    return PaddedBatch(len(batch), tuple(groups))


def encode_groups(
    batch: PaddedBatch,
    encode: Callable[[PaddedGroup], Tensor],
    dim: int,
    device: torch.device,
    *,
    normalize: bool,
) -> Tensor:
    """Returns (N, dim) float32 in the order of the batch, with zero rows for empty sentences.

    `encode` maps a group to (G, dim), not normalised. `device` is that of the batch.
    """
    out = torch.zeros(batch.count, dim, dtype=torch.float32, device=device)
    if not batch.groups:
        return out
    vectors = torch.cat([encode(group) for group in batch.groups])  # (filled, D)
    order = torch.cat([group.sentences for group in batch.groups])
    if normalize:
        vectors = unit_rows(vectors, torch.ones_like(order))
    return out.index_copy(0, order, vectors.float())


def _cuts(lengths: NDArray[np.int64], positions: int, overhead: int) -> list[int]:
    """Returns where to cut ascending `lengths` into groups, see `pad_groups`.

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
