"""Dense layers: the network of the DAN, and the heads of objectives."""

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

    With `residual` the input is added to the output, through a linear map (`skip`) where the
    widths differ. Without layers it is the identity.
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
        """Layers of the given sizes on inputs of `width`, drawn from `generator`."""
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

    def first_entries(self, x: Tensor) -> Tensor:
        """Returns (N, n), the first `n` entries of the outputs for (N, n) `x` padded with zeros.

        Products that zeros and unread outputs would take are left out.
        """
        size, last = x.shape[1], len(self.layers) - 1
        y = x
        for number, layer in enumerate(self.layers):
            y = _block(
                layer,
                y if number == 0 else self.activation(y),
                outside=size if number == last else None,
                inside=size if number == 0 else None,
            )
        if not self.residual:
            return y
        return y + (x if self.skip is None else _block(self.skip, x, size, size))


def _block(layer: nn.Module, x: Tensor, outside: int | None, inside: int | None) -> Tensor:
    """Applies the first `outside` units of a linear layer to its first `inside` inputs."""
    assert isinstance(layer, nn.Linear)  # noqa: S101 -- for the type checker
    bias = None if layer.bias is None else layer.bias[:outside]
    return F.linear(x, layer.weight[:outside, :inside], bias)


def unit_rows(x: Tensor, present: Tensor) -> Tensor:
    """Returns (N, dim) float32 rows of length 1; rows where `present` (N,) is false become zero.

    The embedding of a sentence without known tokens must not depend on biases: it is zero.
    """
    x = x.float()
    lengths = torch.linalg.vector_norm(x, dim=1, keepdim=True).clamp_min(1e-12)  # as F.normalize
    rows: Tensor = x * (present.unsqueeze(1) / lengths)
    return rows


def _linear(
    inside: int, outside: int, generator: torch.Generator, *, bias: bool = True
) -> nn.Linear:
    """Returns a linear layer drawn from `generator` by Glorot's uniform rule, with a zero bias."""
    layer = nn.Linear(inside, outside, bias=bias)
    bound = (6.0 / (inside + outside)) ** 0.5
    with torch.no_grad():
        layer.weight.uniform_(-bound, bound, generator=generator)
        if bias:
            layer.bias.zero_()
    return layer
