"""`SentenceEmbedder`: a `SentenceEncoder` as a transformer of scikit-learn."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

from rejoinder.errors import InputError, require
from rejoinder.inference.encoder import SentenceEncoder
from rejoinder.inference.outputs import BATCH_SIZE
from rejoinder.models.find import DEFAULT
from rejoinder.protocols import Embeddings

require("eval", "sklearn")

from sklearn.base import (  # noqa: E402
    BaseEstimator,
    ClassNamePrefixFeaturesOutMixin,
    TransformerMixin,
)
from sklearn.utils.validation import check_is_fitted  # noqa: E402

_ENCODER = "_encoder"


class SentenceEmbedder(
    ClassNamePrefixFeaturesOutMixin,  # type: ignore[misc]  # the library has no types
    TransformerMixin,  # type: ignore[misc]
    BaseEstimator,  # type: ignore[misc]
):
    """Turns sentences into embeddings, as a step of a scikit-learn pipeline.

    `make_pipeline(SentenceEmbedder(), LogisticRegression())` classifies sentences. Nothing is
    learned from the sentences: `fit` only loads the model. A copy by `clone` or in another
    process loads the model again.
    """

    def __init__(
        self,
        model: str | Path = DEFAULT,
        *,
        normalize: bool = True,
        truncate_dim: int | None = None,
        batch_size: int = BATCH_SIZE,
        threads: int | None = None,
    ) -> None:
        """Stores the parameters unchanged; `fit` checks them.

        Args:
            model: Name or folder of a model; see `SentenceEncoder.load`.
            normalize: Whether to scale rows to length 1.
            truncate_dim: Number of first dimensions to keep. None keeps all.
            batch_size: Sentences per batch. It affects memory and speed, not results.
            threads: Number of CPU cores, by default all that the process may use.
        """
        self.model = model
        self.normalize = normalize
        self.truncate_dim = truncate_dim
        self.batch_size = batch_size
        self.threads = threads

    def fit(self, X: Iterable[str], y: object = None) -> "SentenceEmbedder":  # noqa: ARG002, N803
        """Loads the model.

        Args:
            X: N sentences, as `transform` takes them.
            y: Ignored.

        Raises:
            InputError: a parameter is not valid, or `X` is not a column of strings.
            ModelError: there is no such model, or it is damaged.
        """
        _check_column(X)
        self._encoder = SentenceEncoder.load(self.model, threads=self.threads)
        self._n_features_out = self._encode([]).shape[1]
        return self

    def transform(self, X: Iterable[str]) -> Embeddings:  # noqa: N803
        """Computes embeddings.

        Args:
            X: N sentences: a list, a NumPy array, a column of pandas or Polars.

        Returns:
            (N, D) float32, or the container chosen by `set_output`.

        Raises:
            NotFittedError: `fit` was not called.
            InputError: an element is not a string (the message has its index), or `X` is not a
                column of strings.
        """
        check_is_fitted(self, "_n_features_out")
        _check_column(X)
        return self._encode(X)

    def _encode(self, texts: Iterable[str]) -> Embeddings:
        if getattr(self, _ENCODER, None) is None:
            self._encoder = SentenceEncoder.load(self.model, threads=self.threads)
        rows = self._encoder.encode(
            texts,
            batch_size=self.batch_size,
            normalize=self.normalize,
            truncate_dim=self.truncate_dim,
        )
        return np.asarray(rows)

    def __getstate__(self) -> dict[str, Any]:
        """Returns the parameters and the number of dimensions, not the loaded model."""
        state: dict[str, Any] = dict(super().__getstate__())
        state.pop(_ENCODER, None)
        return state

    def __sklearn_tags__(self) -> Any:
        """Declares that the input is a column of strings, and that nothing is learned from it."""
        tags = super().__sklearn_tags__()
        tags.input_tags.one_d_array = True
        tags.input_tags.two_d_array = False
        tags.input_tags.string = True
        tags.transformer_tags.preserves_dtype = []
        return tags


def _check_column(texts: object) -> None:
    """Refuses a single string and tables: a column of texts is expected."""
    if isinstance(texts, str):
        raise InputError("X is one string; a list of sentences is needed.")
    if getattr(texts, "ndim", 1) != 1 or hasattr(texts, "columns"):
        shape = getattr(texts, "shape", "?")
        raise InputError(f"X has shape {shape}; one column is needed, such as X['text'].")
