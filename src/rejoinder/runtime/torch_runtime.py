"""The runtime of every encoder kind through its torch module, on the CPU."""

import numpy as np

from rejoinder.errors import ConfigError, MissingExtraError, ModelError
from rejoinder.models.folder import ModelContents
from rejoinder.runtime.layers import Array
from rejoinder.text.ragged import Ragged

_PREFIX = "encoder."


class TorchRuntime:
    """Token ids to embeddings through torch, in float32."""

    workers = 1
    """Torch uses all cores by itself."""

    def __init__(self, model: ModelContents, threads: int | None) -> None:
        """The runtime of a model of any kind; `threads` sets torch's threads, process-wide.

        Raises:
            MissingExtraError: torch is not installed.
            ModelError: the sizes in the model's `config.json` are not valid for its kind.
        """
        try:
            import torch
        except ImportError:
            raise MissingExtraError("torch", "train") from None
        encoder = model.kind.module_class(model.features.rows, _sizes(model), torch.Generator())
        state = encoder.state_dict()
        for name, tensor in model.tensors.items():
            if name.startswith(_PREFIX):
                state[name.removeprefix(_PREFIX)] = torch.from_numpy(tensor.astype(np.float32))
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


def _sizes(model: ModelContents) -> object:
    """The config of the encoder.

    Raises:
        ModelError: its sizes are not allowed.
    """
    from rejoinder.schema.faults import check

    try:
        return check(model.kind.config_class, dict(model.encoder), f"the encoder of {model.name}")
    except ConfigError as error:
        raise ModelError(f"{error} The folder is damaged.") from None
