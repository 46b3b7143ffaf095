"""Starting from a trained model: its words, its encoder, its response head."""

from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from rejoinder.errors import ConfigError
from rejoinder.models.folder import ModelContents, read_model
from rejoinder.text.features import WordFeatures
from rejoinder.training.config import to_tree
from rejoinder.training.model import TrainableModel
from rejoinder.training.settings import RunConfig


def open_initial(config: RunConfig) -> ModelContents | None:
    """The model that a config starts from, if it names one.

    Raises:
        ModelError: it is no model folder, or damaged.
        ConfigError: its encoder or its text is another than the config's.
    """
    if not config.training.init_from:
        return None
    model = read_model(Path(config.training.init_from))
    wanted = {"encoder": to_tree(config.encoder), "head": {"kind": "dnn", **to_tree(config.head)}}
    for name, table in wanted.items():
        found = dict(getattr(model, name))
        if found != table:
            raise ConfigError(
                f"training.init_from {config.training.init_from} has {name} {found}; the config "
                f"has {table}: they must be the same."
            )
    text, asked = model.features.config(), to_tree(config.text)
    for name in ("kind", "bigram_buckets", "unknown_buckets", "max_tokens"):
        if text.get(name) != asked.get(name):
            raise ConfigError(
                f"training.init_from {config.training.init_from} has text.{name} "
                f"{text.get(name)}; the config has {asked.get(name)}: they must be the same, for "
                "the model's text is what is read."
            )
    return model


def start_from(model: TrainableModel, initial: ModelContents) -> None:
    """Give a new model the weights of a trained one; other tasks' parameters stay as drawn."""
    state = model.state_dict()
    for name, value in _weights(initial).items():
        if name in state:  # a classifier, where the new run has one
            state[name].copy_(value)
    state["log_scales.responses"].copy_(torch.tensor(float(np.log(initial.tensors["scale"]))))


def _weights(initial: ModelContents) -> dict[str, Tensor]:
    """Tensors of a model folder by the names that they have in training."""
    weights: dict[str, Tensor] = {}
    for name, array in initial.tensors.items():
        value = torch.from_numpy(np.ascontiguousarray(array))
        if name == "embedding":
            weights |= _table(initial, value.float())
        elif name.startswith(("transformer.", "bilstm.")):
            weights["encoder." + name.partition(".")[2]] = value.float()
        elif name.startswith("dan."):
            weights[name.replace("dan.", "encoder.dnn.layers.", 1)] = value.float()
        elif name.startswith("head."):
            weights[name.replace("head.", "head.layers.", 1)] = value.float()
        elif name.startswith("entailment."):
            weights[name.replace("entailment.", "entailment.dnn.layers.", 1)] = value.float()
        elif name == "skip.weight":
            weights["encoder.dnn.skip.weight"] = value.float()
    return weights


def _table(initial: ModelContents, rows: Tensor) -> dict[str, Tensor]:
    """The table of words: buckets that were never trained begin at zero."""
    places = initial.tensors.get("bigram_rows")
    if places is None:
        seen = torch.ones(len(rows), dtype=torch.bool)
    else:
        words = initial.features.words if isinstance(initial.features, WordFeatures) else 0
        index = torch.from_numpy(np.concatenate([np.arange(words), places]).astype(np.int64))
        seen = index >= 0
        rows = rows[index.clamp(min=0)] * seen.unsqueeze(1)
    return {"encoder.table.weight": rows, "encoder.table.seen": seen}
