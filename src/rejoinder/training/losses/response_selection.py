"""The response side of response selection (Yang et al. 2018, §2.1, figure 2)."""

from torch import Tensor, nn

from rejoinder.encoders.nn.dense import unit_rows
from rejoinder.encoders.nn.dense_math import lengths


def respond(head: nn.Module, embeddings: Tensor) -> Tensor:
    """Returns (N, D) v' = F(v), unit rows, of (N, D) embeddings; zero rows stay zero."""
    return unit_rows(head(embeddings), lengths(embeddings.detach()) > 0)
