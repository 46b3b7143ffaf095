"""Batches without padding, for encoders that take most steps token by token."""

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from rejoinder.encoders.nn.devices import OnDevice
from rejoinder.encoders.nn.padding import SortedBatch, sorted_batch
from rejoinder.text.padding import Padded, padded_groups
from rejoinder.text.ragged import Ragged, offsets_of

_PACK_TOKENS = 32_768
"""Most tokens of a pack, unless one sentence has more; bounds the memory of a pass."""
_GROUP_TOKENS = 8_192
"""Most padded positions of a group; bounds the memory that attention needs."""
_GROUP_OVERHEAD = 16
"""Cost of a group besides its sentences, in sentences."""


@dataclass(frozen=True, slots=True)
class PackedGroup(OnDevice):
    """Where the K tokens of G sentences of similar lengths go if padded to T positions."""

    lengths: Tensor
    """(G,) int64."""
    present: Tensor
    """(G, T) bool, false where padded."""
    slots: Tensor
    """(K,) int64, the place of each token among the G * T."""

    def pad(self, rows: Tensor) -> Tensor:
        """Takes the (K, C) rows of the tokens to (G, T, C), with zeros where padded."""
        padded = rows.new_zeros(self.present.numel(), rows.shape[1])
        return padded.index_copy_(0, self.slots, rows).view(*self.present.shape, -1)

    def unpad(self, padded: Tensor) -> Tensor:
        """Takes (G, T, C) to the (K, C) rows of the tokens."""
        rows: Tensor = _Gather.apply(padded.flatten(0, 1), self.slots)  # type: ignore[no-untyped-call]
        return rows


@dataclass(frozen=True, slots=True)
class Pack(OnDevice):
    """The P tokens of some sentences, one after the other."""

    ids: Tensor
    """(P,) int64."""
    positions: Tensor
    """(P,) int64, the place of each token in its sentence."""
    offsets: Tensor
    """(S + 1,) int32, where each of the S sentences begins, and P."""
    longest: int
    """Tokens of the longest sentence."""
    groups: tuple[PackedGroup, ...]

    def split(self, rows: Tensor) -> tuple[Tensor, ...]:
        """Takes (P, C) to the (K, C) rows of each group."""
        # one operation, whose gradient is one, too
        return torch.split(rows, [len(group.slots) for group in self.groups])


def pack_sentences(batch: Ragged) -> SortedBatch:
    """Returns a batch whose parts are packs. NumPy only, so that another thread can run it."""
    groups = padded_groups(batch, _GROUP_TOKENS, _GROUP_OVERHEAD)
    packs, pack, size = [], list[Padded](), 0
    for group in groups:
        tokens = int(group.present.sum())
        if pack and size + tokens > _PACK_TOKENS:
            packs.append(_packed(pack))
            pack, size = [], 0
        pack.append(group)
        size += tokens
    if pack:
        packs.append(_packed(pack))
    return sorted_batch(len(batch), groups, packs)


def _packed(groups: list[Padded]) -> Pack:
    ids = np.concatenate([group.ids[group.present] for group in groups])
    slots = [np.flatnonzero(group.present) for group in groups]
    positions = np.concatenate(
        [held % group.present.shape[1] for held, group in zip(slots, groups, strict=True)]
    )
    lengths = [group.present.sum(axis=1, dtype=np.int64) for group in groups]
    offsets = offsets_of(np.concatenate(lengths)).astype(np.int32)
    packed = (
        PackedGroup(*map(torch.from_numpy, parts))
        for parts in zip(lengths, [group.present for group in groups], slots, strict=True)
    )
    return Pack(
        ids=torch.from_numpy(ids),
        positions=torch.from_numpy(positions),
        offsets=torch.from_numpy(offsets),
        longest=max(group.present.shape[1] for group in groups),
        groups=tuple(packed),
    )


class _Gather(torch.autograd.Function):
    """Rows of slots, which are all different. PyTorch's own backward adds row by row."""

    @staticmethod
    def forward(ctx, padded, slots):  # type: ignore[no-untyped-def]
        ctx.save_for_backward(slots)
        ctx.size = len(padded)
        return padded.index_select(0, slots)

    @staticmethod
    def backward(ctx, gradient):  # type: ignore[no-untyped-def]
        (slots,) = ctx.saved_tensors
        zeros = gradient.new_zeros(ctx.size, gradient.shape[1])
        return zeros.index_copy_(0, slots, gradient), None
