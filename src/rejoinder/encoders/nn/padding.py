"""Padded batches for encoders that read tokens in order: groups of sentences of like lengths."""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from rejoinder.encoders.nn.dense import unit_rows
from rejoinder.text.padding import padded_groups
from rejoinder.text.ragged import Ragged


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
    """Returns the groups of `text.padding.padded_groups` as tensors. NumPy only."""
    groups = tuple(
        PaddedGroup(*map(torch.from_numpy, (group.sentences, group.ids, group.present)))
        for group in padded_groups(batch, positions, overhead)
    )
    return PaddedBatch(len(batch), groups)


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
        vectors = unit_rows(vectors, torch.ones_like(order, dtype=torch.bool))
    return out.index_copy(0, order, vectors.float())
