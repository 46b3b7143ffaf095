"""Pick the right response out of the batch (Yang et al. 2018, §2.1 and figure 2)."""

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor


@dataclass(frozen=True)
class ResponseLoss:
    """What a step of response selection yields."""

    loss: Tensor
    """() float32, mean cross-entropy in nats."""
    correct: Tensor
    """() int64, inputs whose own response scores highest in the batch (masked ones aside)."""


def response_selection(
    inputs: Tensor,
    responses: Tensor,
    scale: Tensor | float,
    *,
    same: Tensor | None = None,
    symmetric: bool = False,
) -> ResponseLoss:
    """Softmax over the batch's responses, cross-entropy against the diagonal.

    Args:
        inputs: (B, D) float32, embeddings u of the inputs.
        responses: (B, D) float32, v' of the responses; row i answers input i.
        scale: what u·v' is multiplied by before the softmax; 1 in the paper.
        same: (B, B) bool, pairs off the diagonal that are no true negatives (the response of j
            answers input i too): they are left out of the softmax.
        symmetric: also pick the right input for each response, and take the mean of both losses.
    """
    scores = (inputs @ responses.T).float() * scale  # (B, B): row i, input i against all responses
    if same is not None:
        scores = scores.masked_fill(same, float("-inf"))
    target = torch.arange(len(scores), device=scores.device)
    loss = F.cross_entropy(scores, target)
    if symmetric:
        loss = (loss + F.cross_entropy(scores.T, target)) / 2
    return ResponseLoss(loss, (scores.detach().argmax(dim=1) == target).sum())


def duplicates(input_keys: Tensor, response_keys: Tensor) -> Tensor:
    """(B, B) bool: j's response is known to answer i as well, so that it is no negative of i.

    That is so where the responses of i and j are one text, or their inputs are.

    Args:
        input_keys: (B,) int64, equal where the inputs' texts are.
        response_keys: (B,) int64, equal where the responses' texts are.

    >>> duplicates(torch.tensor([1, 2, 1]), torch.tensor([7, 7, 9])).int().tolist()
    [[0, 1, 1], [1, 0, 0], [1, 0, 0]]
    """
    same = (response_keys.unsqueeze(1) == response_keys) | (input_keys.unsqueeze(1) == input_keys)
    return same.fill_diagonal_(False)
