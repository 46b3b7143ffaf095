"""Runtimes: what computes the embeddings of a model. Torch is imported only where it is used.

An encoder kind may name a runtime without torch (`EncoderKind.runtime`). Others run through their
torch module, and models exported to ONNX by ONNX Runtime (docs/extend/runtime.md).
"""

from typing import Any, ClassVar, Protocol

import numpy as np

from rejoinder.encoders.layers import Array, dequantized
from rejoinder.errors import ModelError, require
from rejoinder.io.files.storage import default_workers
from rejoinder.kernels import way
from rejoinder.models.folder import ModelContents
from rejoinder.protocols import Embeddings
from rejoinder.registry import resolve
from rejoinder.text.features import WordFeatures
from rejoinder.text.ragged import Ragged, padded_groups

BATCH_SIZE = 4_096
"""Default number of sentences per batch. In larger batches sums leave the caches."""
_POSITIONS = 8_192
"""Padded tokens of a pass of ONNX Runtime; bounds the memory that attention needs."""
_OVERHEAD = 16
"""Cost of a pass besides its sentences, in sentences."""


class Runtime(Protocol):
    """The extension point for runtimes: token ids to embeddings."""

    library: ClassVar[str]
    """The library that computes."""

    @property
    def workers(self) -> int:
        """Threads that may call it at a time; 1 if one call uses all cores."""
        ...

    def __call__(self, batch: Ragged) -> Embeddings:
        """(N, D) float32, not normalised; zero rows for sentences without known tokens."""
        ...


class OnnxRuntime:
    """Token ids to embeddings by ONNX Runtime, on the CPU.

    The graph maps `ids` (G, T) int64 and `present` (G, T) bool to `embeddings` (G, D) float32.
    """

    library: ClassVar[str] = "onnxruntime"
    workers = 1
    """ONNX Runtime uses all cores for a call."""

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


class TorchRuntime:
    """Token ids to embeddings of any encoder kind through its torch module, in float32."""

    library: ClassVar[str] = "torch"
    workers = 1
    """Torch uses all cores for a call."""

    def __init__(self, model: ModelContents, threads: int | None) -> None:
        """The runtime of a model of any kind; `threads` sets torch's threads, process-wide.

        Raises:
            MissingExtraError: torch or Pydantic is not installed.
            ModelError: the sizes in the model's `config.json` are not valid for its kind.
        """
        require("train", "torch", "pydantic")
        from rejoinder.encoders.nn.dense import encoder_config

        config = encoder_config(model.kind, model.encoder, f"the encoder of {model.name}")
        import torch  # after `encoders.nn`, which says how its threads wait

        encoder = model.kind.module_class(model.features.rows, config, torch.Generator())
        state = encoder.state_dict()
        for name, tensor in dequantized(model.tensors).items():
            if name.startswith("encoder."):
                state[name.removeprefix("encoder.")] = torch.from_numpy(tensor.astype(np.float32))
        encoder.load_state_dict(state)
        self.encoder = encoder.eval()
        if threads is not None:
            torch.set_num_threads(threads)

    def __call__(self, batch: Ragged) -> Array:
        """(N, D) float32, not normalised; zero rows for empty sentences."""
        import torch

        with torch.inference_mode():
            collated = self.encoder.collate(batch)
            embeddings: Array = self.encoder(collated, normalize=False).numpy()
        return embeddings


def open_runtime(model: ModelContents, threads: int | None) -> Runtime:
    """Opens the runtime of a model on `threads` threads, by default one per core.

    Raises:
        ModelError: the runtime can't read the model.
        MissingExtraError: the runtime needs a package that is not installed.
    """
    runtime: Runtime = _runtime_of(model)(model, threads)
    return runtime


def computed_by(model: ModelContents) -> dict[str, str]:
    """Returns what computes the embeddings of a model on this machine, without loading it.

    `library` does the matrices. Of models of words, `words` is how their ids are found
    (`text.words`), and of a DAN, `sums` how rows are added (`encoders.dan.runtime`).
    """
    found = {"library": str(_runtime_of(model).library)}
    if isinstance(model.features, WordFeatures):
        found["words"] = model.features.word_ids.way
    if model.kind.name == "dan" and model.graph is None:
        found["sums"] = way("encoders.dan._sums")
    return found


def _runtime_of(model: ModelContents) -> Any:
    """Returns the class of the runtime of a model."""
    if model.graph is not None:
        return OnnxRuntime
    return resolve(model.kind.runtime or TorchRuntime)
