"""The runtime of models that were exported to ONNX: any encoder kind, without torch."""

import numpy as np

from rejoinder.encoders.layers import Array
from rejoinder.errors import ModelError, require
from rejoinder.io.files.platform import default_workers
from rejoinder.models.folder import ModelContents
from rejoinder.text.padding import padded_groups
from rejoinder.text.ragged import Ragged

_POSITIONS = 8_192
"""Padded tokens of a pass; bounds the memory that attention needs."""
_OVERHEAD = 16
"""A pass takes as much longer than its sentences as this many more would."""


class OnnxRuntime:
    """Token ids to embeddings by ONNX Runtime, on the CPU.

    The graph maps `ids` (G, T) int64 and `present` (G, T) bool to `embeddings` (G, D) float32.
    """

    workers = 1
    """ONNX Runtime uses all cores by itself."""

    def __init__(self, model: ModelContents, threads: int | None) -> None:
        """The runtime of a model with a graph, on `threads` threads, by default one per core.

        Raises:
            MissingExtraError: ONNX Runtime is not installed.
            ModelError: ONNX Runtime does not accept the graph.
        """
        require("onnx", "onnxruntime")
        import onnxruntime

        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads or default_workers()
        options.log_severity_level = 3  # errors; they are raised, too
        try:
            self._session = onnxruntime.InferenceSession(
                model.graph, options, providers=["CPUExecutionProvider"]
            )
        except Exception as error:  # the library has no base class of its errors
            raise ModelError(f"the graph of {model.name} can't be read: {error}") from None
        self._dim = model.dim
        self._most = model.encoder.get("max_tokens")

    def __call__(self, batch: Ragged) -> Array:
        """(N, D) float32, not normalised; zero rows for empty sentences."""
        if self._most is not None:
            batch = batch.first(self._most)
        out = np.zeros((len(batch), self._dim), np.float32)
        for group in padded_groups(batch, _POSITIONS, _OVERHEAD):
            feeds = {"ids": group.ids, "present": group.present}
            out[group.sentences] = self._session.run(["embeddings"], feeds)[0]
        return out
