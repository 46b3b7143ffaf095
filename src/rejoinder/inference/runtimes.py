"""Runtimes by encoder kind and weight type; torch is imported only where one needs it.

A new runtime is one file and one entry of `RUNTIMES` (docs/extend/runtime.md).
"""

from dataclasses import dataclass
from typing import Protocol

from rejoinder.errors import ModelError
from rejoinder.inference.batches import BATCH_SIZE
from rejoinder.kernels import way
from rejoinder.models.folder import ModelContents
from rejoinder.protocols import Embeddings
from rejoinder.registry import resolve
from rejoinder.text.features import WordFeatures
from rejoinder.text.ragged import Ragged


class Runtime(Protocol):
    """The extension point for runtimes: token ids to embeddings."""

    @property
    def workers(self) -> int:
        """Threads that may call it at a time; 1 if it uses all cores by itself."""
        ...

    def __call__(self, batch: Ragged) -> Embeddings:
        """(N, D) float32, not normalised; zero rows for sentences without known tokens."""
        ...


@dataclass(frozen=True)
class RuntimeKind:
    """A runtime, and the models that it can run."""

    encoder: str | None
    """Encoder kind; None means any kind, through its torch module."""
    weights: tuple[str, ...]
    """Types of the encoder's weights, as NumPy names them."""
    library: str
    """The library that computes."""
    build: str
    """`"module:class"` of a `Runtime` built from (`ModelContents`, number of threads or None)."""
    graph: bool = False
    """Whether it runs graphs of ONNX, and nothing else."""


RUNTIMES: list[RuntimeKind] = [
    RuntimeKind(
        None,
        ("int8", "float32"),
        "onnxruntime",
        "rejoinder.inference.onnx_runtime:OnnxRuntime",
        graph=True,
    ),
    RuntimeKind(
        "dan", ("int8", "float16", "float32"), "numpy", "rejoinder.encoders.dan.runtime:DanRuntime"
    ),
    RuntimeKind(
        None,
        ("int8", "float16", "float32"),
        "torch",
        "rejoinder.inference.torch_runtime:TorchRuntime",
    ),
]
"""All runtimes; the first that fits a model is used."""


def open_runtime(model: ModelContents, threads: int | None) -> Runtime:
    """Opens the runtime of a model on `threads` threads, by default one per core.

    Raises:
        ModelError: no runtime fits the model.
        MissingExtraError: the runtime needs a package that is not installed.
    """
    runtime: Runtime = resolve(_runtime_of(model).build)(model, threads)
    return runtime


def computed_by(model: ModelContents) -> dict[str, str]:
    """Returns what computes the embeddings of a model here, without loading it.

    `library` does the matrices. Of models of words, `words` is how their ids are found
    (`text.words`); of a DAN, `sums` how rows are added (`encoders.dan.sums`), and `layers` how
    they pass through dense layers (`encoders.layers`).
    """
    runtime = _runtime_of(model)
    found = {"library": runtime.library}
    if isinstance(model.features, WordFeatures):
        found["words"] = model.features.word_ids.way(BATCH_SIZE)
    if runtime.encoder == "dan":
        found |= {"sums": way("encoders.dan._sums"), "layers": way("encoders._layers")}
    return found


def _runtime_of(model: ModelContents) -> RuntimeKind:
    """Returns the first runtime that fits a model.

    Raises:
        ModelError: no runtime fits.
    """
    kind, weights = model.kind.name, model.weight_type
    for candidate in RUNTIMES:
        fits = candidate.encoder in (None, kind) and weights in candidate.weights
        if fits and candidate.graph == (model.graph is not None):
            return candidate
    raise ModelError(f"no runtime computes encoder kind {kind!r} with weights of type {weights}.")
