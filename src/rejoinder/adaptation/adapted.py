"""`Adapted`: anything that encodes, with an adaptation behind it."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rejoinder.adaptation.linear import Adaptation
from rejoinder.errors import InputError, ModelError
from rejoinder.protocols import (
    Describes,
    Embeddings,
    Encodes,
    EncodesResponses,
    Entails,
    Prepares,
    ScoresPairs,
)


class Adapted:
    """An encoder whose embeddings are W u.

    It has `prepare`, `encode_response` and `entail` where the encoder has them, and no others:
    whoever asks an encoder for a method (`protocols.py`) is told the truth. `entail` is the
    encoder's own, without the map.
    """

    def __init__(self, encoder: Encodes, adaptation: Adaptation) -> None:
        """The encoder with `adaptation` behind it.

        Raises:
            InputError: something is no encoder, or no adaptation.
            ModelError: the encoder can't be adapted; or it says a width that is not that of the
                adaptation. One that says none is found out when it encodes.
        """
        if not isinstance(adaptation, Adaptation):
            raise InputError(
                f"an adaptation is needed, as read_adaptation(path) returns it; got a "
                f"{type(adaptation).__name__}."
            )
        refuse_unadaptable(encoder)
        dim = described(encoder).get("dim")
        if isinstance(dim, int) and dim != adaptation.dim:
            adaptation.project(np.empty((0, dim), np.float32))  # says what misfits
        self._encoder = encoder
        self._adaptation = adaptation
        if isinstance(encoder, Prepares):
            self.prepare = encoder.prepare
        if isinstance(encoder, EncodesResponses):
            self._encode_response = encoder.encode_response
            self.encode_response = self._responses
        if isinstance(encoder, Entails):
            self.entails, self.entail = encoder.entails, encoder.entail

    def describe(self) -> dict[str, Any]:
        """What the encoder says of itself, its class's name at least, and `adaptation`."""
        return {**described(self._encoder), "adaptation": self._adaptation.describe()}

    def fitted_pairs(self) -> NDArray[np.uint64]:
        """(M,) uint64 keys of the pairs that the adaptation was fitted on."""
        return self._adaptation.fitted_pairs

    def encode(self, sentences: Sequence[str], /) -> Embeddings:
        """(N, D) float32, W u as rows of length 1; zero rows stay zero.

        Raises:
            ModelError: the encoder's embeddings are of another width.
        """
        return self._adaptation.apply(np.asarray(self._encoder.encode(sentences), np.float32))

    def _responses(self, sentences: Sequence[str], /) -> Embeddings:
        """(N, D) float32, W⁻ᵀ v': they rank as without the adaptation; not of length 1."""
        rows = np.asarray(self._encode_response(sentences), np.float32)
        return self._adaptation.apply_responses(rows)


def refuse_unadaptable(encoder: Encodes) -> None:
    """Refuse an encoder that a map of its vectors would do nothing or too much for.

    Raises:
        InputError: it has no method `encode`.
        ModelError: it compares pairs by itself, or is adapted already.
    """
    if isinstance(encoder, type | str) or not isinstance(encoder, Encodes):
        raise InputError(
            f"an encoder is needed, an object with encode(list of strings); got {encoder!r}. "
            "A model folder is opened with SentenceEncoder.load(path)."
        )
    about = described(encoder)
    if isinstance(encoder, ScoresPairs):
        raise ModelError(
            f"{about['name']} compares sentences by a similarity of its own, not by the cosine of "
            "vectors: it can't be adapted."
        )
    if about.get("adaptation"):
        raise ModelError(f"{about['name']} is adapted already; take the model that it was made of.")


def described(encoder: Encodes) -> dict[str, Any]:
    """What an encoder says of itself; at least the name of its class."""
    about = encoder.describe() if isinstance(encoder, Describes) else {}
    return {"name": type(encoder).__name__, **about}
