"""The engines behind `SentenceEncoder`, by the kind of encoder; torch only where it is needed."""

from typing import Protocol

from rejoinder.errors import ModelError
from rejoinder.models.folder import ModelContents
from rejoinder.protocols import Embeddings
from rejoinder.runtime.batches import default_workers
from rejoinder.text.ragged import Ragged


class Runtime(Protocol):
    """The extension point for engines: ids to vectors."""

    @property
    def workers(self) -> int:
        """How many threads may call it at a time; 1 where it uses all cores by itself."""
        ...

    def __call__(self, batch: Ragged) -> Embeddings:
        """(N, D) float32, not yet of length 1; zero rows where nothing is known."""
        ...


def open_runtime(model: ModelContents, threads: int | None) -> Runtime:
    """The engine of a model, on `threads` threads, by default as many as there are cores.

    Raises:
        ModelError: an encoder of an unknown kind.
        MissingExtraError: the engine needs a package that is not installed.
    """
    kind = model.encoder["kind"]
    if kind == "dan":
        from rejoinder.runtime.dan import DanRuntime

        return DanRuntime(model, threads or default_workers())
    if kind in ("transformer", "bilstm"):
        from rejoinder.runtime.torch_engine import TorchRuntime

        return TorchRuntime(model, threads)
    raise ModelError(f"encoder kind {kind!r} is unknown; known: 'bilstm', 'dan', 'transformer'.")
