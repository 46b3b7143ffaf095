"""Two encoders side by side: the rows of a word in both, one after the other, are its row.

Encoders that were trained on different data make different errors, and their cosines add up
(meta-embeddings by concatenation: Yin and Schütze 2016, §3.1).
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from rejoinder.encoders.dan.runtime import BagSums
from rejoinder.encoders.quantized import Tensors, dequantized, scales_name
from rejoinder.errors import InputError
from rejoinder.models.folder import ModelContents
from rejoinder.models.layout import RESPONSES
from rejoinder.text.features import WordFeatures

_TABLE = "encoder.table.weight"
_SHARE = 0.9
"""How long the second row of a word is, where the first is 1; .6 to 1.2 score alike on dev."""


def joined(first: ModelContents, second: ModelContents) -> ModelContents:
    """Returns a model of the words of `first`, whose embeddings are those of both, side by side.

    The second reads the words as it does, by their letters too. The response head is that of the
    first, and adds nothing to what the second says; other heads are left out. `training` names
    what the second was trained on, as `joined`.

    Raises:
        InputError: one of the two is not a DAN of words without dense layers and bigrams.
    """
    words = _words(first)
    _words(second)
    tensors, width = dequantized(first.tensors), second.dim
    own = tensors[_TABLE].astype(np.float32)
    other = np.zeros((len(own), width), np.float32)
    sums = BagSums(second.tensors[_TABLE], second.tensors.get(scales_name(_TABLE)))
    other[: len(words)] = sums(second.features(words))
    known = np.flatnonzero(other.any(axis=1))
    if not len(known):
        raise InputError(f"{second.name} knows none of the words of {first.name}.")
    long, short = (np.median(np.linalg.norm(each[known], axis=1)) for each in (own, other))
    other *= np.float32(_SHARE * long / short)
    made = {name: value for name, value in tensors.items() if not name.startswith("heads.")}
    made[_TABLE] = np.concatenate([own, other], axis=1)
    heads: dict[str, Mapping[str, Any]] = {}
    if RESPONSES in first.heads:
        head = first.heads[RESPONSES]
        layers = [*head["layers"][:-1], first.dim + width] if head["layers"] else []
        heads[RESPONSES] = {**head, "layers": layers}
        made |= _wider_head(tensors, len(layers), width)
    learnt = {key: value for key, value in second.training.items() if key != "config"}
    facts = {"name": second.name, "sha256": second.sha256, "training": learnt}
    return replace(
        first,
        encoder={**first.encoder, "width": first.dim + width},
        heads=heads,
        training={**first.training, "joined": facts},
        tensors=made,
    )


def _words(model: ModelContents) -> tuple[str, ...]:
    features = model.features
    plain = model.kind.name == "dan" and not model.encoder["layers"] and model.adaptation is None
    if not plain or not isinstance(features, WordFeatures) or features.buckets:
        raise InputError(
            f"{model.name} can't be joined: only a DAN of words with encoder.layers = [], without "
            "bigrams and not adapted, adds up rows alone."
        )
    return features.vocabulary.words


def _wider_head(tensors: Tensors, layers: int, width: int) -> Tensors:
    """Returns the response head F for embeddings that `width` more entries follow.

    It reads the entries that it was trained on, at the length that they had.
    """
    prefix = f"heads.{RESPONSES}.layers."
    made = {
        name: value.astype(np.float32) for name, value in tensors.items() if name.startswith(prefix)
    }
    if layers:
        first, last = f"{prefix}0.weight", f"{prefix}{layers - 1}"
        length = np.float32(np.sqrt(1 + _SHARE**2))
        made[first] = np.pad(made[first] * length, ((0, 0), (0, width)))
        for part in ("weight", "bias"):
            value = made[f"{last}.{part}"]
            made[f"{last}.{part}"] = np.pad(value, ((0, width), (0, 0))[: value.ndim])
    return made
