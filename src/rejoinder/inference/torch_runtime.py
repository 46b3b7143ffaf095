"""The runtime of every encoder kind through its torch module, on the CPU."""

import numpy as np

from rejoinder.encoders.layers import Array
from rejoinder.encoders.quantized import dequantized
from rejoinder.errors import require
from rejoinder.models.folder import ModelContents
from rejoinder.text.ragged import Ragged

_PREFIX = "encoder."


class TorchRuntime:
    """Token ids to embeddings through torch, in float32."""

    workers = 1
    """Torch uses all cores by itself."""

    def __init__(self, model: ModelContents, threads: int | None) -> None:
        """The runtime of a model of any kind; `threads` sets torch's threads, process-wide.

        Raises:
            MissingExtraError: torch or Pydantic is not installed.
            ModelError: the sizes in the model's `config.json` are not valid for its kind.
        """
        require("train", "torch", "pydantic")
        import torch

        from rejoinder.encoders.nn.shapes import encoder_config

        config = encoder_config(model.kind, model.encoder, f"the encoder of {model.name}")
        encoder = model.kind.module_class(model.features.rows, config, torch.Generator())
        state = encoder.state_dict()
        for name, tensor in dequantized(model.tensors).items():
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
