"""`Adapted`: any encoder with an adaptation applied to its embeddings."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rejoinder.errors import InputError, ModelError
from rejoinder.models.adaptation.linear import Adaptation
from rejoinder.protocols import (
    CachesItself,
    Describes,
    Embeddings,
    Encodes,
    EncodesResponses,
    Entails,
    Prepares,
    ScoresPairs,
)


class Adapted:
    """An encoder whose embeddings are W u, where u is the embedding of the encoder it wraps.

    It has the methods `prepare`, `cache_in`, `encode_response` and `entail` only if the wrapped
    encoder has them, because callers ask an encoder for its methods (`protocols.py`). `entail` is
    the wrapped encoder's own, without the map.

    Attributes:
        adaptation: the map W, what it was fitted on, and how.
    """

    def __init__(self, encoder: Encodes, adaptation: Adaptation) -> None:
        """Wraps an encoder.

        Raises:
            InputError: `encoder` is not an encoder, or `adaptation` not an adaptation.
            ModelError: the encoder can't be adapted, or it describes itself with another
                dimension than the adaptation has. If it describes none, `encode` raises this.
        """
        if not isinstance(adaptation, Adaptation):
            raise InputError(
                f"an adaptation is needed, as read_adaptation(path) returns it; got a "
                f"{type(adaptation).__name__}."
            )
        refuse_unadaptable(encoder)
        dim = described(encoder).get("dim")
        if isinstance(dim, int):
            adaptation.check_dim(dim)
        self._encoder = encoder
        self.adaptation = adaptation
        if isinstance(encoder, Prepares):
            self.prepare = encoder.prepare
        if isinstance(encoder, CachesItself):
            self.cache_in = encoder.cache_in
        if isinstance(encoder, EncodesResponses):
            self._encode_response = encoder.encode_response
            self.encode_response = self._responses
        if isinstance(encoder, Entails):
            self.entails, self.entail = encoder.entails, encoder.entail

    def describe(self) -> dict[str, Any]:
        """Returns the description of the wrapped encoder with the key `adaptation` added."""
        return {**described(self._encoder), "adaptation": self.adaptation.describe()}

    def _fitted_pairs(self) -> NDArray[np.uint64]:
        """Returns (M,) uint64 keys of the pairs that the adaptation was fitted on."""
        return self.adaptation.fitted_pairs

    def encode(self, sentences: Sequence[str], /) -> Embeddings:
        """Returns (N, D) float32 rows W u of length 1. Zero rows stay zero.

        Raises:
            ModelError: the encoder's embeddings have another dimension.
        """
        return self.adaptation.apply(np.asarray(self._encoder.encode(sentences), np.float32))

    def _responses(self, sentences: Sequence[str], /) -> Embeddings:
        """Returns (N, D) float32 rows W⁻ᵀ v', not of length 1. They rank as without W."""
        rows = np.asarray(self._encode_response(sentences), np.float32)
        return self.adaptation.apply_responses(rows)


def refuse_unadaptable(encoder: Encodes) -> None:
    """Refuses an encoder whose similarities a map of its vectors would not change, or change twice.

    Raises:
        InputError: it has no method `encode`.
        ModelError: it scores pairs itself, or is adapted already.
    """
    if isinstance(encoder, type | str) or not isinstance(encoder, Encodes):
        raise InputError(
            f"an encoder is needed, an object with encode(list of strings); got {encoder!r}. "
            "SentenceEncoder(path) opens a model folder."
        )
    about = described(encoder)
    if isinstance(encoder, ScoresPairs):
        raise ModelError(
            f"{about['name']} can't be adapted: it scores pairs itself, not by cosines of vectors."
        )
    if about.get("adaptation"):
        raise ModelError(f"{about['name']} is adapted already; adapt the original model.")


def described(encoder: Encodes) -> dict[str, Any]:
    """Returns what an encoder says of itself, at least the name of its class."""
    about = encoder.describe() if isinstance(encoder, Describes) else {}
    return {"name": type(encoder).__name__, **about}
