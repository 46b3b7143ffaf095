"""Encoders that run through torch, which is imported when such a model is loaded."""

from collections.abc import Callable
from typing import Any

import numpy as np

from rejoinder.errors import MissingExtraError
from rejoinder.models.folder import ModelContents
from rejoinder.runtime.layers import Array
from rejoinder.text.ragged import Ragged


class TorchRuntime:
    """Ids to vectors, on the CPU, in float32."""

    workers = 1
    """Torch uses all cores by itself."""

    def __init__(self, model: ModelContents, threads: int | None) -> None:
        """The encoder of a model of kind `transformer` or `bilstm`; `threads` are torch's.

        Raises:
            MissingExtraError: torch is not installed.
        """
        try:
            import torch
        except ImportError:
            raise MissingExtraError("torch", "train") from None
        kind = model.encoder["kind"]
        encoder = _BUILDERS[kind](model)
        state = {
            name.removeprefix(f"{kind}."): torch.from_numpy(tensor.astype(np.float32))
            for name, tensor in model.tensors.items()
            if name.startswith(f"{kind}.")
        }
        if "embedding" in model.tensors:
            table = torch.from_numpy(model.tensors["embedding"].astype(np.float32))
            state |= {"table.weight": table, "table.seen": encoder.table.seen}
        encoder.load_state_dict(state)
        self.encoder = encoder.eval()
        if threads is not None:
            torch.set_num_threads(threads)

    def __call__(self, batch: Ragged) -> Array:
        """(N, D) float32, not yet of length 1; zero rows for empty sentences."""
        import torch

        with torch.inference_mode():
            batched = self.encoder.prepare(batch)  # sorted by length, in groups
            embeddings: Array = self.encoder(batched, normalize=False).numpy()
        return embeddings


def _transformer(model: ModelContents) -> Any:
    import torch

    from rejoinder.encoders.transformer import TransformerConfig, TransformerEncoder

    sizes = {key: model.encoder[key] for key in ("layers", "heads", "hidden", "filter", "dim")}
    config = TransformerConfig(**sizes)  # dropout is for training
    return TransformerEncoder(model.features.rows, config, torch.Generator())


def _bilstm(model: ModelContents) -> Any:
    import torch

    from rejoinder.encoders.bilstm import BilstmConfig, BilstmEncoder

    sizes = {key: model.encoder[key] for key in ("width", "hidden", "dim", "max_tokens")}
    return BilstmEncoder(model.features.rows, BilstmConfig(**sizes), torch.Generator())


_BUILDERS: dict[str, Callable[[ModelContents], Any]] = {
    "transformer": _transformer,
    "bilstm": _bilstm,
}
