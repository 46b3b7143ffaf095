"""The DAN without torch: sums of rows as a sparse product, dense layers in NumPy."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from rejoinder.errors import ModelError, nearest
from rejoinder.kinds.dan import COMBINERS
from rejoinder.models.folder import BIGRAM_ROWS, ModelContents, Tensors
from rejoinder.models.quantized import dequantize_rows, scales_name
from rejoinder.runtime.batches import default_workers
from rejoinder.runtime.layers import Array, Layers
from rejoinder.text.ragged import Ragged

_TABLE = "encoder.table.weight"


class DanRuntime:
    """Token ids to embeddings, computed in float32 whatever the table is stored in."""

    def __init__(self, model: ModelContents, threads: int | None) -> None:
        """The runtime of a model of kind `dan`, on `threads` threads, by default one per core.

        Raises:
            ModelError: the combiner or the activation is unknown.
        """
        combiner = model.encoder["combiner"]
        if combiner not in COMBINERS:
            raise ModelError(f"encoder.combiner {combiner!r}: {nearest(combiner, COMBINERS)}.")
        self.workers = threads or default_workers()
        self.power = COMBINERS[combiner]
        self._take_table(model.tensors)
        self.layers = Layers("encoder.dnn", model.encoder, model.tensors)
        self.bigram_rows = model.tensors.get(BIGRAM_ROWS)
        buckets = 0 if self.bigram_rows is None else len(self.bigram_rows)
        self.words = model.features.rows - buckets

    def __call__(self, batch: Ragged) -> Array:
        """(N, D) float32, not normalised; zero rows for sentences without a known feature."""
        rows = self._rows(batch)
        sums = self._sums(rows.ids, rows.offsets)  # (N, width)
        counts = rows.lengths
        sums /= (np.maximum(counts, 1) ** self.power).astype(np.float32)[:, None]
        embeddings = self.layers(sums)
        embeddings[counts == 0] = 0.0  # an empty sentence must not depend on biases
        return embeddings

    def _take_table(self, tensors: Tensors) -> None:
        self.table: NDArray[Any] = np.ascontiguousarray(tensors[_TABLE], np.float32)

    def _sums(self, rows: NDArray[np.int32], offsets: NDArray[np.int64]) -> Array:
        """Sums of table rows, (N, width) float32, where sentence i has those from offsets[i] on."""
        return _sums_of(self.table, rows, offsets)

    def _rows(self, batch: Ragged) -> Ragged:
        """Table rows of each sentence, without bigrams that have no row."""
        if self.bigram_rows is None:
            return batch
        rows = batch.ids.copy()
        bigrams = rows >= self.words
        rows[bigrams] = self.bigram_rows[rows[bigrams] - self.words]
        return Ragged(rows, batch.offsets).only(rows >= 0)


class Int8DanRuntime(DanRuntime):
    """The runtime of a DAN whose table is int8; it stays so, only rows in use become float32."""

    def _take_table(self, tensors: Tensors) -> None:
        self.table = np.ascontiguousarray(tensors[_TABLE])
        self.scales = tensors[scales_name(_TABLE)]

    def _sums(self, rows: NDArray[np.int32], offsets: NDArray[np.int64]) -> Array:
        """Sums of table rows, each row of the table being converted once a batch."""
        used, indices = np.unique(rows, return_inverse=True)
        return _sums_of(dequantize_rows(self.table[used], self.scales[used]), indices, offsets)


def _sums_of(table: Array, rows: NDArray[Any], offsets: NDArray[np.int64]) -> Array:
    """Sums of rows of a float32 table, as a product with a sparse matrix of ones."""
    ones = np.ones(len(rows), np.float32)
    matrix = csr_array((ones, rows, offsets), shape=(len(offsets) - 1, len(table)))
    sums: Array = matrix @ table
    return sums
