"""Starts training from an exported model: its vocabulary, encoder and heads."""

import numpy as np
import torch
from torch import Tensor

from rejoinder.encoders.dan.kind import BIGRAM_ROWS
from rejoinder.encoders.nn.shapes import BOOKKEEPING
from rejoinder.encoders.quantized import dequantized
from rejoinder.errors import ConfigError
from rejoinder.models.find import find_model
from rejoinder.models.folder import ModelContents, read_model
from rejoinder.text.features import WordFeatures
from rejoinder.training.config.loading import VOCABULARY_KEYS, to_tree
from rejoinder.training.config.settings import RunConfig
from rejoinder.training.loop.model import RESPONSES, TrainableModel


def open_initial(config: RunConfig) -> ModelContents | None:
    """Reads the model that a config starts from, if it names one.

    Raises:
        ModelError: the folder is not a model, or is damaged.
        ConfigError: its encoder, response head or text settings differ from the config's.
    """
    folder = config.training.init_from
    if not folder:
        return None
    model = read_model(find_model(folder))
    text, asked = model.features.config(), to_tree(config.text)
    settings = {
        "encoder": (dict(model.encoder), to_tree(config.encoder)),
        "head": (dict(model.heads.get(RESPONSES, {})), config.heads[RESPONSES].describe()),
        **{f"text.{name}": (text.get(name), asked.get(name)) for name in VOCABULARY_KEYS},
    }
    for name, (stored, wanted) in settings.items():
        if stored != wanted:
            raise ConfigError(
                f"training.init_from {folder} has {name} {stored}; the config has {wanted}: they "
                "must be equal, since training starts from the model's weights and vocabulary."
            )
    return model


def start_from(model: TrainableModel, initial: ModelContents) -> None:
    """Copies the weights of an exported model; parameters that it lacks stay as drawn."""
    state = model.state_dict()
    table = initial.kind.table
    for name, array in dequantized(initial.tensors).items():
        if name == f"encoder.{table}":
            rows, seen = _whole_table(initial, array)
            state[name].copy_(rows)
            state[name.removesuffix(".weight") + BOOKKEEPING].copy_(seen)
        elif name in state:  # a head of another objective may be missing on either side
            state[name].copy_(_tensor(array))
    scale = torch.tensor(float(np.log(initial.tensors["scale"])))
    state[f"log_scales.{RESPONSES}"].copy_(scale)


def _whole_table(initial: ModelContents, array: np.ndarray) -> tuple[Tensor, Tensor]:
    """Returns the table with the rows dropped at export as zeros, and which rows were kept."""
    rows = _tensor(array)
    buckets = initial.tensors.get(BIGRAM_ROWS)
    if buckets is None:
        return rows, torch.ones(len(rows), dtype=torch.bool)
    words = initial.features.words if isinstance(initial.features, WordFeatures) else 0
    index = torch.from_numpy(np.concatenate([np.arange(words), buckets]).astype(np.int64))
    seen = index >= 0
    return rows[index.clamp(min=0)] * seen.unsqueeze(1), seen


def _tensor(array: np.ndarray) -> Tensor:
    return torch.from_numpy(np.ascontiguousarray(array)).float()
