"""Batches for encoders that read tokens in order: their sentences sorted by length, in parts."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from rejoinder.encoders.nn.dense import unit_rows
from rejoinder.encoders.nn.threads import OnDevice
from rejoinder.text.ragged import Padded, Ragged, padded_groups


@dataclass(frozen=True, slots=True)
class PaddedGroup(OnDevice):
    """G sentences of similar lengths, padded to T positions, the length of the longest."""

    ids: Tensor
    """(G, T) int64, 0 where padded."""
    present: Tensor
    """(G, T) bool, false where padded."""


@dataclass(frozen=True, slots=True)
class SortedBatch(OnDevice):
    """A batch of N sentences in parts, without its empty sentences."""

    count: int
    """N, empty sentences included."""
    order: Tensor
    """(F,) int64, the indices of the sentences in the order of the parts."""
    parts: tuple[Any, ...]
    """What the encoder reads at a time, such as a `PaddedGroup`."""


def sorted_batch(count: int, groups: Sequence[Padded], parts: Iterable[Any]) -> SortedBatch:
    """Returns `parts`, which hold the sentences of `groups`, as a batch of `count` sentences."""
    order = np.concatenate([np.empty(0, np.int64), *(group.sentences for group in groups)])
    return SortedBatch(count, torch.from_numpy(order), tuple(parts))


def pad_groups(batch: Ragged, positions: int, overhead: int) -> SortedBatch:
    """Returns a batch whose parts are the groups of `text.padding.padded_groups`. NumPy only."""
    groups = padded_groups(batch, positions, overhead)
    tensors = ((torch.from_numpy(each.ids), torch.from_numpy(each.present)) for each in groups)
    return sorted_batch(len(batch), groups, (PaddedGroup(*pair) for pair in tensors))


def encode_parts(
    batch: SortedBatch, encode: Callable[[Any], Tensor], dim: int, *, normalize: bool
) -> Tensor:
    """Returns (N, dim) float32 in the order of the batch, with zero rows for empty sentences.

    `encode` maps a part to the rows of its sentences, not normalised.
    """
    out = torch.zeros(batch.count, dim, dtype=torch.float32, device=batch.order.device)
    if not batch.parts:
        return out
    vectors = torch.cat([encode(part) for part in batch.parts])  # (F, dim)
    if normalize:
        vectors = unit_rows(vectors, torch.ones_like(batch.order, dtype=torch.bool))
    return out.index_copy(0, batch.order, vectors.float())
