"""The softmax over the candidates of a batch that every ranking shares.

Large batches make better encoders, and their B x B scores are what a step then spends its time
on: written with PyTorch's operations, a dozen passes over a matrix beyond any cache. Here a strip
of rows is scored, turned into probabilities and into its share of the gradients while it is in
the cache, and nothing of size B x B is ever stored.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

_STRIP_SCORES = 1 << 20
"""Scores of a strip: 4 MB of float32."""


@dataclass(frozen=True)
class RankingLoss:
    """What a step of ranking yields."""

    loss: Tensor
    """() float32, mean cross-entropy in nats."""
    correct: Tensor
    """() int64, rows whose own candidate scores highest (masked ones aside)."""


def in_batch_softmax(
    anchors: Tensor,
    candidates: Tensor,
    scale: Tensor,
    *,
    same: Tensor | None = None,
    symmetric: bool = False,
) -> RankingLoss:
    """Softmax over the batch's candidates, cross-entropy against the diagonal.

    Args:
        anchors: (B, D) float32.
        candidates: (B + E, D) float32; row i belongs to anchor i, the last E to none.
        scale: () float32, what a dot product is multiplied by before the softmax.
        same: (2, M) int64, places (i, j) off the diagonal that are no true negatives, ascending in
            i, both below B. They are left out of the softmax.
        symmetric: also pick the right anchor for each of the first B candidates, and take the mean
            of both losses.
    """
    loss, correct = _InBatchSoftmax.apply(anchors, candidates, scale, same)  # type: ignore[no-untyped-call]
    if symmetric:
        other = None if same is None else same.flip(0)[:, same[1].argsort(stable=True)]
        back, _ = _InBatchSoftmax.apply(candidates[: len(anchors)], anchors, scale, other)  # type: ignore[no-untyped-call]
        loss = (loss + back) / 2
    return RankingLoss(loss, correct)


class _InBatchSoftmax(torch.autograd.Function):
    """Loss, and in the same pass the gradients of all three arguments."""

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
    """(2, M) int64: places (i, j) where the right side of j is known to go with the left of i.

    That is so where the right sides of i and j are one text, or their left sides are: j's response
    answers i as well. Ascending in i, without the diagonal.

    Args:
        left_keys: (B,) int64, equal where the left texts are.
        right_keys: (B,) int64, equal where the right texts are.

    >>> duplicates(np.array([1, 2, 1]), np.array([7, 7, 9])).tolist()
    [[0, 0, 1, 2], [1, 2, 0, 0]]
    """
    size = len(left_keys)
    places = [_equal_places(keys) for keys in (left_keys, right_keys)]
    flat = np.unique(np.concatenate([rows * size + columns for rows, columns in places]))
    found = np.stack([flat // size, flat % size])
    return found[:, found[0] != found[1]]


def _equal_places(keys: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """All (i, j) with `keys[i] == keys[j]` where that key occurs several times."""
    _, group, counts = np.unique(keys, return_inverse=True, return_counts=True)
    order = np.argsort(group, kind="stable")
    starts = np.cumsum(counts) - counts
    several = np.flatnonzero(counts[group] > 1)
    sizes = counts[group[several]]
    within = np.arange(sizes.sum()) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    return np.repeat(several, sizes), order[np.repeat(starts[group[several]], sizes) + within]
