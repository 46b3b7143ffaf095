"""Calls any encoder: encodes each text once, and checks what comes back.

How results are shown: labels for results of the same task, and scores.
"""

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
        self._index: dict[str, int] = {}  # row of each text, counted through the arrays of `_kept`
        self._kept: list[Embeddings] = []
        self._prepared: tuple[str, Sequence[str]] = "", ()
        self.dtype: str | None = None
        """dtype that the encoder returned; tasks compute on float32. None before the first call."""

    def prepare(self, task: str, sentences: Sequence[str]) -> None:
        """Shows the encoder all sentences of a task. A task calls this before it embeds any.

        A call like the one before it does nothing: several tasks may share their sentences.
        """
        if isinstance(self.encoder, Prepares) and (task, sentences) != self._prepared:
            self._prepared = task, sentences
            call(self.encoder.prepare, task, sentences, who=self.who(task, "prepare"))
            self._index, self._kept = {}, []

    def who(self, task: str, method: str) -> str:
        """Returns how messages begin that are about a method of the encoder in a task."""
        return f"{task}: {method} of the encoder {self.name}"

    def embed(self, sentences: Sequence[str], task: str) -> Embeddings:
        """Returns (N, D) float32 embeddings of `sentences`.

        Raises:
            InputError: see `encode_checked`; or D differs from that of earlier sentences.
        """
        return _gathered(*self._arrays(sentences, task, keep=True))

    def embed_distinct(self, sentences: Sequence[str], task: str) -> tuple[Embeddings, Indices]:
        """Returns embeddings of distinct texts, and (N,) the row of each of the `sentences`.

        Every vector is held once, where `embed` has a copy for each sentence.

        Raises:
            InputError: see `embed`.
        """
        # before the next task the encoder is prepared again: nothing is worth keeping
        arrays, rows = self._arrays(sentences, task, keep=not isinstance(self.encoder, Prepares))
        if len(arrays) == 1:
            return arrays[0], rows
        distinct, rows = np.unique(rows, return_inverse=True)
        return _gathered(arrays, distinct), rows

    def embed_responses(self, sentences: Sequence[str], task: str) -> tuple[Embeddings, Indices]:
        """Returns and raises the same as `embed_distinct`, by `encode_response` if there is one."""
        encoder = self.encoder
        if not isinstance(encoder, EncodesResponses):
            return self.embed_distinct(sentences, task)
        distinct = list(dict.fromkeys(sentences))
        who = self.who(task, "encode_response")
        embeddings, _ = encode_checked(encoder.encode_response, distinct, who)
        return embeddings, _rows_of(sentences, distinct)

    def _arrays(
        self, sentences: Sequence[str], task: str, *, keep: bool
    ) -> tuple[list[Embeddings], Indices]:
        """Returns arrays of embeddings, and (N,) rows counted through them, one per sentence."""
        if not sentences:
            raise InputError("nothing to encode: the task has no sentences.")
        arrays, index = self._kept, self._index
        if new := [text for text in dict.fromkeys(sentences) if text not in index]:
            embeddings = self._encode(new, task)
            rows = dict(zip(new, range(len(index), len(index) + len(new)), strict=True))
            if keep and (len(index) + len(new)) * embeddings.shape[1] <= _CACHED_VALUES:
                arrays.append(embeddings.copy())  # an encoder may use its memory again
                index.update(rows)
            else:
                arrays, index = [*arrays, embeddings], index | rows
        return arrays, np.array([index[text] for text in sentences], np.int64)

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
        if self._kept and embeddings.shape[1] != self._kept[0].shape[1]:
            raise InputError(
                f"{who} returned vectors of {embeddings.shape[1]} numbers, and earlier of "
                f"{self._kept[0].shape[1]}; one width for all texts is needed."
            )
        return embeddings

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


def _gathered(arrays: Sequence[Embeddings], rows: Indices) -> Embeddings:
    """Returns (N, D) chosen rows, counted through the arrays."""
    found = np.empty((len(rows), arrays[0].shape[1]), np.float32)
    start = 0
    for array in arrays:
        here = np.flatnonzero((rows >= start) & (rows < start + len(array)))
        found[here] = array[rows[here] - start]
        start += len(array)
    return found


def _rows_of(texts: Sequence[str], distinct: Sequence[str]) -> Indices:
    index = {text: row for row, text in enumerate(distinct)}
    return np.array([index[text] for text in texts], np.int64)
