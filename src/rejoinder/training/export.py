"""From a trained model to a model folder: the chosen weights, without rows that never learned."""

from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from rejoinder.encoders.bilstm import BilstmEncoder
from rejoinder.encoders.dan import DanEncoder
from rejoinder.encoders.transformer import TransformerEncoder
from rejoinder.errors import ModelError
from rejoinder.models.folder import ModelContents, write_model
from rejoinder.models.layout import KINDS
from rejoinder.objectives.entailment import CLASSES
from rejoinder.text.features import TextFeatures, WordFeatures
from rejoinder.text.subwords import SubwordFeatures
from rejoinder.text.vocabulary import Vocabulary
from rejoinder.training.checkpoint import load_best
from rejoinder.training.config import to_tree
from rejoinder.training.loop import Trainer

Arrays = dict[str, NDArray[np.generic]]


def export(place: Path, trainer: Trainer, training: dict[str, object]) -> None:
    """Write the model folder of a run at `place`.

    Raises:
        ModelError: the encoder is of a kind that no model folder holds.
    """
    weights = chosen_weights(trainer)
    half = trainer.config.export.dtype == "float16"
    encoder = trainer.model.encoder
    features: TextFeatures = trainer.features
    if isinstance(encoder, DanEncoder) and isinstance(features, WordFeatures):
        features, tensors = _dan(features, weights, encoder.table.seen.cpu().numpy(), half=half)
    elif isinstance(encoder, BilstmEncoder) and isinstance(features, WordFeatures):
        features, tensors = _bilstm(features, weights, encoder.table.seen.cpu().numpy(), half=half)
    elif isinstance(encoder, TransformerEncoder) and isinstance(features, SubwordFeatures):
        tensors = _transformer(weights, half=half)
    else:
        raise ModelError(
            f"an encoder {type(encoder).__name__} that reads {type(features).__name__} can't be "
            f"exported; known kinds, each with what it reads: "
            f"{', '.join(f'{kind} ({text})' for kind, text in KINDS.items())}."
        )
    tensors |= {
        name.replace("head.layers.", "head."): _array(value)
        for name, value in weights.items()
        if name.startswith("head.")
    }
    tensors |= {
        name.replace("entailment.dnn.layers.", "entailment."): _array(value)
        for name, value in weights.items()
        if name.startswith("entailment.")
    }
    tensors["scale"] = np.asarray(trainer.model.scale().detach().cpu().numpy())
    config = trainer.config
    write_model(
        place,
        ModelContents(
            name=config.name,
            features=features,
            encoder=to_tree(config.encoder),
            head={"kind": "dnn", **to_tree(config.head)},
            training=training,
            entailment=_classifier(trainer),
            tensors=tensors,
        ),
        overwrite=True,
    )


def _classifier(trainer: Trainer) -> dict[str, object] | None:
    """The table `entailment` of the model's config."""
    if trainer.model.entailment is None:
        return None
    config = trainer.config.entailment
    layers = [config.hidden, CLASSES]
    return {"layers": layers, "activation": config.activation, "residual": False}


def chosen_weights(trainer: Trainer) -> dict[str, Tensor]:
    """The weights that the config exports: last, best on dev, or averaged."""
    kind = trainer.config.export.weights
    if kind == "best" and trainer.state.best_step >= 0:
        return load_best(trainer.run, trainer.state.best_step)
    if kind == "average" and trainer.average:
        return trainer.average
    return {name: value.detach().cpu() for name, value in trainer.model.state_dict().items()}


def _dan(
    features: WordFeatures, weights: dict[str, Tensor], seen: NDArray[np.bool_], *, half: bool
) -> tuple[WordFeatures, Arrays]:
    """The tensors of a DAN, with the rows that were trained alone.

    Words that were never trained leave the vocabulary. Where there are bigrams, whose buckets
    are a function of the ids of words, words keep their ids and an untrained one is a zero row.
    Buckets of unknown words all stay: a random row still tells one word from another.
    """
    table = weights["encoder.table.weight"].float().numpy()
    words = features.words
    tensors: Arrays = {}
    if features.buckets:
        trained = np.flatnonzero(seen[words:])
        rows = np.full(features.buckets, -1, np.int32)
        rows[trained] = np.arange(len(trained), dtype=np.int32) + words
        tensors["bigram_rows"] = rows
        table = np.concatenate([table[:words], table[words + trained]])
        table[np.flatnonzero(~seen[: len(features.vocabulary)])] = 0.0
    else:
        features, table = _trained_words(features, table, seen)
    tensors["embedding"] = _halved(table, half=half)
    for name, value in weights.items():
        if name.startswith("encoder.dnn.layers."):
            tensors[name.replace("encoder.dnn.layers.", "dan.")] = _array(value)
        elif name == "encoder.dnn.skip.weight":
            tensors["skip.weight"] = _array(value)
    return features, tensors


def _bilstm(
    features: WordFeatures, weights: dict[str, Tensor], seen: NDArray[np.bool_], *, half: bool
) -> tuple[WordFeatures, Arrays]:
    """The tensors of a BiLSTM; words that were never trained leave the vocabulary."""
    table = weights["encoder.table.weight"].float().numpy()
    features, table = _trained_words(features, table, seen)
    tensors: Arrays = {"embedding": _halved(table, half=half)}
    for name, value in weights.items():
        if name.startswith("encoder.") and not name.startswith("encoder.table."):
            tensors[name.replace("encoder.", "bilstm.", 1)] = _array(value)
    return features, tensors


def _trained_words(
    features: WordFeatures, table: NDArray[np.float32], seen: NDArray[np.bool_]
) -> tuple[WordFeatures, NDArray[np.float32]]:
    """The words that were trained, and their rows; all buckets of unknown words."""
    known = features.vocabulary.words
    kept = np.flatnonzero(seen[: len(known)])
    rows = np.concatenate([table[kept], table[len(known) :]])
    words = Vocabulary(tuple(known[index] for index in kept))
    return WordFeatures(words, unknown_buckets=features.unknown_buckets), rows


def _transformer(weights: dict[str, Tensor], *, half: bool) -> Arrays:
    tensors: Arrays = {}
    for name, value in weights.items():
        if name.startswith("encoder."):
            array = _array(value)
            tensors[name.replace("encoder.", "transformer.", 1)] = (
                _halved(array, half=half) if array.ndim > 1 else array
            )
    return tensors


def _array(value: Tensor) -> NDArray[np.float32]:
    return value.detach().to(torch.float32).cpu().numpy()


def _halved(table: NDArray[np.float32], *, half: bool) -> NDArray[np.generic]:
    return table.astype(np.float16) if half else table
