"""Softmax of rows of scores, its loss and gradient: by a kernel in C or by torch.

The kernel (`_softmax.c`) reads each row once from memory, where torch's operations take ten
passes. Both agree up to rounding in float32.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from rejoinder.encoders.nn.shares import even_bounds, memory, parallel
from rejoinder.kernels import kernel

_KINDS = {torch.float32: "f", torch.bfloat16: "b"}
_LEAST_WORK = 1 << 15
"""Scores below which a second thread does not pay."""


@dataclass(frozen=True, slots=True)
class Scores:
    """The scores of some anchors, b rows, with C candidates, divided by their scale."""

    cosines: Tensor
    """(b, C) float32 or bfloat16."""
    own: int
    """The right candidate of row 0; that of row i is `own` + i."""
    masked: tuple[Tensor, Tensor] | None = None
    """(M,) int64 each, rows ascending and columns of what is left out of the softmax."""

    def scaled(self, scale: Tensor) -> Tensor:
        """Returns (b, C) float32, a new tensor, minus infinity where masked."""
        scores = self.cosines.float() * scale
        if self.masked is not None:
            scores[self.masked] = -torch.inf
        return scores


@dataclass(frozen=True, slots=True)
class Softmax:
    """What follows from the softmax of rows."""

    loss: Tensor
    """() float32, the sum of the rows' losses."""
    correct: Tensor
    """() int64, number of rows whose own candidate scores highest."""
    by_scores: Tensor
    """(b, C) the gradient by the scores, in the dtype of the cosines."""
    along: Tensor
    """(b,) float32, dot products of the cosines of a row and its gradient."""


def softmax(scores: Scores, scale: Tensor, column: Tensor | None) -> Softmax:
    """Returns the softmax of the scores of each row, against its own candidate.

    With `column`, (B,) float32 logarithms of sums over all anchors, by candidate, it is also the
    loss and gradient of the other direction, but for the sum of `column`.
    """
    native = kernel("training.losses._softmax") if scores.cosines.device.type == "cpu" else None
    if native is None or not scores.cosines.is_contiguous():
        return _by_torch(scores, scale, column)
    return _by_kernel(native, scores, float(scale), column)


def _by_torch(scores: Scores, scale: Tensor, column: Tensor | None) -> Softmax:
    found = scores.scaled(scale)
    at = torch.arange(len(found), device=found.device)
    own = at + scores.own
    directions = 1.0 if column is None else 2.0
    peak, best = found.max(dim=1, keepdim=True)
    right_scores = directions * found[at, own].sum()
    back = None if column is None else (found[:, : len(column)] - column).exp_()
    p = found.sub_(peak).exp_()  # probabilities once divided
    totals = p.sum(dim=1, keepdim=True)
    loss = (totals.log() + peak)[:, 0].sum() - right_scores
    p /= totals
    if back is not None:
        p[:, : back.shape[1]] += back
    p[at, own] -= directions
    along = (p * scores.cosines).sum(dim=1)
    return Softmax(loss, (best[:, 0] == own).sum(), p.to(scores.cosines.dtype), along)


def _by_kernel(native: Any, scores: Scores, scale: float, column: Tensor | None) -> Softmax:
    cosines = scores.cosines
    rows, columns = cosines.shape
    by_scores = torch.empty_like(cosines)
    losses, alongs = (torch.empty(rows) for _ in range(2))
    correct = torch.empty(rows, dtype=torch.uint8)
    if scores.masked is None:
        left_out, offsets = np.empty(0, np.int64), np.zeros(rows + 1, np.int64)
    else:
        left_out = scores.masked[1].contiguous().numpy()
        offsets = np.searchsorted(scores.masked[0].numpy(), np.arange(rows + 1))
    sums = np.empty(0, np.float32) if column is None else column.numpy()
    threads = torch.get_num_threads() if rows * columns >= _LEAST_WORK else 1
    native.softmax(
        *(parallel(), threads, even_bounds(rows, threads)),
        *(_KINDS[cosines.dtype], columns, scores.own, scale),
        *(memory(cosines), left_out, offsets, sums, memory(by_scores)),
        *(losses.numpy(), alongs.numpy(), correct.numpy()),
    )
    return Softmax(losses.sum(), correct.sum(), by_scores, alongs)
