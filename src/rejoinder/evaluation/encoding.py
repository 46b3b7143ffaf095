"""Calls an encoder that may be anybody's: encodes each text once, and checks what comes back."""

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import numpy as np
from safetensors import safe_open
from safetensors.numpy import save

from rejoinder.errors import InputError
from rejoinder.evaluation.calls import (
    LARGEST_NUMBER,
    call,
    first_unusable,
    matrix_of,
    numbers_of,
    quoted,
)
from rejoinder.io.files.atomic import new_file
from rejoinder.io.files.hashed import sha256_of
from rejoinder.io.formats.tensor_files import UNREADABLE
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
    returned = matrix_of(call(encode, sentences, who=who), len(sentences), who)
    with np.errstate(over="ignore"):  # values that overflow float32 are reported below
        embeddings = np.asarray(returned, np.float32)
    wrong = first_unusable(embeddings)
    if wrong is not None:
        raise InputError(
            f"{who} returned an embedding of sentence {wrong} ({quoted(sentences, wrong)}) with a "
            f"number that is not finite or beyond {LARGEST_NUMBER:.0e}; smaller float32 numbers "
            "are needed."
        )
    return embeddings, str(returned.dtype)


class Embedder:
    """The encoder that tasks see. It keeps embeddings, so that each text is encoded once.

    An encoder that prepares itself for a task gives other vectors for each task. Its embeddings are
    kept within a task only.
    """

    def __init__(self, encoder: Encodes, name: str | None = None) -> None:
        self.encoder = encoder
        self.name = name or type(encoder).__name__
        self._index: dict[str, int] = {}  # row of each text in `_embeddings`
        self._embeddings: Embeddings | None = None
        self._used = 0  # rows of `_embeddings` that are filled
        self.dtype: str | None = None
        """dtype that the encoder returned; tasks compute on float32. None before the first call."""

    def load(self, path: Path) -> None:
        """Reads embeddings that `save` wrote. A missing file is not an error.

        Raises:
            InputError: the file is damaged.
        """
        if not path.is_file() or isinstance(self.encoder, Prepares):
            return
        try:
            with safe_open(path, "numpy") as file:
                metadata = file.metadata() or {}
                texts, dtype = json.loads(metadata["texts"]), metadata["dtype"]
                embeddings = file.get_tensor("embeddings")
            digest = _digest(metadata, embeddings)
            # absent in files of earlier versions
            if metadata.get("sha256", digest) != digest or len(texts) != len(embeddings):
                raise ValueError("it was changed after it was written (SHA-256)")
        except UNREADABLE as error:
            raise InputError(f"{path} is damaged: {error}; remove it.") from None
        self._keep(texts, embeddings)
        self.dtype = dtype

    def save(self, path: Path) -> None:
        """Writes all kept embeddings, unless the encoder prepares itself for each task."""
        if self._embeddings is None or isinstance(self.encoder, Prepares):
            return
        embeddings = self._embeddings[: self._used]
        metadata = {"texts": json.dumps(list(self._index)), "dtype": str(self.dtype)}
        metadata["sha256"] = _digest(metadata, embeddings)
        with new_file(path) as file:
            file.write(save({"embeddings": embeddings}, metadata))

    def prepare(self, task: str, sentences: Sequence[str]) -> None:
        """Shows the encoder all sentences of a task. A task calls this before it embeds any."""
        if isinstance(self.encoder, Prepares):
            call(self.encoder.prepare, task, sentences, who=self.who(task, "prepare"))
            self._index, self._embeddings, self._used = {}, None, 0

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
        who = self.who(task, "encode_response")
        distinct = list(dict.fromkeys(sentences))
        embeddings, _ = encode_checked(encoder.encode_response, distinct, who)
        return embeddings, _rows_of(sentences, _numbered(distinct))

    def _distinct(
        self, sentences: Sequence[str], task: str, *, keep: bool
    ) -> tuple[Embeddings, Indices]:
        distinct = list(dict.fromkeys(sentences))
        new = [text for text in distinct if text not in self._index]
        if not new:
            return self._kept(), _rows_of(sentences, self._index)
        embeddings = self._encode(new, task)
        if keep and (self._used + len(new)) * embeddings.shape[1] <= _CACHED_VALUES:
            self._keep(new, embeddings)
            return self._kept(), _rows_of(sentences, self._index)
        old = [text for text in distinct if text in self._index]
        if old:
            kept = self._kept()[_rows_of(old, self._index)]
            embeddings = np.concatenate([embeddings, kept])
        return embeddings, _rows_of(sentences, _numbered([*new, *old]))

    def _encode(self, sentences: Sequence[str], task: str) -> Embeddings:
        who = self.who(task, "encode")
        embeddings, self.dtype = encode_checked(self.encoder.encode, sentences, who)
        if self._embeddings is not None and embeddings.shape[1] != self._embeddings.shape[1]:
            raise InputError(
                f"{who} returned vectors of {embeddings.shape[1]} numbers, and earlier of "
                f"{self._embeddings.shape[1]}; one width for all texts is needed."
            )
        return embeddings

    def _keep(self, texts: Sequence[str], embeddings: Embeddings) -> None:
        needed = self._used + len(texts)
        if self._embeddings is None or needed > len(self._embeddings):
            grown = np.empty((max(needed, 2 * self._used), embeddings.shape[1]), np.float32)
            if self._embeddings is not None:
                grown[: self._used] = self._embeddings[: self._used]
            self._embeddings = grown
        self._embeddings[self._used : needed] = embeddings
        self._index.update(zip(texts, range(self._used, needed), strict=True))
        self._used = needed

    def _kept(self) -> Embeddings:
        if self._embeddings is None:
            raise InputError("nothing to encode: the task has no sentences.")
        return self._embeddings

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
            numbers = numbers_of(returned, who, "(N,) numbers, one a pair, are")
            values = np.asarray(numbers, np.float64)
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


def _digest(metadata: Mapping[str, str], embeddings: Embeddings) -> str:
    about = f"{metadata['texts']}\0{metadata['dtype']}\0{embeddings.shape}\0"
    return sha256_of(about.encode(), np.ascontiguousarray(embeddings).tobytes())


def _numbered(texts: Sequence[str]) -> dict[str, int]:
    return {text: row for row, text in enumerate(texts)}


def _rows_of(texts: Sequence[str], index: Mapping[str, int]) -> Indices:
    return np.array([index[text] for text in texts], np.int64)
