"""`SentenceEncoder`: a model folder as something that encodes, compares, ranks and searches."""

from dataclasses import dataclass
from pathlib import Path
from reprlib import repr as short
from typing import Any, Literal

import numpy as np
import polars as pl
from numpy.typing import NDArray

from rejoinder.errors import InputError, ModelError
from rejoinder.models.folder import ModelContents, read_model
from rejoinder.protocols import Embeddings
from rejoinder.runtime.batches import BATCH_SIZE, each_batch
from rejoinder.runtime.engines import open_runtime
from rejoinder.runtime.inputs import (
    Sentences,
    as_texts,
    as_unit_rows,
    first_places,
    flag,
    is_matrix,
    model_path,
    whole_number,
)
from rejoinder.runtime.layers import Layers, unit_rows
from rejoinder.runtime.search import dots, nearest_rows

_MOST_THREADS = 1_024


@dataclass(frozen=True)
class Ranked:
    """A text and how well it fits."""

    index: int
    """Its place in what was given."""
    score: float
    text: str
    """Empty where embeddings were searched, which have no text."""


class SentenceEncoder:
    """Sentences to vectors of length 1.

    A sentence without any known word has the zero vector: its similarity with anything is 0
    (`count_unknown` says how many there are). Neither the order nor the batch size changes a
    result (DAN: 1e-6, Transformer and BiLSTM: 1e-5). A model that is adapted, as its
    `describe()["adaptation"]` says, encodes W u; responses rank as they did before.
    """

    def __init__(self, model: ModelContents, *, threads: int | None = None) -> None:
        """An encoder of a model in memory.

        Args:
            model: what `read_model` returns.
            threads: cores to compute on; by default all that the process may use. Torch, which
                runs Transformers and BiLSTMs, has one such number for the whole process.

        Raises:
            InputError: `threads` is no whole number from 1 to 1,024, or `model` is no model.
            ModelError: an encoder of an unknown kind.
            MissingExtraError: the encoder needs a package that is not installed.
        """
        if not isinstance(model, ModelContents):
            raise InputError(
                "SentenceEncoder takes a model in memory, as read_model returns it; got "
                f"{short(model)}. A model folder is opened with SentenceEncoder.load(path)."
            )
        if threads is not None:
            threads = whole_number("threads", threads, _MOST_THREADS)
        self.model = model
        self._runtime = open_runtime(model, threads)
        self._head = Layers("head", model.head, model.tensors)
        self._entailment = None
        if model.entailment is not None:
            self._entailment = Layers("entailment", model.entailment, model.tensors)
        self._adaptation = model.adaptation

    @classmethod
    def load(cls, path: str | Path, *, threads: int | None = None) -> "SentenceEncoder":
        """The encoder in a model folder, computing on `threads` cores, by default on all.

        Raises:
            InputError: `path` is no path, or `threads` no whole number from 1 to 1,024.
            ModelError: the folder is not a model, or damaged.
            MissingExtraError: the encoder needs a package that is not installed.
        """
        return cls(read_model(model_path(path)), threads=threads)

    @property
    def dim(self) -> int:
        """Width of the embeddings."""
        return self.model.dim

    def __repr__(self) -> str:
        kind = self.model.encoder["kind"]
        adapted = f", adapted on {self._adaptation.source}" if self._adaptation else ""
        return f"SentenceEncoder({self.model.name!r}, {kind}, {self.dim} dimensions{adapted})"

    def describe(self) -> dict[str, Any]:
        """Plain JSON values: name, kind, dim, SHA-256 of the weights, training, adaptation."""
        return self.model.describe()

    def fitted_pairs(self) -> NDArray[np.uint64]:
        """(M,) uint64 keys of the graded pairs that it was adapted on; none: it is not adapted."""
        if self._adaptation is None:
            return np.empty(0, np.uint64)
        return self._adaptation.fitted_pairs

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
            sentences: one string, or many: a list, any iterable, a Polars column, an array.
            batch_size: sentences at a time; a matter of memory and speed, not of results.
            show_progress_bar: draw a bar on stderr.
            normalize: unit rows, as the models are trained; without, rows as the last layer
                gives them.

        Returns:
            (N, D) float32, in the order given; of a single string (D,).

        Raises:
            InputError: something is not a string, named by its index; `batch_size` is no whole
                number of at least 1; another argument is neither true nor false.
            ModelError: the weights are so large that an embedding is not finite.
        """
        texts, single = as_texts(sentences)
        out = self._encode(texts, batch_size, show_progress_bar, normalize, response=False)
        return out[0] if single else out

    def encode_response(
        self,
        sentences: Sentences,
        *,
        batch_size: int = BATCH_SIZE,
        show_progress_bar: bool = False,
        normalize: bool = True,
    ) -> Embeddings:
        """Embeddings v' of responses, to be compared with `encode` of messages.

        Arguments, result and errors are those of `encode`; the rows of an adapted model are not of
        length 1 (`Adaptation.apply_responses`), so that they rank as they did before.
        """
        texts, single = as_texts(sentences)
        out = self._encode(texts, batch_size, show_progress_bar, normalize, response=True)
        if self._adaptation is not None:
            out = self._adaptation.apply_responses(out)
        return out[0] if single else out

    def unknown(self, sentences: Sentences) -> NDArray[np.bool_]:
        """(N,) bool, which sentences hold nothing that the model knows: their embedding is zero.

        Raises:
            InputError: something is not a string, named by its index.
        """
        texts, _ = as_texts(sentences)
        rows = np.empty(len(texts), np.bool_)
        for low in range(0, len(texts), BATCH_SIZE):
            batch = texts.slice(low, BATCH_SIZE)
            rows[low : low + len(batch)] = self.model.features(batch).lengths == 0
        return rows

    def count_unknown(self, sentences: Sentences) -> int:
        """How many sentences hold nothing that the model knows: their embedding is zero."""
        return int(self.unknown(sentences).sum())

    def similarity(
        self,
        a: Sentences | Embeddings,
        b: Sentences | Embeddings,
        measure: Literal["cosine", "angular"] = "cosine",
    ) -> NDArray[np.float32]:
        """(len(a), len(b)) float32, how alike each of `a` is to each of `b`.

        Args:
            a: sentences, or embeddings as `encode` returns them, of any length.
            b: likewise.
            measure: `cosine`, from -1 to 1, or `angular`, -arccos of it, from -pi to 0
                (Yang et al. 2018, eq. 1).

        Raises:
            InputError: an unknown measure, or embeddings of another width or not finite.
        """
        if not isinstance(measure, str) or measure not in ("cosine", "angular"):
            raise InputError(f"measure must be 'cosine' or 'angular'; got {measure!r}.")
        cosine: Embeddings = np.clip(self._vectors(a) @ self._vectors(b).T, -1.0, 1.0)
        if measure == "cosine":
            return cosine
        return np.subtract(0.0, np.arccos(cosine), dtype=np.float32)  # not -0.0

    @property
    def entails(self) -> bool:
        """Whether the model has a classifier for `entail`."""
        return self._entailment is not None

    def entail(self, premises: Sentences, hypotheses: Sentences) -> NDArray[np.float32]:
        """Whether each hypothesis follows from its premise, by the classifier of the model.

        Returns:
            (N, 3) float32, probabilities of contradiction, neutral and entailment, in this order.

        Raises:
            ModelError: the model has no such classifier.
            InputError: not as many premises as hypotheses, or something is no string.
        """
        if self._entailment is None:
            raise ModelError(
                f"{self.model.name} was not trained on inference; train it with a task "
                "`entailment`, as the shipped config dan-multitask-modern does."
            )
        left, right = (as_texts(side)[0] for side in (premises, hypotheses))
        if len(left) != len(right):
            raise InputError(f"{len(left)} premises and {len(right)} hypotheses; they are pairs.")
        texts = pl.concat([left, right])
        both = self._encode(texts, BATCH_SIZE, False, True, response=False, adapted=False)
        u1, u2 = np.split(both, 2)
        features = np.concatenate([u1, u2, np.abs(u1 - u2), u1 * u2], axis=1)
        scores = self._entailment(features * np.float32(self.dim**0.5))
        shares = np.exp(scores - scores.max(axis=1, keepdims=True))
        probabilities: NDArray[np.float32] = shares / shares.sum(axis=1, keepdims=True)
        return probabilities

    def rank(self, input: str, responses: Sentences) -> list[Ranked]:  # noqa: A002
        """The responses by how well they answer `input` (u·v'), best first; ties by their place.

        Raises:
            InputError: `input` is not one string, or a response is none.
        """
        if not isinstance(input, str):
            raise InputError(f"input must be one string; got a {type(input).__name__}.")
        texts, _ = as_texts(responses)
        # an adaptation cancels out of u·v' but for rounding: so it is left out
        vectors = self._encode(texts, BATCH_SIZE, False, True, response=True)[first_places(texts)]
        asked = self._encode(as_texts(input)[0], 1, False, True, response=False, adapted=False)
        scores = dots(vectors, asked[0])
        order = np.argsort(-scores, kind="stable")
        return [Ranked(int(row), float(scores[row]), texts[int(row)]) for row in order]

    def search(
        self, queries: Sentences | Embeddings, corpus: Sentences | Embeddings, top_k: int = 10
    ) -> list[list[Ranked]]:
        """For each query the `top_k` most alike of `corpus` by cosine, best first; exact.

        Memory stays bounded by the embeddings of the corpus; ties go by the place in it.

        Args:
            queries: sentences, or embeddings; of a single string, a list of one list.
            corpus: sentences, or embeddings as `encode` returns them; then `text` is empty.
            top_k: how many.

        Raises:
            InputError: `top_k` is no whole number of at least 1, or embeddings are of another width
                or not finite.
        """
        top_k = whole_number("top_k", top_k)  # before the corpus is encoded
        texts = None if is_matrix(corpus) else as_texts(corpus)[0]
        matrix = self._vectors(corpus if texts is None else texts)
        if texts is not None:  # the same text, elsewhere in a batch, may differ in its last bit
            _share(matrix, first_places(texts))
        rows, scores = nearest_rows(self._vectors(queries), matrix, top_k)
        return [
            [
                Ranked(row, score, "" if texts is None else texts[row])
                for row, score in zip(found, values, strict=True)
            ]
            for found, values in zip(rows.tolist(), scores.tolist(), strict=True)
        ]

    def _vectors(self, given: Sentences | Embeddings) -> Embeddings:
        """(N, D) float32, unit or zero rows."""
        if is_matrix(given):
            return as_unit_rows(given, self.dim)
        return self._encode(as_texts(given)[0], BATCH_SIZE, False, True, response=False)

    def _encode(
        self,
        texts: pl.Series,
        batch_size: int,
        show: bool,
        normalize: bool,
        *,
        response: bool,
        adapted: bool = True,
    ) -> Embeddings:
        """Rows of either side; those of responses are never adapted here."""
        adaptation = self._adaptation if adapted and not response else None
        batch_size = whole_number("batch_size", batch_size)
        show, normalize = flag("show_progress_bar", show), flag("normalize", normalize)
        out = np.empty((len(texts), self.dim), np.float32)

        def work(part: slice) -> None:
            batch = self.model.features(texts[part])
            present = batch.lengths > 0
            with np.errstate(over="ignore", invalid="ignore"):  # what overflows is refused below
                rows = self._runtime(batch)
                if response:
                    rows = self._head(unit_rows(rows, present)) * present[:, None]
                if adaptation is not None:
                    rows = adaptation.project(rows)
                rows = unit_rows(rows, present) if normalize else _finite(rows)
            out[part] = rows

        each_batch(len(texts), batch_size, self._runtime.workers, work, show=show)
        return out


def _finite(rows: Embeddings) -> Embeddings:
    if not np.isfinite(rows).all():
        raise ModelError("the weights give embeddings that are not finite; they are too large.")
    return rows


def _share(matrix: Embeddings, first: NDArray[np.int64]) -> None:
    """Give rows of equal texts the embedding of the first of them, in place."""
    again = np.flatnonzero(first != np.arange(len(first)))
    matrix[again] = matrix[first[again]]
