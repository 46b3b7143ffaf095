"""Two sentences that describe one thing find each other in the batch."""

from torch import Tensor

from rejoinder.objectives.in_batch import RankingLoss, in_batch_softmax


def paraphrase(
    first: Tensor, second: Tensor, scale: Tensor, *, same: Tensor | None = None
) -> RankingLoss:
    """Softmax over the other sides of the batch, in both directions: neither side comes first.

    Args:
        first: (B, D) float32 embeddings u.
        second: (B, D) float32 embeddings; row i means what row i of `first` does.
        scale: () float32, what u·v is multiplied by before the softmax.
        same: see `in_batch_softmax`: equal sentences.
    """
    return in_batch_softmax(first, second, scale, same=same, symmetric=True)
