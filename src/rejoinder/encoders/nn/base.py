"""The interface of an encoder's module to training and the torch runtime."""

from typing import Any, Protocol

from torch import Tensor

from rejoinder.encoders.nn.sparse import SparseTable
from rejoinder.text.ragged import Ragged


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
