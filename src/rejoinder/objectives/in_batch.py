"""The in-batch softmax shared by all ranking objectives.

Large batches make better encoders, but then most of a step goes into B x B scores: written with
PyTorch's operations, that is a dozen passes over a matrix larger than any cache. Here a strip of
rows is scored and turned into probabilities and gradients while it is in the cache, and nothing of
size B x B is ever stored.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

_STRIP_SCORES = 1 << 20
"""Scores per strip: 4 MB of float32."""


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
) -> StepLoss:
    """Softmax over the candidates of the batch, cross-entropy against the diagonal.

    Args:
        anchors: (B, D) float32.
        candidates: (B + E, D) float32; row i belongs to anchor i, the last E rows to none.
        scale: () float32, factor of dot products in the softmax.
        same: (2, M) int64, index pairs (i, j) off the diagonal, both below B and ascending in i,
            that are no true negatives. They are left out of the softmax.
        symmetric: also pick the right anchor for each of the first B candidates, and return the
            mean of both losses.
    """
    loss, correct = _InBatchSoftmax.apply(anchors, candidates, scale, same)  # type: ignore[no-untyped-call]
    if symmetric:
        other = None if same is None else same.flip(0)[:, same[1].argsort(stable=True)]
        back, _ = _InBatchSoftmax.apply(candidates[: len(anchors)], anchors, scale, other)  # type: ignore[no-untyped-call]
        loss = (loss + back) / 2
    return StepLoss(loss, correct)


class _InBatchSoftmax(torch.autograd.Function):
    """Computes the loss and, in the same pass, the gradients of all three arguments."""

    @staticmethod
    def forward(
        ctx: Any, inputs: Tensor, responses: Tensor, scale: Tensor, same: Tensor | None
    ) -> tuple[Tensor, Tensor]:
        size = len(inputs)
        low = torch.is_autocast_enabled(inputs.device.type)
        kind = torch.get_autocast_dtype(inputs.device.type) if low else inputs.dtype
        left, right = inputs.to(kind), responses.to(kind)  # (B, D)
        by_inputs, by_responses = torch.empty_like(inputs), torch.zeros_like(responses)
        loss, by_scale = inputs.new_zeros(()), inputs.new_zeros(())
        correct = torch.zeros((), dtype=torch.int64, device=inputs.device)
        starts = range(0, size, max(1, _STRIP_SCORES // len(responses)))
        with torch.autocast(inputs.device.type, enabled=False):
            for start in starts:
                rows = slice(start, min(start + starts.step, size))
                own = torch.arange(rows.start, rows.stop, device=inputs.device)
                at = own - start
                cosines = (left[rows] @ right.T).float()  # (b, B)
                scores = cosines * scale
                if same is not None:
                    first, last = torch.searchsorted(
                        same[0].contiguous(), torch.tensor([start, rows.stop], device=same.device)
                    ).tolist()
                    scores[same[0, first:last] - start, same[1, first:last]] = -torch.inf
                peak, best = scores.max(dim=1, keepdim=True)
                correct += (best[:, 0] == own).sum()
                right_scores = scores[at, own]
                p = scores.sub_(peak).exp_()  # (b, B), probabilities once divided
                totals = p.sum(dim=1, keepdim=True)
                loss += (totals.log() + peak)[:, 0].sum() - right_scores.sum()
                p /= totals
                p[at, own] -= 1.0  # the gradient of the loss by the scores
                by_scale += torch.linalg.vecdot(p, cosines).sum()
                p16 = p.to(kind)
                by_inputs[rows] = (p16 @ right).float()
                by_responses += (p16.T @ left[rows]).float()
        ctx.save_for_backward(
            by_inputs.mul_(scale / size), by_responses.mul_(scale / size), by_scale / size
        )
        ctx.mark_non_differentiable(correct)
        return loss / size, correct

    @staticmethod
    def backward(ctx: Any, gradient: Tensor, _: Tensor) -> tuple[Tensor, Tensor, Tensor, None]:
        by_inputs, by_responses, by_scale = ctx.saved_tensors
        return gradient * by_inputs, gradient * by_responses, gradient * by_scale, None


def duplicates(left_keys: NDArray[np.int64], right_keys: NDArray[np.int64]) -> NDArray[np.int64]:
    """Returns (2, M) int64, index pairs (i, j) where row j's right text also fits row i's left.

    That is the case where the right texts of i and j are equal, or their left texts are: the
    response of j then answers input i as well. Ascending in i, without the diagonal.

    Args:
        left_keys: (B,) int64, equal where left texts are equal.
        right_keys: (B,) int64, equal where right texts are equal.

    >>> duplicates(np.array([1, 2, 1]), np.array([7, 7, 9])).tolist()
    [[0, 0, 1, 2], [1, 2, 0, 0]]
    """
    size = len(left_keys)
    equal = [_equal_pairs(keys) for keys in (left_keys, right_keys)]
    flat = np.unique(np.concatenate([rows * size + columns for rows, columns in equal]))
    pairs = np.stack([flat // size, flat % size])
    return pairs[:, pairs[0] != pairs[1]]


def _equal_pairs(keys: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Returns all (i, j) with `keys[i] == keys[j]`, of keys that occur more than once."""
    _, group, counts = np.unique(keys, return_inverse=True, return_counts=True)
    order = np.argsort(group, kind="stable")
    starts = np.cumsum(counts) - counts
    several = np.flatnonzero(counts[group] > 1)
    sizes = counts[group[several]]
    within = np.arange(sizes.sum()) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    return np.repeat(several, sizes), order[np.repeat(starts[group[several]], sizes) + within]
