"""Candidates of several workers, each of whom ranks them for its own anchors.

A worker has the embeddings of its own rows alone. Candidates are gathered, and the gradients that
each worker finds by all of them are summed: the loss of a batch is that of one process, and its
scores are divided among the workers.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import torch
from torch import Tensor


class Peers(Protocol):
    """What joined rows need of the workers that have them."""

    def gather(self, tensor: Tensor) -> list[Tensor]:
        """Returns the tensors of all workers, which have the same shape, in their order."""
        ...

    def add(self, tensor: Tensor) -> None:
        """Replaces a tensor by the sum over the workers."""
        ...

    def most(self, tensor: Tensor) -> None:
        """Replaces a tensor by the largest entries over the workers."""
        ...


@dataclass(frozen=True)
class Joined:
    """The rows of a batch that several workers have parts of, as one of them sees them."""

    peers: Peers
    index: int
    """Which of them this one is."""
    rows: tuple[int, ...]
    """The number of rows of each; their candidates come first, worker by worker."""
    more: tuple[int, ...]
    """The number of further candidates of each; they come behind those of all rows."""

    @property
    def first(self) -> int:
        """The number of this worker's first row among all."""
        return sum(self.rows[: self.index])

    @property
    def all_rows(self) -> int:
        """The number of rows of all workers."""
        return sum(self.rows)

    def candidates(self, own: Tensor) -> Tensor:
        """Returns (B + E, D), the candidates of all workers, of (b + e, D), this worker's.

        The gradient by the worker's own is the sum of those that all workers find by them.
        """
        found: Tensor = _Candidates.apply(own, self)  # type: ignore[no-untyped-call]
        return found


class _Candidates(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, own: Tensor, joined: Joined) -> Tensor:
        ctx.joined = joined
        sizes = [rows + more for rows, more in zip(joined.rows, joined.more, strict=True)]
        padded = own.new_zeros(max(sizes), own.shape[1])
        padded[: len(own)] = own
        parts = joined.peers.gather(padded)
        of_rows = [part[:rows] for part, rows in zip(parts, joined.rows, strict=True)]
        others = [
            part[rows:size] for part, rows, size in zip(parts, joined.rows, sizes, strict=True)
        ]
        return torch.cat([*of_rows, *others])

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None]:
        joined: Joined = ctx.joined
        total = gradients[0].clone()
        joined.peers.add(total)
        return torch.cat(
            [
                _part(total[: joined.all_rows], joined.rows, joined.index),
                _part(total[joined.all_rows :], joined.more, joined.index),
            ]
        ), None


def _part(rows: Tensor, sizes: Sequence[int], index: int) -> Tensor:
    start = sum(sizes[:index])
    return rows[start : start + sizes[index]]
