"""Batches without padding, for encoders that take most steps token by token."""

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from rejoinder.text.padding import Padded, padded_groups
from rejoinder.text.ragged import Ragged

_PACK_TOKENS = 32_768
"""Most tokens of a pack, unless one sentence has more; bounds the memory of a pass."""
_GROUP_TOKENS = 8_192
"""Most padded positions of a group; bounds the memory that attention needs."""
_GROUP_OVERHEAD = 16
"""Cost of a group besides its sentences, in sentences."""


@dataclass(frozen=True, slots=True)
class PackedGroup:
    """Where the K tokens of G sentences of similar lengths go if padded to T positions."""

    lengths: Tensor
    """(G,) int64."""
    present: Tensor
    """(G, T) bool, false where padded."""
    slots: Tensor
    """(K,) int64, the place of each token among the G * T."""

    def to(self, device: torch.device) -> "PackedGroup":
        """Returns a copy on `device`."""
        parts = (self.lengths, self.present, self.slots)
        return PackedGroup(*(part.to(device, non_blocking=True) for part in parts))

    def pad(self, rows: Tensor) -> Tensor:
        """Takes the (K, C) rows of the tokens to (G, T, C), with zeros where padded."""
        padded: Tensor = _Scatter.apply(rows, self.slots, self.present.numel())  # type: ignore[no-untyped-call]
        return padded.view(*self.present.shape, -1)

    def unpad(self, padded: Tensor) -> Tensor:
        """Takes (G, T, C) to the (K, C) rows of the tokens."""
        rows: Tensor = _Gather.apply(padded.flatten(0, 1), self.slots)  # type: ignore[no-untyped-call]
        return rows


@dataclass(frozen=True, slots=True)
class Pack:
    """The P tokens of some sentences, one after the other."""

    ids: Tensor
    """(P,) int64."""
    positions: Tensor
    """(P,) int64, the place of each token in its sentence."""
    groups: tuple[PackedGroup, ...]

    def split(self, rows: Tensor) -> tuple[Tensor, ...]:
        """Takes (P, C) to the (K, C) rows of each group."""
        # one operation, whose gradient is one, too
        return torch.split(rows, [len(group.slots) for group in self.groups])

    def to(self, device: torch.device) -> "Pack":
        """Returns a copy on `device`."""
        ids, positions = (part.to(device, non_blocking=True) for part in (self.ids, self.positions))
        return Pack(ids, positions, tuple(group.to(device) for group in self.groups))


@dataclass(frozen=True, slots=True)
class PackedBatch:
    """A batch of N sentences in packs, without its empty sentences."""

    count: int
    """N, empty sentences included."""
    order: Tensor
    """(F,) int64, the indices of the sentences in the order of the packs."""
    packs: tuple[Pack, ...]

    def to(self, device: torch.device) -> "PackedBatch":
        """Returns a copy on `device`."""
        order = self.order.to(device, non_blocking=True)
        return PackedBatch(self.count, order, tuple(pack.to(device) for pack in self.packs))


def pack_sentences(batch: Ragged) -> PackedBatch:
    """Returns a batch for `forward`. NumPy only, so that another thread can run it."""
    groups = padded_groups(batch, _GROUP_TOKENS, _GROUP_OVERHEAD)
    order = np.concatenate([np.empty(0, np.int64), *(group.sentences for group in groups)])
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
    return PackedBatch(len(batch), torch.from_numpy(order), tuple(packs))


def _packed(groups: list[Padded]) -> Pack:
    ids = np.concatenate([group.ids[group.present] for group in groups])
    slots = [np.flatnonzero(group.present) for group in groups]
    positions = np.concatenate(
        [held % group.present.shape[1] for held, group in zip(slots, groups, strict=True)]
    )
    packed = [
        PackedGroup(
            lengths=torch.from_numpy(group.present.sum(axis=1, dtype=np.int64)),
            present=torch.from_numpy(group.present),
            slots=torch.from_numpy(held),
        )
        for held, group in zip(slots, groups, strict=True)
    ]
    return Pack(torch.from_numpy(ids), torch.from_numpy(positions), tuple(packed))


class _Scatter(torch.autograd.Function):
    """Rows to their slots among zeros. PyTorch's own backward of `_Gather` adds row by row."""

    @staticmethod
    def forward(ctx, rows, slots, size):  # type: ignore[no-untyped-def]
        ctx.save_for_backward(slots)
        return rows.new_zeros(size, rows.shape[1]).index_copy_(0, slots, rows)

    @staticmethod
    def backward(ctx, gradient):  # type: ignore[no-untyped-def]
        (slots,) = ctx.saved_tensors
        return gradient.index_select(0, slots), None, None


class _Gather(torch.autograd.Function):
    """Rows of slots; the inverse of `_Scatter`."""

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
