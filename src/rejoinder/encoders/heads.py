"""The dense layers behind a pooled sentence: the DNN of the DAN, the head of the response side."""

from collections.abc import Callable, Sequence
from itertools import pairwise

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from rejoinder.encoders.settings import Activation

ACTIVATIONS: dict[Activation, Callable[[Tensor], Tensor]] = {
    "gelu": F.gelu,
    "none": lambda x: x,
    "relu": F.relu,
    "tanh": torch.tanh,
}


class FeedForward(nn.Module):
    """Linear layers with an activation between them and none after the last.

    With `residual` the input is added to the output: as it is where the widths are equal, through
    a linear map of its own (`skip`) where they are not. Without layers it is the identity.
    """

    def __init__(
        self,
        width: int,
        layers: Sequence[int],
        activation: Activation,
        *,
        residual: bool,
        generator: torch.Generator,
    ) -> None:
        """Layers of the sizes given on inputs of `width`."""
        super().__init__()
        sizes = [width, *layers]
        self.dim = sizes[-1]
        self.activation = ACTIVATIONS[activation]
        self.layers = nn.ModuleList(
            _linear(inside, outside, generator) for inside, outside in pairwise(sizes)
        )
        self.residual = residual and bool(layers)
        self.skip = (
            _linear(width, self.dim, generator, bias=False)
            if self.residual and width != self.dim
            else None
        )

    def forward(self, x: Tensor) -> Tensor:
        """(N, width) to (N, dim)."""
        y = x
        for number, layer in enumerate(self.layers):
            y = layer(y if number == 0 else self.activation(y))
        if not self.residual:
            return y
        return y + (x if self.skip is None else self.skip(x))


def unit_rows(x: Tensor, present: Tensor) -> Tensor:
    """(N, dim) with rows of length 1; rows where `present` (N,) is false are zero.

    A sentence without known features must not depend on biases: its embedding is zero.
    """
    return F.normalize(x.float(), dim=1) * present.unsqueeze(1).to(torch.float32)


def _linear(
    inside: int, outside: int, generator: torch.Generator, *, bias: bool = True
) -> nn.Linear:
    """A linear layer drawn from `generator` (Glorot, uniform), its bias zero."""
    layer = nn.Linear(inside, outside, bias=bias)
    bound = (6.0 / (inside + outside)) ** 0.5
    with torch.no_grad():
        layer.weight.uniform_(-bound, bound, generator=generator)
        if bias:
            layer.bias.zero_()
    return layer
