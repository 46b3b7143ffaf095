"""Calling an encoder that is not ours: each text once, and what comes back is checked."""

import json
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save

from rejoinder.errors import InputError
from rejoinder.evaluation.metrics import Array, cosines
from rejoinder.files.atomic import new_file
from rejoinder.protocols import Embeddings, Encodes, EncodesResponses, Prepares, ScoresPairs

_CACHED_VALUES = 250_000_000
"""Numbers that are kept for later tasks: 1 GB of float32. Beyond it a task encodes for itself."""


def encode_checked(
    encode: Callable[[Sequence[str]], Embeddings], sentences: Sequence[str], task: str
) -> Embeddings:
    """(N, D) float32 embeddings of `sentences`, each different one encoded once.

    Raises:
        InputError: the encoder returns another shape, or a value that is not finite; the message
            names the task and the sentence.
    """
    places: dict[str, int] = {}
    rows = [places.setdefault(sentence, len(places)) for sentence in sentences]
    embeddings = np.asarray(encode(list(places)), np.float32)
    if embeddings.ndim != 2 or len(embeddings) != len(places):
        raise InputError(
            f"{task}: the encoder returned an array of shape {embeddings.shape} for {len(places)} "
            "sentences; (N, D) is needed."
        )
    finite = np.isfinite(embeddings).all(axis=1)
    if not finite.all():
        wrong = int(np.argmin(finite))
        raise InputError(
            f"{task}: the embedding of sentence {rows.index(wrong)} "
            f"({list(places)[wrong][:60]!r}) is not finite."
        )
    return embeddings[rows]


class Embedder:
    """An encoder as tasks see it: what one task had encoded, the next need not.

    An encoder that prepares itself for a task gives other vectors for each: nothing is kept then.
    """

    def __init__(self, encoder: Encodes) -> None:
        self.encoder = encoder
        self._places: dict[str, int] = {}
        self._known: Embeddings | None = None
        self._used = 0
        self.dtype: str | None = None
        """Of what the encoder returned; tasks compute on float32. None before it was asked."""

    def load(self, path: Path) -> None:
        """Take up what `save` wrote; a file that is not there is an empty one.

        Raises:
            InputError: the file is damaged.
        """
        if not path.is_file() or isinstance(self.encoder, Prepares):
            return
        try:
            with safe_open(path, "numpy") as file:
                said = file.metadata() or {}
                texts, dtype = json.loads(said["texts"]), said["dtype"]
                embeddings = file.get_tensor("embeddings")
        except (OSError, KeyError, ValueError, SafetensorError) as error:
            raise InputError(f"{path} is damaged: {error}; remove it.") from None
        if len(texts) != len(embeddings):
            raise InputError(f"{path} is damaged: {len(texts)} texts; remove it.")
        self._keep(texts, embeddings)
        self.dtype = dtype

    def save(self, path: Path) -> None:
        """Write what was encoded, unless the encoder prepares itself for each task."""
        if self._known is None or isinstance(self.encoder, Prepares):
            return
        said = {"texts": json.dumps(list(self._places)), "dtype": str(self.dtype)}
        with new_file(path) as file:
            file.write(save({"embeddings": self._known[: self._used]}, said))

    def prepare(self, task: str, sentences: Sequence[str]) -> None:
        """To be called with all sentences of a task before it embeds any."""
        if isinstance(self.encoder, Prepares):
            self.encoder.prepare(task, sentences)
            self._places, self._known, self._used = {}, None, 0

    def embed(self, sentences: Sequence[str], task: str) -> Embeddings:
        """(N, D) float32 embeddings of `sentences`.

        Raises:
            InputError: see `encode_checked`; or the width is not that of earlier sentences.
        """
        new = [text for text in dict.fromkeys(sentences) if text not in self._places]
        if not new:
            return self._rows(sentences)
        embeddings = encode_checked(self._encode, new, task)
        if self._known is not None and embeddings.shape[1] != self._known.shape[1]:
            raise InputError(
                f"{task}: the encoder returned vectors of {embeddings.shape[1]} numbers, and "
                f"earlier of {self._known.shape[1]}."
            )
        if not self._room(embeddings):
            return self._joined(sentences, new, embeddings)
        self._keep(new, embeddings)
        return self._rows(sentences)

    def embed_responses(self, sentences: Sequence[str], task: str) -> Embeddings:
        """(N, D) float32 embeddings on the response side, where the encoder has one, else `embed`.

        Raises:
            InputError: see `encode_checked`.
        """
        if isinstance(self.encoder, EncodesResponses):
            return encode_checked(self.encoder.encode_response, sentences, task)
        return self.embed(sentences, task)

    def _encode(self, sentences: Sequence[str]) -> Embeddings:
        embeddings = np.asarray(self.encoder.encode(sentences))
        self.dtype = str(embeddings.dtype)
        return embeddings

    def _joined(
        self, sentences: Sequence[str], new: Sequence[str], embeddings: Embeddings
    ) -> Embeddings:
        """Rows of what is kept and of `new`, which there is no room to keep."""
        fresh = dict(zip(new, range(len(new)), strict=True))
        out = np.empty((len(sentences), embeddings.shape[1]), np.float32)
        for row, text in enumerate(sentences):
            place = fresh.get(text)
            if place is not None:
                out[row] = embeddings[place]
            elif self._known is not None:
                out[row] = self._known[self._places[text]]
        return out

    def _room(self, embeddings: Embeddings) -> bool:
        return bool((self._used + len(embeddings)) * embeddings.shape[1] <= _CACHED_VALUES)

    def _keep(self, texts: Sequence[str], embeddings: Embeddings) -> None:
        needed = self._used + len(texts)
        if self._known is None or needed > len(self._known):
            grown = np.empty((max(needed, 2 * self._used), embeddings.shape[1]), np.float32)
            if self._known is not None:
                grown[: self._used] = self._known[: self._used]
            self._known = grown
        self._known[self._used : needed] = embeddings
        self._places.update(zip(texts, range(self._used, needed), strict=True))
        self._used = needed

    def _rows(self, sentences: Sequence[str]) -> Embeddings:
        if self._known is None:
            raise InputError("nothing to encode: the task has no sentences.")
        return self._known[[self._places[text] for text in sentences]]

    def similarity(
        self, first: Sequence[str], second: Sequence[str], task: str
    ) -> tuple[Array, list[str]]:
        """(N,) float64 cosine of each pair, or the encoder's own similarity where it has one.

        Returns:
            The similarities, and notes on them for the result.

        Raises:
            InputError: a similarity or an embedding is not usable.
        """
        if isinstance(self.encoder, ScoresPairs):
            values = np.asarray(self.encoder.similarity_pairs(first, second), np.float64)
            if values.shape != (len(first),) or not np.isfinite(values).all():
                raise InputError(
                    f"{task}: similarity_pairs returned {values.shape} values for {len(first)} "
                    "pairs, or one that is not finite; (N,) finite numbers are needed."
                )
            return values, ["the similarity is the encoder's own, similarity_pairs"]
        both = self.embed([*first, *second], task)
        cosine, zeros = cosines(both[: len(first)], both[len(first) :])
        notes = [f"{zeros} pairs hold a zero vector; their cosine is 0"] if zeros else []
        return cosine, notes
