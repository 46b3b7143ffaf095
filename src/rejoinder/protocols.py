"""Protocols for encoders: the methods that evaluation and adaptation call."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

Embeddings = NDArray[np.float32]
"""(N, D) float32. Row i is the embedding of sentence i."""


@runtime_checkable
class Encodes(Protocol):
    """An encoder: anything that turns sentences into vectors."""

    def encode(self, sentences: Sequence[str], /) -> Embeddings:
        """Returns the embeddings of `sentences`, (N, D) float32, in the same order."""
        ...


@runtime_checkable
class EncodesResponses(Encodes, Protocol):
    """An encoder with a response head: u · v' scores response selection."""

    def encode_response(self, sentences: Sequence[str], /) -> Embeddings:
        """Returns the response embeddings v' = F(E(y)), (N, D) float32, in the same order."""
        ...


@runtime_checkable
class Prepares(Encodes, Protocol):
    """An encoder that needs all sentences of a task before it encodes any, such as tf-idf."""

    def prepare(self, task: str, sentences: Sequence[str], /) -> None:
        """Learns from `sentences`, and forgets what it learned before."""
        ...


@runtime_checkable
class CachesItself(Encodes, Protocol):
    """An encoder that can cache its embeddings on disk, such as one called over HTTP."""

    def cache_in(self, folder: Path, /) -> None:
        """Caches embeddings in `folder` from now on, and uses those already there."""
        ...


@runtime_checkable
class ScoresPairs(Protocol):
    """An encoder with its own similarity that is not the cosine of two vectors."""

    def similarity_pairs(
        self, first: Sequence[str], second: Sequence[str], /
    ) -> NDArray[np.floating]:
        """Returns (N,) similarities of `first[i]` and `second[i]`, at most 1; higher is closer."""
        ...


@runtime_checkable
class Entails(Protocol):
    """An encoder that may have its own classifier for natural language inference."""

    @property
    def entails(self) -> bool:
        """Whether this encoder has the classifier."""
        ...

    def entail(self, premises: Sequence[str], hypotheses: Sequence[str], /) -> NDArray[np.floating]:
        """Returns (N, 3) probabilities: contradiction, neutral, entailment."""
        ...


@runtime_checkable
class TellsFittedPairs(Protocol):
    """An encoder that knows which graded pairs of sentences it was fitted on; internal."""

    def _fitted_pairs(self) -> NDArray[np.uint64]:
        """Returns (M,) uint64, the distinct `datasets.sts.pair_keys` of those pairs.

        The array is empty if the encoder was not fitted on pairs.
        """
        ...


@runtime_checkable
class Describes(Protocol):
    """An encoder that describes itself. The description goes into every result."""

    def describe(self) -> Mapping[str, object]:
        """Returns JSON values: at least `name` and `dim`; `sha256` and `training` if known.

        `max_tokens` is the most tokens of a text that the encoder reads, or null for no limit.
        """
        ...
