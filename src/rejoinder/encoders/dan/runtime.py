"""The DAN without torch: sums of rows, and dense layers."""

from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from rejoinder.encoders.dan.kind import BIGRAM_ROWS, COMBINERS
from rejoinder.encoders.layers import Array, Layers, dequantize_rows, scales_name
from rejoinder.io.files.storage import default_workers
from rejoinder.kernels import kernel
from rejoinder.text.ragged import Ragged

if TYPE_CHECKING:
    from rejoinder.models.folder import ModelContents

_TABLE = "encoder.table.weight"
_NO_SCALES = np.empty(0, np.float32)


class DanRuntime:
    """Token ids to embeddings, computed in float32 whatever the table is stored in."""

    library: ClassVar[str] = "numpy"

    def __init__(self, model: "ModelContents", threads: int | None) -> None:
        """The runtime of a model of kind `dan`, on `threads` threads, by default one per core."""
        self.workers = threads or default_workers()
        scales = model.tensors.get(scales_name(_TABLE))
        self.sums = BagSums(model.tensors[_TABLE], scales, COMBINERS[model.encoder["combiner"]])
        self.layers = Layers("encoder.dnn", model.encoder, model.tensors)
        self.bigram_rows = model.tensors.get(BIGRAM_ROWS)
        buckets = 0 if self.bigram_rows is None else len(self.bigram_rows)
        self.words = model.features.rows - buckets

    def __call__(self, batch: Ragged) -> Array:
        """(N, D) float32, not normalised; zero rows for sentences without a known feature."""
        rows = self._rows(batch)
        sums = self.sums(rows)  # (N, width)
        if not self.layers.weights:
            return sums
        embeddings = self.layers(sums)
        embeddings[rows.lengths == 0] = 0.0  # an empty sentence must not depend on biases
        return embeddings

    def _rows(self, batch: Ragged) -> Ragged:
        """Table rows of each sentence, without bigrams that have no row."""
        if self.bigram_rows is None:
            return batch
        rows = batch.ids.copy()
        bigrams = rows >= self.words
        rows[bigrams] = self.bigram_rows[rows[bigrams] - self.words]
        return Ragged(rows, batch.offsets).only(rows >= 0)


class BagSums:
    """Sums, for each sentence, of the rows of a table that its ids name, divided by n^power.

    n is the number of the sentence's ids, so that power 1 gives means. Computed by a kernel in C
    (`_sums.c`) or, where it is not built, NumPy. Both agree up to the rounding of float32 sums.
    """

    def __init__(
        self, table: NDArray[Any], scales: Array | None = None, power: float = 0.0
    ) -> None:
        """Takes a table (R, D) of float32, float16, or int8 with (R,) float32 scales of rows."""
        self.table, self.power = np.ascontiguousarray(table), float(power)
        self.scales = _NO_SCALES if scales is None else np.ascontiguousarray(scales, np.float32)
        self._native = kernel("encoders.dan._sums")

    def __call__(self, batch: Ragged) -> Array:
        """Returns (N, D) float32; zero rows for sentences without ids.

        Raises:
            ValueError: an id is below 0 or beyond the table.
        """
        if self._native is None:
            counts = np.maximum(batch.lengths, 1)
            divisors = np.asarray(counts**self.power, np.float32)
            return self._by_numpy(batch) / divisors[:, None]
        width = self.table.shape[1]
        out = np.empty((len(batch), width), np.float32)
        ids = np.ascontiguousarray(batch.ids, np.int32)
        offsets = np.ascontiguousarray(batch.offsets, np.int64)
        kind = self.table.dtype.char
        self._native.sums(kind, width, self.power, self.table, self.scales, ids, offsets, out)
        return out

    def _by_numpy(self, batch: Ragged) -> Array:
        """Adds the first rows of all sentences, then the second ones, and so on."""
        if len(batch.ids) and not 0 <= batch.ids.min() <= batch.ids.max() < len(self.table):
            raise ValueError(f"sums: an id is not one of the {len(self.table)} rows")
        used, indices = np.unique(batch.ids, return_inverse=True)
        rows = self.table[used]
        if rows.dtype == np.int8:
            rows = dequantize_rows(rows, self.scales[used])
        sums = np.zeros((len(batch), self.table.shape[1]), np.float32)
        for position in range(int(batch.lengths.max(initial=0))):
            longer = np.flatnonzero(batch.lengths > position)
            sums[longer] += rows[indices[batch.offsets[longer] + position]]
        return sums
