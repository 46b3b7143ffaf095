"""`SentenceEncoder`: a model folder as something that encodes, compares, ranks and searches."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Protocol

import numpy as np
import polars as pl
from numpy.typing import NDArray

from rejoinder.errors import InputError, ModelError
from rejoinder.models.folder import ModelContents, read_model
from rejoinder.protocols import Embeddings
from rejoinder.runtime.layers import Layers, unit_rows
from rejoinder.runtime.search import nearest_rows
from rejoinder.text.normalize import as_series
from rejoinder.text.ragged import Ragged

BATCH_SIZE = 4_096

Sentences = str | Sequence[str] | Iterable[str] | pl.Series | NDArray[np.str_]


@dataclass(frozen=True)
class Ranked:
    """A text and how well it fits."""

    index: int
    """Its place in what was given."""
    score: float
    text: str


class Runtime(Protocol):
    """The extension point for engines: ids to unit vectors."""

    def __call__(self, batch: Ragged) -> Embeddings:
        """(N, D) float32, unit rows; zero rows for sentences without a known feature."""
        ...


class SentenceEncoder:
    """Sentences to vectors of length 1.

    A sentence without any known word has the zero vector: its similarity with anything is 0.
    Neither the order nor the batch size changes a result (DAN: 1e-6, Transformer: 1e-5).
    """

    def __init__(self, model: ModelContents) -> None:
        """An encoder of a model in memory.

        Raises:
            ModelError: an encoder of an unknown kind.
            MissingExtraError: the encoder needs a package that is not installed.
        """
        self.model = model
        self._runtime = _runtime(model)
        self._head = Layers("head", model.head, model.tensors)

    @classmethod
    def load(cls, path: str | Path) -> "SentenceEncoder":
        """The encoder in a model folder.

        Raises:
            ModelError: the folder is not a model, or damaged.
        """
        return cls(read_model(Path(path)))

    @property
    def dim(self) -> int:
        """Width of the embeddings."""
        return self.model.dim

    def __repr__(self) -> str:
        kind = self.model.encoder["kind"]
        return f"SentenceEncoder({self.model.name!r}, {kind}, {self.dim} dimensions)"

    def describe(self) -> Mapping[str, Any]:
        """Plain JSON values: name, kind, dim, SHA-256 of the weights, training."""
        return {
            "name": self.model.name,
            "kind": self.model.encoder["kind"],
            "dim": self.dim,
            "sha256": self.model.sha256,
            "training": dict(self.model.training),
        }

    def encode(
        self,
        sentences: Sentences,
        *,
        batch_size: int = BATCH_SIZE,
        show_progress_bar: bool = False,
        normalize: bool = True,
    ) -> Embeddings:
        """Embeddings u of sentences.

        Args:
            sentences: one string, or many.
            batch_size: sentences at a time; a matter of memory, not of results.
            show_progress_bar: draw a bar on stderr.
            normalize: unit rows, which the models are trained with; there is no other form, and
                false is refused rather than ignored.

        Returns:
            (N, D) float32, unit rows, in the order given; of a single string (D,).

        Raises:
            InputError: something is not a string, named by its index, or `batch_size` is below 1.
        """
        return self._encode(sentences, batch_size, show_progress_bar, normalize, response=False)

    def encode_response(
        self,
        sentences: Sentences,
        *,
        batch_size: int = BATCH_SIZE,
        show_progress_bar: bool = False,
        normalize: bool = True,
    ) -> Embeddings:
        """Embeddings v' of responses, to be compared with `encode` of messages.

        Arguments, result and errors are those of `encode`.
        """
        return self._encode(sentences, batch_size, show_progress_bar, normalize, response=True)

    def count_unknown(self, sentences: Sentences) -> int:
        """How many sentences hold nothing that the model knows: their embedding is zero."""
        texts, _ = _texts(sentences)
        lengths = self.model.features(texts).lengths
        return int((lengths == 0).sum())

    def similarity(
        self,
        a: Sentences | Embeddings,
        b: Sentences | Embeddings,
        measure: Literal["cosine", "angular"] = "cosine",
    ) -> NDArray[np.float32]:
        """(len(a), len(b)) float32, how alike each of `a` is to each of `b`.

        Args:
            a: sentences, or what `encode` returned for them.
            b: likewise.
            measure: `cosine`, from -1 to 1, or `angular`, -arccos of it, from -pi to 0
                (Yang et al. 2018, eq. 1).

        Raises:
            InputError: an unknown measure.
        """
        if measure not in ("cosine", "angular"):
            raise InputError(f"measure must be 'cosine' or 'angular'; got {measure!r}.")
        cosine = np.clip(self._vectors(a) @ self._vectors(b).T, -1.0, 1.0).astype(np.float32)
        return cosine if measure == "cosine" else np.negative(np.arccos(cosine))

    def rank(self, input: str, responses: Sequence[str]) -> list[Ranked]:  # noqa: A002
        """The responses by how well they answer `input` (u·v'), best first; ties by their place."""
        scores = self.encode_response(responses) @ self.encode(input)
        order = np.argsort(-scores, kind="stable")
        return [Ranked(int(row), float(scores[row]), responses[row]) for row in order]

    def search(
        self, queries: Sentences, corpus: Sentences | Embeddings, top_k: int = 10
    ) -> list[list[Ranked]]:
        """For each query the `top_k` most alike of `corpus`, best first; exact.

        Args:
            queries: one string, or many.
            corpus: sentences, or what `encode` returned for them; then `text` is empty.
            top_k: how many.

        Raises:
            InputError: `top_k` is below 1, or embeddings of another width.
        """
        texts = None if _is_matrix(corpus) else _texts(corpus)[0]
        matrix = self._vectors(corpus if texts is None else texts)
        rows, scores = nearest_rows(self._vectors(queries), matrix, top_k)
        return [
            [
                Ranked(int(row), float(score), "" if texts is None else texts[int(row)])
                for row, score in zip(found, values, strict=True)
            ]
            for found, values in zip(rows, scores, strict=True)
        ]

    def _vectors(self, given: Sentences | Embeddings) -> Embeddings:
        if _is_matrix(given):
            matrix = np.atleast_2d(np.asarray(given, np.float32))
            if matrix.shape[1] != self.dim:
                raise InputError(f"embeddings have {matrix.shape[1]} columns; {self.dim} needed.")
            return matrix
        return np.atleast_2d(self.encode(given))

    def _encode(
        self,
        sentences: Sentences,
        batch_size: int,
        show_progress_bar: bool,
        normalize: bool,
        *,
        response: bool,
    ) -> Embeddings:
        if batch_size < 1:
            raise InputError(f"batch_size must be 1 or more; got {batch_size}.")
        if not normalize:
            raise InputError("normalize=False: the models have unit rows only; leave it out.")
        texts, single = _texts(sentences)
        out = np.empty((len(texts), self.dim), np.float32)
        for start in _steps(len(texts), batch_size, show_progress_bar):
            part = texts.slice(start, batch_size)
            embeddings = self._runtime(self.model.features(part))
            if response:
                present = np.asarray(embeddings.any(axis=1))
                embeddings = unit_rows(np.array(self._head(embeddings)), present)
            out[start : start + len(part)] = embeddings
        return out[0] if single else out


def _runtime(model: ModelContents) -> Runtime:
    kind = model.encoder["kind"]
    if kind == "dan":
        from rejoinder.runtime.dan import DanRuntime

        return DanRuntime(model)
    if kind == "transformer":
        from rejoinder.runtime.transformer import TransformerRuntime

        return TransformerRuntime(model)
    raise ModelError(f"encoder kind {kind!r} is unknown; known: 'dan', 'transformer'.")


def _texts(sentences: Sentences) -> tuple[pl.Series, bool]:
    """Sentences as a column, and whether a single one was given."""
    if isinstance(sentences, str):
        return as_series([sentences]), True
    if isinstance(sentences, np.ndarray):
        return as_series(sentences.tolist()), False
    return as_series(sentences), False


def _is_matrix(given: object) -> bool:
    return isinstance(given, np.ndarray) and np.issubdtype(given.dtype, np.floating)


def _steps(count: int, size: int, show: bool) -> Iterable[int]:
    steps = range(0, count, size)
    if not show:
        return steps
    from rich.console import Console
    from rich.progress import track

    return track(steps, "encoding", console=Console(stderr=True))
