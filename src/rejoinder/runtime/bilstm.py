"""The BiLSTM through torch, which is imported when such a model is loaded."""

from typing import TYPE_CHECKING

import numpy as np

from rejoinder.errors import MissingExtraError
from rejoinder.models.folder import ModelContents
from rejoinder.runtime.layers import Array
from rejoinder.text.ragged import Ragged

if TYPE_CHECKING:
    from rejoinder.encoders.bilstm import BilstmEncoder

_PREFIX = "bilstm."


class BilstmRuntime:
    """Ids to vectors, on the CPU, in float32."""

    workers = 1
    """Torch uses all cores by itself."""

    def __init__(self, model: ModelContents, threads: int | None) -> None:
        """The encoder of a model of kind `bilstm`; `threads` are torch's, if given.

        Raises:
            MissingExtraError: torch is not installed.
        """
        self.encoder = _build(model)
        if threads is not None:
            import torch

            torch.set_num_threads(threads)

    def __call__(self, batch: Ragged) -> Array:
        """(N, D) float32, not yet of length 1; zero rows for empty sentences."""
        import torch

        with torch.inference_mode():
            batched = self.encoder.prepare(batch)  # sorted by length, in groups
            embeddings: Array = self.encoder(batched, normalize=False).numpy()
        return embeddings


def _build(model: ModelContents) -> "BilstmEncoder":
    try:
        import torch

        from rejoinder.encoders.bilstm import BilstmConfig, BilstmEncoder
    except ImportError:
        raise MissingExtraError("torch", "train") from None
    sizes = {key: model.encoder[key] for key in ("width", "hidden", "dim", "max_tokens")}
    encoder = BilstmEncoder(model.features.rows, BilstmConfig(**sizes), torch.Generator())
    state = {
        name.removeprefix(_PREFIX): torch.from_numpy(tensor.astype(np.float32))
        for name, tensor in model.tensors.items()
        if name.startswith(_PREFIX)
    }
    table = torch.from_numpy(model.tensors["embedding"].astype(np.float32))
    state |= {"table.weight": table, "table.seen": encoder.table.seen}
    encoder.load_state_dict(state)
    return encoder.eval()
