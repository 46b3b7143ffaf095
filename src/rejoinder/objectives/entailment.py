"""Natural language inference on embeddings: a classifier, and the form that ranks."""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from rejoinder.encoders.heads import FeedForward
from rejoinder.objectives.in_batch import RankingLoss, in_batch_softmax
from rejoinder.objectives.settings import EntailmentConfig

CLASSES = 3


class EntailmentHead(nn.Module):
    """Pairs of embeddings to scores of three classes (Yang et al. 2018, figure 3)."""

    def __init__(self, dim: int, config: EntailmentConfig, generator: torch.Generator) -> None:
        super().__init__()
        self.dnn = FeedForward(
            4 * dim,
            (config.hidden, CLASSES),
            config.activation,
            residual=False,
            generator=generator,
        )

    def forward(self, premises: Tensor, hypotheses: Tensor) -> Tensor:
        """(B, 3) scores of (B, D) unit rows."""
        return self.dnn(pair_features(premises, hypotheses))  # type: ignore[no-any-return]


def pair_features(premises: Tensor, hypotheses: Tensor) -> Tensor:
    """(B, 4 D): sqrt(D) times (u1, u2, |u1 - u2|, u1 * u2) of unit rows; most entries about 1.

    The products stay small, about 1 / sqrt(D): at the size of the others they are learned by heart
    (docs/recipes.md).
    """
    u1, u2 = premises, hypotheses
    root: float = u1.shape[1] ** 0.5
    return torch.cat([u1, u2, (u1 - u2).abs(), u1 * u2], dim=1) * root


def classification(scores: Tensor, labels: Tensor) -> RankingLoss:
    """Cross-entropy of (B, 3) scores against (B,) int64 labels, and how many are right."""
    loss = F.cross_entropy(scores.float(), labels)
    return RankingLoss(loss, (scores.argmax(dim=1) == labels).sum())


def entailment_ranking(
    premises: Tensor,
    hypotheses: Tensor,
    scale: Tensor,
    *,
    same: Tensor | None = None,
    symmetric: bool = False,
) -> RankingLoss:
    """An entailed hypothesis finds its premise, before contradictions and the rest of the batch.

    Args:
        premises: (B, D) float32 embeddings.
        hypotheses: (B + E, D): the entailed one of each premise, then E that contradict one.
        scale: () float32, what u·v is multiplied by before the softmax.
        same: see `in_batch_softmax`: one premise or one hypothesis in several rows.
        symmetric: also pick the right premise for each entailed hypothesis.
    """
    return in_batch_softmax(premises, hypotheses, scale, same=same, symmetric=symmetric)
