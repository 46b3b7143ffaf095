"""Batches for encoders that read words in their order: groups of like lengths, each padded."""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import torch
from torch import Tensor

from rejoinder.encoders.heads import unit_rows
from rejoinder.text.ragged import Ragged


@dataclass(frozen=True, slots=True)
class PaddedGroup:
    """Sentences of about one length. G sentences, T positions (the longest of them)."""

    sentences: Tensor
    """(G,) int64, their places in the batch."""
    ids: Tensor
    """(G, T) int64, 0 where padded."""
    present: Tensor
    """(G, T) bool, false where padded."""


@dataclass(frozen=True, slots=True)
class PaddedBatch:
    """A batch of N sentences in groups of like lengths; empty sentences are in none."""

    count: int
    groups: tuple[PaddedGroup, ...]

    def to(self, device: torch.device) -> "PaddedBatch":
        """The same batch on `device`."""
        return PaddedBatch(
            self.count,
            tuple(
                PaddedGroup(
                    group.sentences.to(device, non_blocking=True),
                    group.ids.to(device, non_blocking=True),
                    group.present.to(device, non_blocking=True),
                )
                for group in self.groups
            ),
        )


def pad_groups(batch: Ragged, positions: int) -> PaddedBatch:
    """Sort by length, cut into groups of at most `positions` padded places, pad each; NumPy only.

    A sentence that is longer is a group of its own.
    """
    lengths = batch.lengths
    order = np.argsort(lengths, kind="stable")
    order = order[lengths[order] > 0]
    groups = []
    for begin, end in pairwise(_cuts(lengths[order], positions)):
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
    """(N, dim) float32 in the order of the batch; zero rows for sentences without ids.

    Args:
        batch: on `device`.
        encode: a group to (G, dim), not yet of unit length.
        dim: width of the embeddings.
        device: where they are wanted.
        normalize: unit rows.
    """
    out = torch.zeros(batch.count, dim, dtype=torch.float32, device=device)
    if not batch.groups:
        return out
    vectors = torch.cat([encode(group) for group in batch.groups])  # (filled, D)
    order = torch.cat([group.sentences for group in batch.groups])
    if normalize:
        vectors = unit_rows(vectors, torch.ones_like(order))
    return out.index_copy(0, order, vectors.float())


def _cuts(lengths: np.ndarray, positions: int) -> list[int]:
    """Where to cut ascending `lengths` so that each group, padded to its longest, stays small."""
    cuts, begin = [0], 0
    for place, length in enumerate(lengths.tolist()):
        if place > begin and (place - begin + 1) * length > positions:
            cuts.append(place)
            begin = place
    return [*cuts, len(lengths)] if len(lengths) else [0]
