"""The in-batch softmax shared by all ranking objectives.

Large batches make better encoders, but then B x B scores take most of a step: with PyTorch's
operations, a dozen passes over a matrix larger than any cache, and a matrix product for each
direction and each number of nested dimensions. Here a strip of rows is turned into probabilities
and gradients while it is in the cache, and one product serves both directions and all nested
dimensions: the score of the first 512 entries is the score of the first 128 plus the rest. A C
kernel (`_softmax.c`) reads each row of scores from memory once, while torch's operations take ten
passes. Both agree up to rounding in float32.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import torch
from torch import Tensor

from rejoinder.encoders.nn.layers import FeedForward, threads_for
from rejoinder.registry import kernel

_STRIP_SCORES = 1 << 20
"""Scores per strip: 4 MB of float32."""
_GPU_STRIP_SCORES = 1 << 28
"""Scores per strip on GPUs, which have no such cache and are slower with several strips."""
_LEAST_WORK = 1 << 15
"""Number of scores below which a second thread does not pay."""
_LEFT_OUT = -1e20
"""The cosine of candidates left out of a softmax. With any scale, its probability is 0, and so is
their product."""
_NONE = np.empty(0, np.float32)
_SHARE = 16
"""Number of rows that a thread takes at a time, as in `shares.h`."""


@dataclass(frozen=True)
class StepInputs:
    """Inputs of the loss of a step on B rows."""

    left: Tensor
    """(B, D) float32, unit rows: inputs, premises, or first sentences."""
    right: Tensor
    """(B + E, D) float32, unit rows: their counterparts, followed by E additional candidates."""
    labels: Tensor | None
    """(B,) int64 classes of the rows, if the examples have labels."""
    same: Tensor | None
    """(2, M) int64, pairs that are not true negatives; see `in_batch_softmax`."""
    scale: Tensor
    """() float32, learned scale of the task; unused by objectives without one."""
    head: FeedForward | None
    """The head of the objective, if it has one."""
    task: Any
    """The table of the task in the config."""
    nested: tuple[int, ...] = ()
    """`training.nested_dims` for an objective that ranks, else empty."""


@dataclass(frozen=True)
class StepLoss:
    """The loss of a step on B rows."""

    loss: Tensor
    """() float32, mean cross-entropy in nats."""
    correct: Tensor
    """() int64, number of rows whose own candidate or class scores highest."""


def in_batch_softmax(
    anchors: Tensor,
    candidates: Tensor,
    scale: Tensor,
    *,
    same: Tensor | None = None,
    symmetric: bool = False,
    nested: Sequence[int] = (),
) -> StepLoss:
    """Returns the cross-entropy of the softmax over the batch's candidates against the diagonal.

    Args:
        anchors: (B, D) float32.
        candidates: (B + E, D) float32; row i belongs to anchor i, the last E rows to none.
        scale: () float32, factor of dot products in the softmax.
        same: (2, M) int64, index pairs (i, j) off the diagonal, both below B and ascending in i,
            that are not true negatives. They are left out of the softmax.
        symmetric: also pick the right anchor for each of the first B candidates, and return the
            mean of both losses. The scores of the whole batch are then held in memory.
        nested: ascending numbers below D. The loss is the mean of the losses on the first N
            entries, scaled to length 1, for each of these N, and on the full rows (Kusupati et al.
            2022, section 3); `correct` is from the full rows.
    """
    loss, correct = _InBatchSoftmax.apply(  # type: ignore[no-untyped-call]
        anchors, candidates, scale, same, symmetric, tuple(nested)
    )
    return StepLoss(loss, correct)


@dataclass(frozen=True, slots=True)
class Softmax:
    """The loss and gradients of the softmax of rows."""

    loss: Tensor
    """() float32, the sum of the rows' losses."""
    correct: Tensor
    """() int64, number of rows whose own candidate scores highest."""
    by_scores: Tensor
    """(b, C) the gradient by the given cosines times the scale, in their dtype."""
    along: Tensor
    """(b,) float32, dot products of the cosines of a row and its gradient."""
    along_columns: Tensor | None
    """(C,) float32, the same by candidate, if factors were given."""


Factors = tuple[Tensor, Tensor]
"""(b,) and (C,) float32 factors of the cosines of each row and of each candidate."""


