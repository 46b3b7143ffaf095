"""Natural language inference as classification of pairs of embeddings."""

import torch
import torch.nn.functional as F
from torch import Tensor

from rejoinder.training.losses.in_batch import StepLoss


def pair_features(premises: Tensor, hypotheses: Tensor) -> Tensor:
    """Returns (B, 4 D): sqrt(D) times (u1, u2, |u1 - u2|, u1 * u2) of (B, D) unit rows.

    Yang et al. 2018, figure 3. Most entries are about 1. The products stay small, about
    1 / sqrt(D): scaled up to the size of the others, they are memorised
    (docs/measurements/recipes.md).
    """
    u1, u2 = premises, hypotheses
    root: float = u1.shape[1] ** 0.5
    return torch.cat([u1, u2, (u1 - u2).abs(), u1 * u2], dim=1) * root


def classification(scores: Tensor, labels: Tensor) -> StepLoss:
    """Returns the cross-entropy of (B, C) scores against (B,) int64 labels."""
    loss = F.cross_entropy(scores.float(), labels)
    return StepLoss(loss, (scores.argmax(dim=1) == labels).sum())
