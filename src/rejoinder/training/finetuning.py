"""Fine-tuning: a model with the words of a domain, and the config that goes on training it."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import polars as pl
import scipy.sparse as sp
from numpy.typing import NDArray

from rejoinder.encoders import ENCODERS
from rejoinder.encoders.layers import BagSums, dequantized
from rejoinder.errors import InputError
from rejoinder.models.config import RESPONSES
from rejoinder.models.folder import ModelContents
from rejoinder.text.features import WordFeatures
from rejoinder.text.readings import Spelling
from rejoinder.text.vocabulary import Vocabulary
from rejoinder.training.config.loading import VOCABULARY_KEYS, parse_config
from rejoinder.training.config.settings import RunConfig
from rejoinder.training.initial_rows import FUNCTION_WORDS

Rows = NDArray[np.float32]

_SPELT = 0.8
"""Weight of the known word that a new word is a letter away from; its context weighs 1."""
_TEXTS = 20_000
_FEW = 100_000
"""Number of pairs from which a word must occur more often."""
_BATCHES = ((20_000, 256, 12), (500_000, 1_024, 6), (None, 2_048, 1))
"""Up to how many pairs: the batch, and the passes over them."""
_RATE, _TABLE_RATE = 0.0003, 0.01
QUESTIONS = "questions.jsonl"
"""File of groups of questions, below the folder of data."""
_OF_QUESTIONS = 0.3
"""Share of the steps for questions."""
SHARES = (0.25, 0.5, 0.75, 1.0)
"""Shares of the trained weights that are tried on dev."""


def widened(
    model: ModelContents, words: Sequence[str], texts: Iterable[pl.Series]
) -> ModelContents:
    """Returns a model that also knows `words`.

    The row of a new word points to the known words that stand next to it in `texts` and to the one
    that it is a letter away from, and is as long as those of rare words. Models of other features
    than words, with bigrams or without words to add are returned as they are.
    """
    features = model.features
    if not words or not isinstance(features, WordFeatures) or features.buckets:
        return model
    name = f"encoder.{model.kind.table}"
    tensors = dequantized(model.tensors)
    table = np.asarray(tensors[name], np.float32)
    known = len(features.vocabulary)
    wider = replace(features, vocabulary=Vocabulary((*features.vocabulary.words, *words)))
    unit = _unit(table[:known])
    length = np.median(np.linalg.norm(table[known - known // 4 : known], axis=1))
    meant = Spelling(features.vocabulary.words)(words)
    spelt = np.where(meant[:, None] >= 0, _SPELT * unit[meant], 0)
    rows = _unit(_by_context(wider, known, len(words), unit, texts) + spelt)
    bare = np.flatnonzero(~rows.any(axis=1))
    if len(bare):  # as the model has read such a word so far
        rows[bare] = _unit(BagSums(table)(features([words[row] for row in bare.tolist()])))
    tensors[name] = np.concatenate([table[:known], rows * length, table[known:]])
    return replace(model, features=wider, tensors=tensors, sha256="")


def _by_context(
    features: WordFeatures, known: int, new: int, unit: Rows, texts: Iterable[pl.Series]
) -> Rows:
    """Returns (new, D) unit rows: the mean of the known words next to each new word."""
    sums = np.zeros((new, unit.shape[1]), np.float32)
    for series in texts:
        for start in range(0, len(series), _TEXTS):
            ids = features(series.slice(start, _TEXTS))
            rows = np.repeat(np.arange(len(ids.lengths)), ids.lengths)
            near = (ids.ids >= FUNCTION_WORDS) & (ids.ids < known)
            added = (ids.ids >= known) & (ids.ids < known + new)
            shape = (len(ids.lengths), known)
            one = np.ones(len(ids.ids), np.float32)
            context = sp.csr_matrix((one[near], (rows[near], ids.ids[near])), shape) @ unit
            places = (ids.ids[added] - known, rows[added])
            sums += sp.csr_matrix((one[added], places), (new, len(ids.lengths))) @ context
    return _unit(sums)


def _unit(rows: Rows) -> Rows:
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    unit: Rows = np.divide(rows, lengths, out=np.zeros_like(rows), where=lengths > 0)
    return unit


def _without_defaults(encoder: Mapping[str, Any]) -> dict[str, Any]:
    """Returns an encoder's settings, which a config refuses where they have no effect."""
    fields = ENCODERS[encoder["kind"]].config_class.model_fields
    return {
        name: value
        for name, value in encoder.items()
        if name == "kind" or value != fields[name].default
    }


def least_count(pairs: int) -> int:
    """Returns how often a word must occur among so many pairs to get a row."""
    return 3 if pairs < _FEW else 5


def recipe(
    model: ModelContents,
    folder: str,
    name: str,
    pairs: int,
    *,
    questions: bool = False,
    seed: int = 0,
    most_steps: int | None = None,
) -> RunConfig:
    """Returns the config that goes on training the model in `folder` on so many pairs.

    With `questions` a share of the steps is for the groups of `QUESTIONS`.

    Raises:
        InputError: the model has no response head.
    """
    head = model.heads.get(RESPONSES)
    if head is None:
        raise InputError(
            f"{model.name} was exported without its response head, which training on replies "
            "needs; take a model that has one."
        )
    text = model.features.config()
    nested = model.training.get("config", {}).get("training", {}).get("nested_dims", [])
    batch, passes = next(how for most, *how in _BATCHES if most is None or pairs < most)
    batch = min(batch, max(2, pairs // 4))
    steps = -(-pairs * passes // batch)
    steps = max(1, min(steps, most_steps or steps))
    return parse_config(
        {
            "name": name,
            "text": {key: text[key] for key in VOCABULARY_KEYS if key in text},
            "encoder": _without_defaults(model.encoder),
            "head": {key: head[key] for key in ("layers", "activation", "residual")},
            "objective": {
                "scale": float(model.tensors["scale"]),
                "learn_scale": True,
                "mask_duplicates": True,
            },
            "optimizer": {"dense": "adam", "table": "adagrad"},
            "training": {
                "seed": seed,
                "precision": "auto",
                "init_from": folder,
                "exclude_leaks": True,
                "nested_dims": [size for size in nested if size < model.dim],
                "log_every": max(1, steps // 50),
            },
            "tasks": [
                {"objective": "responses", "share": 1 - _OF_QUESTIONS},
                {"objective": "paraphrase", "share": _OF_QUESTIONS, "data": [QUESTIONS]},
            ]
            if questions
            else [],
            "phases": [
                {
                    "steps": steps,
                    "batch_size": batch,
                    "learning_rate": _RATE,
                    "table_learning_rate": _TABLE_RATE,
                    "warmup_steps": min(steps // 10, 100),
                    "decay": "linear",
                }
            ],
        },
        name,
    )


def mixed(old: ModelContents, trained: ModelContents, share: float) -> ModelContents:
    """Returns the trained model with weights between the old ones (share 0) and its own (1).

    Tensors of another shape than before, as those of bigrams that were never seen, are its own. The
    linear map of the old model stays.
    """
    before, after = dequantized(old.tensors), dequantized(trained.tensors)
    tensors = dict(after)
    for name, array in after.items():
        if name in before and before[name].shape == array.shape and array.dtype.kind == "f":
            one, other = np.asarray(before[name], np.float32), np.asarray(array, np.float32)
            tensors[name] = ((1 - share) * one + share * other).astype(array.dtype)
    return replace(trained, tensors=tensors, adaptation=old.adaptation, sha256="")