def softmax(
    cosines: Tensor, own: int, scale: Tensor, column: Tensor | None, factors: Factors | None = None
) -> Softmax:
    """Returns the softmax of the scores of each row, against its own candidate.

    Args:
        cosines: (b, C) float32 or bfloat16, the scores of b anchors divided by their scale.
        own: the index of the right candidate of row 0; for row i it is `own` + i.
        scale: () float32.
        column: (B,) float32, logarithms of sums over all anchors, by candidate (`log_sums`). The
            result then includes the loss and gradient of the other direction, except for the sum
            of `column`.
        factors: factors to apply to the given cosines first. The gradient is by the given cosines,
            before the factors.
    """
    native = _native(cosines)
    if native is None:
        return _by_torch(cosines, own, scale, column, factors)
    exact = cosines.float().contiguous()
    rows, columns = exact.shape
    by_scores = torch.empty_like(exact)
    losses, alongs = (torch.empty(rows) for _ in range(2))
    correct = torch.empty(rows, dtype=torch.uint8)
    room = torch.empty(-(-rows // _SHARE) if factors else 0, 2, columns)
    native.softmax(
        *threads_for(rows * columns, _LEAST_WORK),
        *(columns, own, float(scale), exact.numpy()),
        _NONE if column is None else column.numpy(),
        *(by_scores.numpy(), losses.numpy(), alongs.numpy(), correct.numpy()),
        *_arrays(factors),
        room.numpy(),
    )
    by_candidate = room[:, 0].sum(dim=0) if factors else None
    return Softmax(losses.sum(), correct.sum(), by_scores.to(cosines.dtype), alongs, by_candidate)


def _arrays(factors: Factors | None) -> Sequence[Any]:
    if factors is None:
        return _NONE, _NONE
    return [factor.contiguous().numpy() for factor in factors]


def _scaled(cosines: Tensor, factors: Factors | None) -> Tensor:
    return cosines if factors is None else cosines * factors[0][:, None] * factors[1]


def _by_torch(
    cosines: Tensor, own: int, scale: Tensor, column: Tensor | None, factors: Factors | None
) -> Softmax:
    kind, cosines = cosines.dtype, _scaled(cosines, factors)
    found = cosines.float() * scale
    at = torch.arange(len(found), device=found.device)
    right = at + own
    directions = 1.0 if column is None else 2.0
    peak, best = found.max(dim=1, keepdim=True)
    right_scores = directions * found[at, right].sum()
    back = None if column is None else (found[:, : len(column)] - column).exp_()
    p = found.sub_(peak).exp_()  # probabilities once divided
    totals = p.sum(dim=1, keepdim=True)
    loss = (totals.log() + peak)[:, 0].sum() - right_scores
    p /= totals
    if back is not None:
        p[:, : back.shape[1]] += back
    p[at, right] -= directions
    products = p * cosines
    by_candidate = None if factors is None else products.sum(dim=0)
    correct = (best[:, 0] == right).sum()
    by_scores = _scaled(p, factors).to(kind)
    return Softmax(loss, correct, by_scores, products.sum(dim=1), by_candidate)


def log_sums(cosines: Tensor, scale: Tensor, size: int, factors: Factors | None = None) -> Tensor:
    """Returns (size,) float32, log of the sum of exp(score) of the first columns of (b, C)."""
    native = _native(cosines)
    if native is None:
        return torch.logsumexp(_scaled(cosines, factors)[:, :size].float() * scale, dim=0)
    exact = cosines.float().contiguous()
    sums = torch.empty(size)
    native.log_sums(
        *threads_for(exact.numel(), _LEAST_WORK),
        *(exact.shape[1], float(scale), exact.numpy(), sums.numpy()),
        *_arrays(factors),
    )
    return sums


def _native(cosines: Tensor) -> Any:
    return kernel("training.losses._softmax") if cosines.device.type == "cpu" else None


class _Side:
    """The rows of one side of a batch, and the gradients by them."""

    def __init__(self, rows: Tensor, cuts: Sequence[int], kind: torch.dtype) -> None:
        self.rows = rows.to(kind)
        self.cuts = cuts
        self.by_rows = torch.zeros_like(rows)
        lengths = rows.new_empty(len(cuts) - 1, len(rows))
        for level, cut in enumerate(cuts[:-1]):
            lengths[level] = rows[:, :cut].norm(dim=1)
        self.inverse = torch.where(lengths > 0, 1 / lengths, 1.0)
        """(levels - 1, N) factors that scale the first entries to length 1."""
        self.along = torch.zeros_like(self.inverse)
        """(levels - 1, N) dot products of scaled entries and the gradients by them."""

    def gradient(self) -> Tensor:
        """Returns (N, D), the gradient by the rows before scaling."""
        for level, cut in enumerate(self.cuts[:-1]):
            share = self.along[level] * self.inverse[level].square()
            self.by_rows[:, :cut].addcmul_(share[:, None], self.rows[:, :cut].float(), value=-1)
        return self.by_rows


@dataclass(frozen=True)
class _Strip:
    """Some anchors against all candidates."""

    rows: slice
    levels: list[Tensor]
    """(b, C) dot products of the first entries, for each number of entries."""
    factors: list[Factors | None]
    """For each level, the factors that turn its dot products into cosines."""


class _InBatchSoftmax(torch.autograd.Function):
    """Computes the loss and, in the same pass, the gradients of all three tensors."""

    @staticmethod
    def forward(
        ctx: Any,
        anchors: Tensor,
        candidates: Tensor,
        scale: Tensor,
        same: Tensor | None,
        symmetric: bool,
        nested: tuple[int, ...],
    ) -> tuple[Tensor, Tensor]:
        device, size = anchors.device, len(anchors)
        low = torch.is_autocast_enabled(device.type)
        kind = torch.get_autocast_dtype(device.type) if low else anchors.dtype
        cuts = (*nested, anchors.shape[1])
        most = _STRIP_SCORES if device.type == "cpu" else _GPU_STRIP_SCORES
        starts = range(0, size, max(1, most // len(candidates)))
        loss, by_scale = anchors.new_zeros(()), anchors.new_zeros(())
        correct = torch.zeros((), dtype=torch.int64, device=device)
        with torch.autocast(device.type, enabled=False):
            left, right = _Side(anchors, cuts, kind), _Side(candidates, cuts, kind)
            strips: Iterable[_Strip] = (
                _strip(left, right, slice(start, min(start + starts.step, size)), same)
                for start in starts
            )
            columns: Sequence[Tensor | None] = [None] * len(cuts)
            if symmetric:
                strips = stored = list(strips)
                columns = sums = [
                    torch.stack(
                        [
                            log_sums(strip.levels[level], scale, size, strip.factors[level])
                            for strip in stored
                        ]
                    ).logsumexp(dim=0)
                    for level in range(len(cuts))
                ]
                loss += torch.stack(sums).sum()
            for strip in strips:
                gradients = []
                for level, products in enumerate(strip.levels):
                    factors = strip.factors[level]
                    found = softmax(products, strip.rows.start, scale, columns[level], factors)
                    loss += found.loss
                    by_scale += found.along.sum()
                    if found.along_columns is not None:
                        left.along[level, strip.rows] = found.along
                        right.along[level] += found.along_columns
                    gradients.append(found.by_scores)
                correct += found.correct  # only of the last level, the full rows
                _add_gradients(left, right, strip.rows, gradients)
        terms = size * len(cuts) * (2 if symmetric else 1)
        ctx.save_for_backward(left.gradient(), right.gradient(), by_scale, scale / terms)
        ctx.terms = terms
        ctx.mark_non_differentiable(correct)
        return loss / terms, correct

    @staticmethod
    def backward(ctx: Any, gradient: Tensor, _: Tensor) -> tuple[Tensor | None, ...]:
        by_anchors, by_candidates, by_scale, factor = ctx.saved_tensors
        by_rows = gradient * factor
        by_scale = gradient * by_scale / ctx.terms
        return by_rows * by_anchors, by_rows * by_candidates, by_scale, *(None,) * 3


def _strip(left: _Side, right: _Side, rows: slice, same: Tensor | None) -> _Strip:
    """Returns the scores of some anchors against all candidates at every level."""
    levels: list[Tensor] = []
    for start, stop in pairwise((0, *left.cuts)):
        ours, theirs = left.rows[rows, start:stop], right.rows[:, start:stop].T
        if not levels:  # several products are summed in float32
            total = (ours @ theirs).float() if len(left.cuts) > 1 else ours @ theirs
            if same is not None and rows == slice(0, len(left.rows)):
                total[same[0], same[1]] = _LEFT_OUT  # without waiting for a GPU
            elif same is not None:
                first, end = np.searchsorted(same[0].cpu().numpy(), (rows.start, rows.stop))
                total[same[0, first:end] - rows.start, same[1, first:end]] = _LEFT_OUT
        elif ours.dtype == total.dtype:
            total = torch.addmm(total, ours, theirs)
        else:
            total = total + ours @ theirs
        levels.append(total)
    factors = [(left.inverse[at, rows], right.inverse[at]) for at in range(len(levels) - 1)]
    return _Strip(rows, levels, [*factors, None])


def _add_gradients(left: _Side, right: _Side, rows: slice, by_scores: Sequence[Tensor]) -> None:
    """Adds the gradients by the entries of both sides of a strip.

    The first entries contribute to the scores of every level, the last entries only to the last
    level. Going backwards, each block of entries therefore adds the gradient of one more level.
    """
    blocks = pairwise((0, *left.cuts))
    total = None
    for (start, stop), gradient in reversed(list(zip(blocks, by_scores, strict=True))):
        total = gradient if total is None else total.add_(gradient)
        low = total.to(left.rows.dtype)
        left.by_rows[rows, start:stop] = low @ right.rows[:, start:stop]
        right.by_rows[:, start:stop] += low.T @ left.rows[rows, start:stop]
