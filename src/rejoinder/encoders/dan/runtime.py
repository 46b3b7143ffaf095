"""The DAN without torch: sums of rows, and dense layers."""

from typing import TYPE_CHECKING

from rejoinder.encoders.dan.kind import BIGRAM_ROWS, COMBINERS
from rejoinder.encoders.dan.sums import RowSums
from rejoinder.encoders.layers import Array, Layers
from rejoinder.encoders.quantized import scales_name
from rejoinder.errors import ModelError, nearest
from rejoinder.io.files.platform import default_workers
from rejoinder.text.ragged import Ragged

if TYPE_CHECKING:
    from rejoinder.models.folder import ModelContents

_TABLE = "encoder.table.weight"


class DanRuntime:
    """Token ids to embeddings, computed in float32 whatever the table is stored in."""

    def __init__(self, model: "ModelContents", threads: int | None) -> None:
        """The runtime of a model of kind `dan`, on `threads` threads, by default one per core.

        Raises:
            ModelError: the combiner or the activation is unknown.
        """
        combiner = model.encoder["combiner"]
        if combiner not in COMBINERS:
            raise ModelError(f"encoder.combiner {combiner!r}: {nearest(combiner, COMBINERS)}.")
        self.workers = threads or default_workers()
        scales = model.tensors.get(scales_name(_TABLE))
        self.sums = RowSums(model.tensors[_TABLE], scales, COMBINERS[combiner])
        self.layers = Layers("encoder.dnn", model.encoder, model.tensors)
        self.bigram_rows = model.tensors.get(BIGRAM_ROWS)
        buckets = 0 if self.bigram_rows is None else len(self.bigram_rows)
        self.words = model.features.rows - buckets

    def __call__(self, batch: Ragged) -> Array:
        """(N, D) float32, not normalised; zero rows for sentences without a known feature."""
        rows = self._rows(batch)
        sums = self.sums(rows)  # (N, width)
        if not self.layers.linear:
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
