"""Dense layers: the network of the DAN, and the heads of objectives.

The interface of an encoder's module to training and the torch runtime.

Tensor shapes of encoder kinds that do not list them: read off the module, without its memory.

Batches for encoders that read tokens in order: their sentences sorted by length, in parts.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Protocol

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from rejoinder.encoders import EncoderKind, Shapes, TextSizes
from rejoinder.encoders.nn.sparse import OnDevice, SparseTable
from rejoinder.encoders.settings import Activation
from rejoinder.errors import ConfigError, ModelError
from rejoinder.io.schema import check
from rejoinder.text.ragged import Padded, Ragged, padded_groups

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


class TrainableEncoder(Protocol):
    """The extension point for encoders: an `nn.Module` with these members.

    Built from (rows, config, generator): the number of different token ids, the settings of its
    kind, and the generator that all of its weights are drawn from.
    """

    dim: int
    """Embedding dimension."""

    def collate(self, batch: Ragged) -> Any:
        """Returns what `forward` reads, with a method `to(device)`.

        Runs in another thread: NumPy and `torch.from_numpy` only, no gradients.
        """
        ...

    def __call__(self, batch: Any, *, normalize: bool = True) -> Tensor:
        """(N, dim) float32: unit rows if `normalize`, and zero rows for empty sentences."""
        ...

    def tables(self) -> list[SparseTable]:
        """Returns the tables of which the optimiser updates only the rows that a step touched."""
        ...


BOOKKEEPING = ".seen"
"""Ending of buffers that training keeps and a model folder does not."""


def encoder_config(kind: EncoderKind, values: Mapping[str, Any], where: str) -> Any:
    """Returns the config of an encoder from the table `encoder` of its `config.json`.

    Raises:
        ModelError: a size is not valid for the kind.
    """
    try:
        return check(kind.config_class, dict(values), where)
    except ConfigError as error:
        raise ModelError(f"{error} The folder is damaged.") from None


def shapes_of(kind: EncoderKind, encoder: Mapping[str, Any], text: TextSizes, where: str) -> Shapes:
    """Returns the shapes of the tensors of `kind`; see `EncoderKind.shapes`."""
    config = encoder_config(kind, encoder, f"{where}: encoder")
    rows, buckets = text.rows, text.bigram_buckets
    with torch.device("meta"):
        module = kind.module_class(rows + buckets, config, torch.Generator())
    shapes = {
        name: tuple(tensor.shape)
        for name, tensor in module.state_dict().items()
        if not name.endswith(BOOKKEEPING)
    }
    if buckets and kind.table is not None:
        shapes[kind.table] = (-1, *shapes[kind.table][1:])
        shapes["bigram_rows"] = (buckets,)
    return shapes


@dataclass(frozen=True, slots=True)
class PaddedGroup(OnDevice):
    """G sentences of similar lengths, padded to T positions, the length of the longest."""

    ids: Tensor
    """(G, T) int64, 0 where padded."""
    present: Tensor
    """(G, T) bool, false where padded."""


@dataclass(frozen=True, slots=True)
class SortedBatch(OnDevice):
    """A batch of N sentences in parts, without its empty sentences."""

    count: int
    """N, empty sentences included."""
    order: Tensor
    """(F,) int64, the indices of the sentences in the order of the parts."""
    parts: tuple[Any, ...]
    """What the encoder reads at a time, such as a `PaddedGroup`."""


def sorted_batch(count: int, groups: Sequence[Padded], parts: Iterable[Any]) -> SortedBatch:
    """Returns `parts`, which hold the sentences of `groups`, as a batch of `count` sentences."""
    order = np.concatenate([np.empty(0, np.int64), *(group.sentences for group in groups)])
    return SortedBatch(count, torch.from_numpy(order), tuple(parts))


def pad_groups(batch: Ragged, positions: int, overhead: int) -> SortedBatch:
    """Returns a batch whose parts are the groups of `text.ragged.padded_groups`. NumPy only."""
    groups = padded_groups(batch, positions, overhead)
    tensors = ((torch.from_numpy(each.ids), torch.from_numpy(each.present)) for each in groups)
    return sorted_batch(len(batch), groups, (PaddedGroup(*pair) for pair in tensors))


def encode_parts(
    batch: SortedBatch, encode: Callable[[Any], Tensor], dim: int, *, normalize: bool
) -> Tensor:
    """Returns (N, dim) float32 in the order of the batch, with zero rows for empty sentences.

    `encode` maps a part to the rows of its sentences, not normalised.
    """
    out = torch.zeros(batch.count, dim, dtype=torch.float32, device=batch.order.device)
    if not batch.parts:
        return out
    vectors = torch.cat([encode(part) for part in batch.parts])  # (F, dim)
    if normalize:
        vectors = unit_rows(vectors, torch.ones_like(batch.order, dtype=torch.bool))
    return out.index_copy(0, batch.order, vectors.float())
