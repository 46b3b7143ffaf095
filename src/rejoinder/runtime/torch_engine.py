"""Encoders that run through torch, which is imported when such a model is loaded."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from rejoinder.errors import ConfigError, MissingExtraError, ModelError
from rejoinder.models.folder import ModelContents
from rejoinder.runtime.layers import Array
from rejoinder.text.ragged import Ragged

if TYPE_CHECKING:
    from rejoinder.encoders.settings import EncoderSettings

Sizes = TypeVar("Sizes", bound="EncoderSettings")


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

    from rejoinder.encoders.settings import TransformerConfig
    from rejoinder.encoders.transformer import TransformerEncoder

    # its dropout is for training
    sizes = ("layers", "heads", "hidden", "filter", "dim")
    config = _checked(TransformerConfig, model, sizes)
    return TransformerEncoder(model.features.rows, config, torch.Generator())


def _bilstm(model: ModelContents) -> Any:
    import torch

    from rejoinder.encoders.bilstm import BilstmEncoder
    from rejoinder.encoders.settings import BilstmConfig

    config = _checked(BilstmConfig, model, ("width", "hidden", "dim", "max_tokens"))
    return BilstmEncoder(model.features.rows, config, torch.Generator())


def _checked(kind: "type[Sizes]", model: ModelContents, sizes: Sequence[str]) -> "Sizes":
    """The sizes in a model's `config.json`.

    Raises:
        ModelError: they are none that a config allows.
    """
    from rejoinder.schema.faults import check

    values = {name: model.encoder[name] for name in sizes}
    try:
        return check(kind, values, f"the encoder of {model.name}")
    except ConfigError as error:
        raise ModelError(f"{error} The folder is damaged.") from None


_BUILDERS: dict[str, Callable[[ModelContents], Any]] = {
    "transformer": _transformer,
    "bilstm": _bilstm,
}
