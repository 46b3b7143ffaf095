"""The DAN without torch: sums of rows as a sparse product, layers in NumPy."""

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from rejoinder.errors import ModelError, nearest
from rejoinder.models.folder import ModelContents
from rejoinder.runtime.layers import Array, Layers
from rejoinder.text.ragged import Ragged

_POWERS = {"sqrtn": 0.5, "mean": 1.0, "sum": 0.0}


class DanRuntime:
    """Ids to vectors; computes in float32 whatever the table is stored in."""

    def __init__(self, model: ModelContents, workers: int) -> None:
        """The encoder of a model of kind `dan`, for `workers` threads.

        Raises:
            ModelError: an unknown combiner or activation.
        """
        combiner = model.encoder["combiner"]
        if combiner not in _POWERS:
            raise ModelError(f"encoder.combiner {combiner!r}: {nearest(combiner, _POWERS)}.")
        self.workers = workers
        self.power = _POWERS[combiner]
        self.table = np.ascontiguousarray(model.tensors["embedding"], np.float32)
        self.layers = Layers("dan", model.encoder, model.tensors)
        self.bigram_rows = model.tensors.get("bigram_rows")
        self.words = model.features.rows - (
            0 if self.bigram_rows is None else len(self.bigram_rows)
        )

    def __call__(self, batch: Ragged) -> Array:
        """(N, D) float32, not yet of length 1; zero rows for sentences without a known feature."""
        rows, offsets = self._rows(batch)
        shape = (len(batch), len(self.table))
        ones = np.ones(len(rows), np.float32)
        sums = csr_array((ones, rows, offsets), shape=shape) @ self.table  # (N, width)
        counts = np.diff(offsets)
        sums /= (np.maximum(counts, 1) ** self.power).astype(np.float32)[:, None]
        embeddings = self.layers(sums)
        embeddings[counts == 0] = 0.0  # a sentence that says nothing must not depend on biases
        return embeddings

    def _rows(self, batch: Ragged) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
        """Rows of the table and offsets: bigrams that were never trained have none."""
        if self.bigram_rows is None:
            return batch.ids, batch.offsets
        rows = batch.ids.copy()
        bigrams = rows >= self.words
        rows[bigrams] = self.bigram_rows[rows[bigrams] - self.words]
        kept = rows >= 0
        ends = np.zeros(len(rows) + 1, np.int64)
        np.cumsum(kept, out=ends[1:])
        return rows[kept], ends[batch.offsets]
