"""What "encodes" means: the one protocol between encoders, ours or not, and whoever uses them."""

from collections.abc import Mapping, Sequence
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

Embeddings = NDArray[np.float32]
"""(N, D) float32: row i is the embedding of sentence i."""


@runtime_checkable
class Encodes(Protocol):
    """Anything that turns sentences into vectors."""

    def encode(self, sentences: Sequence[str], /) -> Embeddings:
        """Embeddings of `sentences`, shape (N, D) float32, in the order given."""
        ...


@runtime_checkable
class EncodesResponses(Encodes, Protocol):
    """An encoder with a head of its own for the response side: u · v' scores response selection."""

    def encode_response(self, sentences: Sequence[str], /) -> Embeddings:
        """Response embeddings v' = F(E(y)), shape (N, D) float32, in the order given."""
        ...


@runtime_checkable
class Describes(Protocol):
    """An encoder that says who it is: its identity goes into every result."""

    def describe(self) -> Mapping[str, object]:
        """Plain JSON values: at least `name`, `dim`; where known `sha256`, `training`."""
        ...
