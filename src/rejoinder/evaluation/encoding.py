"""Calls any encoder: encodes each text once, and checks what comes back."""

from collections.abc import Callable, Sequence

import numpy as np

from rejoinder.errors import InputError
from rejoinder.evaluation.calls import call, embeddings_of, similarities_of
from rejoinder.evaluation.vector_cache import VectorCache
from rejoinder.measures import Floats, Indices, cosines
from rejoinder.protocols import Embeddings, Encodes, EncodesResponses, Prepares, ScoresPairs

_CACHED_VALUES = 250_000_000
"""Numbers that are kept for later tasks: 1 GB of float32. Texts beyond it are encoded again."""


def encode_checked(
    encode: Callable[[Sequence[str]], Embeddings], sentences: Sequence[str], who: str
) -> tuple[Embeddings, str]:
    """Returns (N, D) float32 embeddings of `sentences`, and the dtype that the encoder returned.

    `encode` is a method of an encoder. Error messages begin with `who`.

    Raises:
        InputError: the encoder raises, returns another shape or type, or a value that is not
            finite. The message names the sentence.
    """
    return embeddings_of(call(encode, sentences, who=who), sentences, who)


class Embedder:
    """The encoder that tasks see. It keeps embeddings, so that each text is encoded once.

    An encoder that prepares itself for a task gives other vectors for each task. Its embeddings are
    kept within a task only.
    """

    def __init__(
        self, encoder: Encodes, name: str | None = None, cache: VectorCache | None = None
    ) -> None:
        """Wraps an encoder. `cache` keeps its embeddings on disk."""
        self.encoder = encoder
        self.name = name or type(encoder).__name__
        self._cache = None if isinstance(encoder, Prepares) else cache
        self._index: dict[str, int] = {}  # row of each text in `_embeddings`
        self._embeddings = np.empty((0, 0), np.float32)
        self._prepared: tuple[str, Sequence[str]] = "", ()
        self._used = 0  # rows of `_embeddings` that are filled
        self.dtype: str | None = None
        """dtype that the encoder returned; tasks compute on float32. None before the first call."""

    def prepare(self, task: str, sentences: Sequence[str]) -> None:
        """Shows the encoder all sentences of a task. A task calls this before it embeds any.

        A call like the one before it does nothing: several tasks may share their sentences.
        """
        if isinstance(self.encoder, Prepares) and (task, sentences) != self._prepared:
            self._prepared = task, sentences
            call(self.encoder.prepare, task, sentences, who=self.who(task, "prepare"))
            self._index, self._used = {}, 0

    def who(self, task: str, method: str) -> str:
        """Returns how messages begin that are about a method of the encoder in a task."""
        return f"{task}: {method} of the encoder {self.name}"

    def embed(self, sentences: Sequence[str], task: str) -> Embeddings:
        """Returns (N, D) float32 embeddings of `sentences`.

        Raises:
            InputError: see `encode_checked`; or D differs from that of earlier sentences.
        """
        vectors, rows = self._distinct(sentences, task, keep=True)
        return vectors[rows]

    def embed_distinct(self, sentences: Sequence[str], task: str) -> tuple[Embeddings, Indices]:
        """Returns embeddings of distinct texts, and (N,) the row of each of the `sentences`.

        Every vector is held once, where `embed` has a copy for each sentence.

        Raises:
            InputError: see `embed`.
        """
        # before the next task the encoder is prepared again: nothing is worth keeping
        return self._distinct(sentences, task, keep=not isinstance(self.encoder, Prepares))

    def embed_responses(self, sentences: Sequence[str], task: str) -> tuple[Embeddings, Indices]:
        """Returns and raises the same as `embed_distinct`, by `encode_response` if there is one."""
        encoder = self.encoder
        if not isinstance(encoder, EncodesResponses):
            return self.embed_distinct(sentences, task)
        distinct = list(dict.fromkeys(sentences))
        who = self.who(task, "encode_response")
        embeddings, _ = encode_checked(encoder.encode_response, distinct, who)
        return embeddings, _rows_of(sentences, distinct)

    def _distinct(
        self, sentences: Sequence[str], task: str, *, keep: bool
    ) -> tuple[Embeddings, Indices]:
        distinct = list(dict.fromkeys(sentences))
        if not distinct:
            raise InputError("nothing to encode: the task has no sentences.")
        new = [text for text in distinct if text not in self._index]
        if new:
            embeddings = self._encode(new, task)
            if not keep or (self._used + len(new)) * embeddings.shape[1] > _CACHED_VALUES:
                old = [text for text in distinct if text in self._index]
                if old:
                    kept = self._embeddings[[self._index[text] for text in old]]
                    embeddings = np.concatenate([embeddings, kept])
                return embeddings, _rows_of(sentences, [*new, *old])
            self._keep(new, embeddings)
        return self._embeddings, np.array([self._index[text] for text in sentences], np.int64)

    def _encode(self, sentences: Sequence[str], task: str) -> Embeddings:
        """Returns embeddings of texts, from the cache or the encoder."""
        who = self.who(task, "encode")

        def encode(texts: Sequence[str]) -> list[Embeddings]:
            embeddings, self.dtype = encode_checked(self.encoder.encode, texts, who)
            return [embeddings]

        if self._cache is None:
            [embeddings] = encode(sentences)
        else:
            embeddings = self._cache.completed(sentences, encode)
        if self._used and embeddings.shape[1] != self._embeddings.shape[1]:
            raise InputError(
                f"{who} returned vectors of {embeddings.shape[1]} numbers, and earlier of "
                f"{self._embeddings.shape[1]}; one width for all texts is needed."
            )
        return embeddings

    def _keep(self, texts: Sequence[str], embeddings: Embeddings) -> None:
        needed = self._used + len(texts)
        if not self._used or needed > len(self._embeddings):
            grown = np.empty((max(needed, 2 * self._used), embeddings.shape[1]), np.float32)
            if self._used:
                grown[: self._used] = self._embeddings[: self._used]
            self._embeddings = grown
        self._embeddings[self._used : needed] = embeddings
        self._index.update(zip(texts, range(self._used, needed), strict=True))
        self._used = needed

    def similarity(
        self, first: Sequence[str], second: Sequence[str], task: str
    ) -> tuple[Floats, list[str]]:
        """Returns (N,) float64 similarities of pairs of texts, and notes on them for the result.

        The similarity is the encoder's own (`similarity_pairs`) if it has one, else the cosine.

        Raises:
            InputError: a similarity or an embedding is not usable.
        """
        if isinstance(self.encoder, ScoresPairs):
            who = self.who(task, "similarity_pairs")
            returned = call(self.encoder.similarity_pairs, first, second, who=who)
            note = "the similarity is the encoder's own, similarity_pairs"
            return similarities_of(returned, len(first), who), [note]
        both = self.embed([*first, *second], task)
        cosine, zeros = cosines(both[: len(first)], both[len(first) :])
        notes = [f"{zeros} pairs hold a zero vector; their cosine is 0"] if zeros else []
        return cosine, notes


def _rows_of(texts: Sequence[str], distinct: Sequence[str]) -> Indices:
    index = {text: row for row, text in enumerate(distinct)}
    return np.array([index[text] for text in texts], np.int64)
