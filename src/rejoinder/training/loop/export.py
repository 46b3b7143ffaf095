"""Model folders of training: exported at its end, and read where it starts from one."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from rejoinder.encoders import ENCODERS, EncoderKind
from rejoinder.encoders.dan.kind import BIGRAM_ROWS
from rejoinder.encoders.layers import dequantized
from rejoinder.encoders.nn.dense import BOOKKEEPING
from rejoinder.errors import ConfigError
from rejoinder.models.find import find_model
from rejoinder.models.folder import ModelContents, read_model, write_model
from rejoinder.text.features import TextFeatures, WordFeatures
from rejoinder.text.vocabulary import Vocabulary
from rejoinder.training.config.loading import VOCABULARY_KEYS, to_tree
from rejoinder.training.config.settings import RunConfig
from rejoinder.training.loop.loop import Trainer
from rejoinder.training.loop.model import RESPONSES, TrainableModel

Arrays = dict[str, NDArray[np.generic]]


def export(folder: Path, trainer: Trainer, training: dict[str, object]) -> None:
    """Writes or replaces the model folder of a run, with facts of its training."""
    config = trainer.config
    features: TextFeatures = trainer.features
    half = config.export.dtype == "float16"
    weights = {name: value.detach().cpu() for name, value in trainer.model.state_dict().items()}
    kind = ENCODERS[config.encoder.kind]
    table = None if kind.table is None else f"encoder.{kind.table}"
    tensors: Arrays = {
        name: _halved(value.float().numpy(), half=half and _stored_in_half(name, value, kind))
        for name, value in weights.items()
        if name.startswith(("encoder.", "heads."))
        and not name.endswith(BOOKKEEPING)
        and name != table
    }
    if table is not None:
        rows, bigram_rows = weights[table].float().numpy(), None
        if isinstance(features, WordFeatures):  # subwords are all kept
            seen = weights[table.removesuffix(".weight") + BOOKKEEPING]
            features, rows, bigram_rows = _trained_rows(features, rows, seen.numpy())
        tensors[table] = _halved(rows, half=half)
        if bigram_rows is not None:
            tensors[BIGRAM_ROWS] = bigram_rows
    tensors["scale"] = np.asarray(trainer.model.scale().detach().cpu().numpy())
    write_model(
        folder,
        ModelContents(
            name=config.name,
            features=features,
            encoder=to_tree(config.encoder),
            heads={name: head.describe() for name, head in config.heads.items()},
            training=training,
            tensors=tensors,
        ),
        overwrite=True,
    )


def _stored_in_half(name: str, value: Tensor, kind: EncoderKind) -> bool:
    """Whether `export.dtype` acts on a tensor other than the table: matrices of dense encoders."""
    return kind.table is None and name.startswith("encoder.") and value.ndim > 1


def _trained_rows(
    features: WordFeatures, table: NDArray[np.float32], seen: NDArray[np.bool_]
) -> tuple[WordFeatures, NDArray[np.float32], NDArray[np.int32] | None]:
    """Returns features and rows that were trained, and the row of each bigram bucket, if any.

    Words that were never trained leave the vocabulary. With bigrams, whose buckets are a function
    of word ids, words keep their ids and untrained ones become zero rows. Buckets of unknown words
    all stay: a random row still tells one word from another.
    """
    known, words = features.vocabulary.words, features.words
    if features.buckets:
        trained = np.flatnonzero(seen[words:])
        bigram_rows = np.full(features.buckets, -1, np.int32)
        bigram_rows[trained] = np.arange(len(trained), dtype=np.int32) + words
        rows = np.concatenate([table[:words], table[words + trained]])
        rows[np.flatnonzero(~seen[: len(known)])] = 0.0
        return features, rows, bigram_rows
    kept = np.flatnonzero(seen[: len(known)])
    rows = np.concatenate([table[kept], table[len(known) :]])
    vocabulary = Vocabulary(tuple(known[index] for index in kept))
    return replace(features, vocabulary=vocabulary), rows, None


def _halved(array: NDArray[np.float32], *, half: bool) -> NDArray[np.generic]:
    return array.astype(np.float16) if half else array


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
    return torch.tensor(np.asarray(array)).float()  # a copy: what was read may be read-only
