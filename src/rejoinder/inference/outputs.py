"""Computes the outputs of a model for texts: embeddings and entailment."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from rejoinder.encoders.layers import Layers, finite, unit_rows
from rejoinder.errors import ModelError
from rejoinder.inference.batches import BATCH_SIZE, each_batch
from rejoinder.inference.long_texts import OnTooLong, embed_tokens, too_long
from rejoinder.inference.runtimes import open_runtime
from rejoinder.models.folder import ModelContents
from rejoinder.models.layout import ENTAILMENT, RESPONSES
from rejoinder.protocols import Embeddings


class ModelOutputs:
    """The embeddings of both sides of a model, and the probabilities of its classifier."""

    def __init__(
        self, model: ModelContents, threads: int | None, on_too_long: OnTooLong = "truncate"
    ) -> None:
        """Prepares a model for `threads` CPU cores, by default all that the process may use.

        `on_too_long` says what to do with texts of more tokens than the encoder reads.

        Raises:
            ModelError: the encoder kind is unknown.
            MissingExtraError: the encoder needs a package that is not installed.
        """
        self._name, self._features, self._dim = model.name, model.features, model.dim
        self._runtime = open_runtime(model, threads)
        heads = {
            name: Layers(f"heads.{name}", table, model.tensors)
            for name, table in model.heads.items()
        }
        self._head, self._classifier = heads.get(RESPONSES), heads.get(ENTAILMENT)
        self._export = model.export
        self._adaptation = model.adaptation
        self._most, self._on_too_long = model.max_tokens, on_too_long

    def unknown(self, texts: Sequence[str]) -> NDArray[np.bool_]:
        """Returns which texts have no token of the vocabulary, (N,) bool."""
        parts = [
            self._features.known(texts[low : low + BATCH_SIZE]).lengths == 0
            for low in range(0, len(texts), BATCH_SIZE)
        ]
        return np.concatenate([np.empty(0, np.bool_), *parts])

    def unknown_share(self, texts: Sequence[str]) -> NDArray[np.float64]:
        """Returns the share of the words of each text that the vocabulary lacks, (N,)."""
        parts = [
            self._features.unknown_share(texts[low : low + BATCH_SIZE])
            for low in range(0, len(texts), BATCH_SIZE)
        ]
        return np.concatenate([np.empty(0), *parts])

    def too_long(self, texts: Sequence[str]) -> NDArray[np.bool_]:
        """Returns which texts have more tokens than the encoder reads, (N,) bool."""
        long = np.zeros(len(texts), np.bool_)
        if self._most is None:
            return long
        for low in range(0, len(texts), BATCH_SIZE):
            batch = texts[low : low + BATCH_SIZE]
            long[low : low + len(batch)] = too_long(self._features.whole(batch), self._most)
        return long

    def embed(
        self,
        texts: Sequence[str],
        batch_size: int = BATCH_SIZE,
        *,
        response: bool = False,
        adapted: bool = True,
        normalize: bool = True,
        show: bool = False,
        on_too_long: OnTooLong | None = None,
    ) -> Embeddings:
        """Returns (N, D) float32 embeddings u of texts, or v' with `response`.

        The adaptation is applied to u if `adapted`, and never to v'. Rows have length 1 if
        `normalize`. `show` draws a progress bar on standard error. `on_too_long` is by default that
        of the constructor.

        Raises:
            InputError: a text is too long, and `on_too_long` is `error`.
            ModelError: an embedding is not finite, or the model has no response side.
        """
        if response and self._head is None:
            raise ModelError(
                f"{self._name} has no response side: {self._left_out()} Rank responses with the "
                "model that it was exported from."
            )
        adaptation = self._adaptation if adapted and not response else None
        out = np.empty((len(texts), self._dim), np.float32)
        way = on_too_long or self._on_too_long

        def work(part: slice) -> None:
            batch = self._features.whole(texts[part])
            with np.errstate(over="ignore", invalid="ignore"):  # overflow is refused below
                rows = embed_tokens(self._runtime, batch, self._most, way, first=part.start)
                if response and self._head is not None:
                    rows = self._head(unit_rows(rows)) * (batch.lengths > 0)[:, None]
                if adaptation is not None:
                    rows = adaptation.project(rows)
                rows = unit_rows(rows) if normalize else finite(rows)
            out[part] = rows

        each_batch(len(texts), batch_size, self._runtime.workers, work, show=show)
        return out

    def entailment(self, premises: Sequence[str], hypotheses: Sequence[str]) -> NDArray[np.float32]:
        """Returns (N, 3) float32 probabilities of contradiction, neutral and entailment.

        Raises:
            ModelError: the model has no classifier.
        """
        if self._classifier is None:
            if self._export is not None and ENTAILMENT in self._export["dropped"]:
                raise ModelError(
                    f"{self._name} has no classifier: {self._left_out()} Classify with the model "
                    "that it was exported from."
                )
            raise ModelError(
                f"{self._name} was not trained on inference; train it with a task `entailment`, "
                "as the shipped config dan-multitask-modern does."
            )
        u1, u2 = np.split(self.embed([*premises, *hypotheses], adapted=False), 2)
        features = np.concatenate([u1, u2, np.abs(u1 - u2), u1 * u2], axis=1)
        scores = self._classifier(features * np.float32(self._dim**0.5))
        shares = np.exp(scores - scores.max(axis=1, keepdims=True))
        probabilities: NDArray[np.float32] = shares / shares.sum(axis=1, keepdims=True)
        return probabilities

    def _left_out(self) -> str:
        """Says why an exported model lacks a head."""
        return (
            f"its heads read more than the {self._dim} dimensions that `rejoinder export` kept, "
            "so they were left out."
        )
