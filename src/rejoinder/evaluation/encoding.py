"""Calling an encoder that is not ours: each text once, and what comes back is checked."""

import json
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save

from rejoinder.errors import InputError
from rejoinder.evaluation.calls import call, first_not_finite, matrix_of, numbers_of, quoted
from rejoinder.files.atomic import new_file
from rejoinder.measures.arrays import Floats
from rejoinder.measures.similarity import cosines
from rejoinder.protocols import Embeddings, Encodes, EncodesResponses, Prepares, ScoresPairs

Rows = NDArray[np.int64]

_CACHED_VALUES = 250_000_000
"""Numbers that are kept for later tasks: 1 GB of float32. Beyond it a task encodes for itself."""


def encode_checked(
    encode: Callable[[Sequence[str]], Embeddings], sentences: Sequence[str], who: str
) -> tuple[Embeddings, str]:
    """(N, D) float32 embeddings of `sentences`, and the dtype in which they came.

    Raises:
        InputError: the encoder raises, returns another shape or kind, or a value that is not
            finite; the message begins with `who` and names the sentence.
    """
    returned = matrix_of(call(encode, sentences, who=who), len(sentences), who)
    with np.errstate(over="ignore"):  # what float32 can't hold is found below
        embeddings = np.asarray(returned, np.float32)
    wrong = first_not_finite(embeddings)
    if wrong is not None:
        raise InputError(
            f"{who} returned an embedding of sentence {wrong} ({quoted(sentences, wrong)}) that is "
            "not finite; finite float32 numbers are needed."
        )
    return embeddings, str(returned.dtype)


class Embedder:
    """An encoder as tasks see it: what one task had encoded, the next need not.

    An encoder that prepares itself for a task gives other vectors for each: nothing is kept then.
    """

    def __init__(self, encoder: Encodes, name: str | None = None) -> None:
        self.encoder = encoder
        self.name = name or type(encoder).__name__
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
            call(self.encoder.prepare, task, sentences, who=self.who(task, "prepare"))
            self._places, self._known, self._used = {}, None, 0

    def who(self, task: str, method: str) -> str:
        """The beginning of a sentence on what a method of the encoder did in a task."""
        return f"{task}: {method} of the encoder {self.name}"

    def embed(self, sentences: Sequence[str], task: str) -> Embeddings:
        """(N, D) float32 embeddings of `sentences`.

        Raises:
            InputError: see `encode_checked`; or the width is not that of earlier sentences.
        """
        new = [text for text in dict.fromkeys(sentences) if text not in self._places]
        if not new:
            return self._rows(sentences)
        embeddings = self._encode(new, task)
        if not self._room(embeddings):
            return self._joined(sentences, new, embeddings)
        self._keep(new, embeddings)
        return self._rows(sentences)

    def embed_distinct(self, sentences: Sequence[str], task: str) -> tuple[Embeddings, Rows]:
        """Embeddings of the distinct texts among `sentences`, and (N,) which row each one has.

        It holds every vector once, where `embed` copies one for each sentence.

        Raises:
            InputError: see `embed`.
        """
        if isinstance(self.encoder, Prepares) and not self._places:
            # the next task prepares anew: nothing is worth keeping
            return self._distinct(lambda texts: self._encode(texts, task), sentences)
        new = [text for text in dict.fromkeys(sentences) if text not in self._places]
        if new:
            embeddings = self._encode(new, task)
            if not self._room(embeddings):
                return self._distinct(lambda texts: self._joined(texts, new, embeddings), sentences)
            self._keep(new, embeddings)
        rows = np.array([self._places[text] for text in sentences], np.int64)
        return self._kept(), rows

    def embed_responses(self, sentences: Sequence[str], task: str) -> tuple[Embeddings, Rows]:
        """The same on the response side, where the encoder has one, else `embed_distinct`.

        Raises:
            InputError: see `encode_checked`.
        """
        encoder = self.encoder
        if not isinstance(encoder, EncodesResponses):
            return self.embed_distinct(sentences, task)
        who = self.who(task, "encode_response")
        return self._distinct(
            lambda texts: encode_checked(encoder.encode_response, texts, who)[0], sentences
        )

    @staticmethod
    def _distinct(
        encode: Callable[[Sequence[str]], Embeddings], sentences: Sequence[str]
    ) -> tuple[Embeddings, Rows]:
        places: dict[str, int] = {}
        rows = [places.setdefault(sentence, len(places)) for sentence in sentences]
        return encode(list(places)), np.array(rows, np.int64)

    def _encode(self, sentences: Sequence[str], task: str) -> Embeddings:
        who = self.who(task, "encode")
        embeddings, self.dtype = encode_checked(self.encoder.encode, sentences, who)
        if self._known is not None and embeddings.shape[1] != self._known.shape[1]:
            raise InputError(
                f"{who} returned vectors of {embeddings.shape[1]} numbers, and earlier of "
                f"{self._known.shape[1]}; one width for all texts is needed."
            )
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
        return self._kept()[[self._places[text] for text in sentences]]

    def _kept(self) -> Embeddings:
        if self._known is None:
            raise InputError("nothing to encode: the task has no sentences.")
        return self._known

    def similarity(
        self, first: Sequence[str], second: Sequence[str], task: str
    ) -> tuple[Floats, list[str]]:
        """(N,) float64 cosine of each pair, or the encoder's own similarity where it has one.

        Returns:
            The similarities, and notes on them for the result.

        Raises:
            InputError: a similarity or an embedding is not usable.
        """
        if isinstance(self.encoder, ScoresPairs):
            who = self.who(task, "similarity_pairs")
            said = call(self.encoder.similarity_pairs, first, second, who=who)
            values = np.asarray(numbers_of(said, who, "(N,) numbers, one a pair, are"), np.float64)
            if values.shape != (len(first),):
                raise InputError(
                    f"{who} returned an array of shape {values.shape} for {len(first)} pairs; (N,) "
                    "is needed, a number a pair."
                )
            if not np.isfinite(values).all():
                raise InputError(
                    f"{who} returned a similarity of pair {int(np.argmin(np.isfinite(values)))} "
                    "that is not finite; finite numbers are needed."
                )
            return values, ["the similarity is the encoder's own, similarity_pairs"]
        both = self.embed([*first, *second], task)
        cosine, zeros = cosines(both[: len(first)], both[len(first) :])
        notes = [f"{zeros} pairs hold a zero vector; their cosine is 0"] if zeros else []
        return cosine, notes
