"""Sums over rows of a large table, with gradients for the touched rows only.

PyTorch's own sparse gradients materialise one row per token and then coalesce them, which takes
about half of a training step. Here the rows that a batch touches are gathered once, (unique,
width), and both the sum and its gradient are one `embedding_bag`, whose CPU kernel runs at the
speed of memory. The optimiser needs the gathered rows anyway.
"""

import math
from dataclasses import dataclass

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from rejoinder.text.ragged import Ragged


@dataclass(frozen=True, slots=True)
class BagIndex:
    """The rows that N bags sum, by bag and, for the gradient, by row.

    There are n ids in total, of U different rows.
    """

    rows: Tensor
    """(U,) int64, the touched rows in ascending order."""
    local: Tensor
    """(n,) int64, the index in `rows` of each id, bag by bag."""
    offsets: Tensor
    """(N + 1,) int64, where each bag begins in `local`."""
    bags: Tensor
    """(n,) int64, the bag of each id, row by row."""
    row_offsets: Tensor
    """(U + 1,) int64, where each row begins in `bags`."""

    def to(self, device: torch.device) -> "BagIndex":
        """Returns a copy on `device`."""
        parts = (self.rows, self.local, self.offsets, self.bags, self.row_offsets)
        return BagIndex(*(part.to(device, non_blocking=True) for part in parts))

    @property
    def counts(self) -> Tensor:
        """(N,) int64, number of ids in each bag."""
        return self.offsets.diff()


def index_bags(batch: Ragged) -> BagIndex:
    """Returns the index that the forward and the backward pass share; NumPy only."""
    # NumPy sorts int64 with the processor's vectors, and a stable argsort without: 0.3 ms, not 2
    places = np.sort((batch.ids.astype(np.int64) << 32) | np.arange(len(batch.ids)))
    order, ordered = places & 0xFFFFFFFF, places >> 32
    first = np.empty(len(ordered), bool)
    first[:1] = True
    np.not_equal(ordered[1:], ordered[:-1], out=first[1:])
    starts = np.flatnonzero(first)
    local = np.empty(len(ordered), np.int64)
    local[order] = np.cumsum(first) - 1
    owner = np.repeat(np.arange(len(batch)), batch.lengths)
    return BagIndex(
        rows=torch.from_numpy(ordered[starts]),
        local=torch.from_numpy(local),
        offsets=torch.from_numpy(batch.offsets.astype(np.int64, copy=False)),
        bags=torch.from_numpy(owner[order]),
        row_offsets=torch.from_numpy(np.append(starts, len(ordered))),
    )


class SparseTable(nn.Module):
    """A table of which each step reads and updates only a few rows.

    `gather` returns a copy of rows as a leaf that collects gradients. After the backward pass the
    optimiser takes the copies from `touched` and writes the updated rows back.
    """

    def __init__(self, rows: int, width: int, std: float, generator: torch.Generator) -> None:
        super().__init__()
        weight = torch.empty(rows, width).normal_(0.0, std, generator=generator)
        self.weight = nn.Parameter(weight, requires_grad=False)
        self.register_buffer("seen", torch.zeros(rows, dtype=torch.bool))
        self.seen: Tensor
        """(rows,) bool, rows that were trained; the others are random and dropped at export."""
        self.touched: list[tuple[Tensor, Tensor]] = []

    @torch.no_grad()
    def weigh_by_rank(self, factor: float) -> None:
        """Scales the initial row of rank r by `factor` * ln(r + e).

        Rows are in order of frequency. Under Zipf's law ln(r) is the inverse document frequency of
        the word of rank r up to a constant, so sums start out weighted as in Arora et al. (2017).
        """
        ranks = torch.arange(len(self.weight), dtype=torch.float32)
        self.weight.mul_((factor * torch.log(ranks + math.e)).unsqueeze(1))

    def gather(self, rows: Tensor) -> Tensor:
        """Returns (U, width), a copy of the rows `rows` (U,)."""
        values = self.weight.index_select(0, rows)
        if self.training and torch.is_grad_enabled():
            values.requires_grad_()
            self.touched.append((rows, values))
            self.seen.index_fill_(0, rows, True)
        return values


class _SumBags(torch.autograd.Function):
    """Computes sums[i], the sum of values[local[j]] over the ids j of bag i, and its gradient."""

    @staticmethod
    def forward(
        ctx: torch.autograd.function.FunctionCtx, values: Tensor, index: BagIndex
    ) -> Tensor:
        ctx.index = index  # type: ignore[attr-defined]
        return _sums(values, index.local, index.offsets)

    @staticmethod
    def backward(ctx: torch.autograd.function.FunctionCtx, gradient: Tensor) -> tuple[Tensor, None]:
        index: BagIndex = ctx.index  # type: ignore[attr-defined]
        return _sums(gradient.contiguous(), index.bags, index.row_offsets), None


def sum_bags(values: Tensor, index: BagIndex) -> Tensor:
    """Returns (N, width), the sum of each bag; `values` (U, width) are the rows `index.rows`."""
    return _SumBags.apply(values, index)  # type: ignore[no-any-return, no-untyped-call]


def _sums(values: Tensor, ids: Tensor, offsets: Tensor) -> Tensor:
    return F.embedding_bag(ids, values, offsets, mode="sum", include_last_offset=True)
