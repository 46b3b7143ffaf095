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
class Prepares(Encodes, Protocol):
    """An encoder that looks at all sentences of a task before it encodes any: tf-idf, SIF."""

    def prepare(self, task: str, sentences: Sequence[str], /) -> None:
        """Learn what is needed from `sentences`; replaces what was learned before."""
        ...


@runtime_checkable
class ScoresPairs(Protocol):
    """An encoder with a similarity of its own, that is no cosine of two vectors: soft cosine."""

    def similarity_pairs(
        self, first: Sequence[str], second: Sequence[str], /
    ) -> NDArray[np.floating]:
        """(N,) similarities of `first[i]` and `second[i]`; higher is more alike, at most 1."""
        ...


@runtime_checkable
class Entails(Protocol):
    """An encoder with a classifier of its own for natural language inference."""

    @property
    def entails(self) -> bool:
        """Whether this one has it."""
        ...

    def entail(self, premises: Sequence[str], hypotheses: Sequence[str], /) -> NDArray[np.floating]:
        """(N, 3) probabilities of contradiction, neutral and entailment, in this order."""
        ...


@runtime_checkable
class TellsFittedPairs(Protocol):
    """An encoder that knows which graded pairs of sentences it was fitted on."""

    def fitted_pairs(self) -> NDArray[np.uint64]:
        """(M,) uint64, each once: `datasets.sts.pair_keys` of those pairs; none: not fitted."""
        ...


@runtime_checkable
class Describes(Protocol):
    """An encoder that says who it is: its identity goes into every result."""

    def describe(self) -> Mapping[str, object]:
        """Plain JSON values: at least `name`, `dim`; where known `sha256`, `training`.

        `max_tokens` says how much of a text is read: a number of tokens, or null: all of it.
        """
        ...
