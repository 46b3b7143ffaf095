"""Response selection: pick the right response in the batch (Yang et al. 2018, §2.1, figure 2)."""

from torch import Tensor, nn

from rejoinder.encoders.dense import unit_rows
from rejoinder.objectives.in_batch import StepLoss, in_batch_softmax


def respond(head: nn.Module, embeddings: Tensor) -> Tensor:
    """Returns (N, D) v' = F(v), unit rows, of (N, D) embeddings; zero rows stay zero."""
    return unit_rows(head(embeddings), embeddings.detach().any(dim=1))


def response_selection(
    inputs: Tensor,
    responses: Tensor,
    scale: Tensor,
    *,
    same: Tensor | None = None,
    symmetric: bool = False,
) -> StepLoss:
    """Softmax over the responses of the batch, cross-entropy against the diagonal.

    Args:
        inputs: (B, D) float32, embeddings u of the inputs.
        responses: (B, D) float32, v' = F(v) of the responses; row i answers input i.
        scale: () float32, factor of u·v' in the softmax; 1 in the paper.
        same: see `in_batch_softmax`: responses known to answer another input as well.
        symmetric: also pick the right input for each response.
    """
    return in_batch_softmax(inputs, responses, scale, same=same, symmetric=symmetric)
