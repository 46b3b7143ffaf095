"""Pick the right response out of the batch (Yang et al. 2018, §2.1 and figure 2)."""

from torch import Tensor

from rejoinder.objectives.in_batch import RankingLoss, in_batch_softmax


def response_selection(
    inputs: Tensor,
    responses: Tensor,
    scale: Tensor,
    *,
    same: Tensor | None = None,
    symmetric: bool = False,
) -> RankingLoss:
    """Softmax over the batch's responses, cross-entropy against the diagonal.

    Args:
        inputs: (B, D) float32, embeddings u of the inputs.
        responses: (B, D) float32, v' = F(v) of the responses; row i answers input i.
        scale: () float32, what u·v' is multiplied by before the softmax; 1 in the paper.
        same: see `in_batch_softmax`: responses that are known to answer another input too.
        symmetric: also pick the right input for each response.
    """
    return in_batch_softmax(inputs, responses, scale, same=same, symmetric=symmetric)
