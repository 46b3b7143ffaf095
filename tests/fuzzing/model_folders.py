"""Edited model folders, loaded and used: a model or a ModelError."""

import json
import shutil
import warnings
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from random import Random

import numpy as np

from fuzzing.models import mutated_model
from rejoinder.errors import ForeignTextWarning, ModelError
from rejoinder.inference.encoder import SentenceEncoder
from rejoinder.models.adaptation import Adaptation
from rejoinder.models.folder import read_model, write_model
from rejoinder.models.smaller import ExportOptions, smaller
from tiny_models import bilstm_model, dan_model, head_table, transformer_model

TEXTS = ["How old are you?", "", "my cat is twenty", "zebra", "très 😀 مرحبا"]


def full_dan():
    """A DAN with all that a model can have: bigrams, a classifier, an adaptation."""
    draw = np.random.default_rng(1)
    model = dan_model(buckets=16, unknown_buckets=4)
    tensors = {
        "heads.entailment.layers.0.weight": draw.standard_normal((4, 20), np.float32),
        "heads.entailment.layers.0.bias": draw.standard_normal(4, np.float32),
        "heads.entailment.layers.1.weight": draw.standard_normal((3, 4), np.float32),
        "heads.entailment.layers.1.bias": draw.standard_normal(3, np.float32),
    }
    matrix = np.eye(5, dtype=np.float32) + np.float32(0.01)
    facts = {
        "kind": "linear",
        "pairs": 7,
        "dev_pearson_before": 0.5,
        "dev_pearson_after": 0.6,
        "data": {"name": "stsb", "split": "train"},
    }
    return replace(
        model,
        tensors=model.tensors | tensors,
        heads={**model.heads, "entailment": head_table((4, 3), "relu", inputs=4)},
        adaptation=Adaptation(matrix, facts, np.array([3, 9], np.uint64)),
        training={**model.training, "leaks_dropped": 3, "leak_sets": ["stsb-dev"]},
    )


def int8_dan():
    """A smaller model: an int8 table, fewer words and buckets, no adaptation."""
    options = ExportOptions(dtype="int8", max_words=20, unknown_buckets=2)
    return smaller(replace(full_dan(), adaptation=None), options)


MODELS = {
    "dan": dan_model,
    "full dan": full_dan,
    "int8 dan": int8_dan,
    "bilstm": bilstm_model,
    "transformer": transformer_model,
}


def files_of(model, folder):
    write_model(folder, model)
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def check(files, folder):
    """Load what is in `files`, and use it; returns whether it was a model."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    for name, content in files.items():
        (folder / name).write_bytes(content)
    try:
        model = read_model(folder)
        encoder = SentenceEncoder(model)
    except ModelError as error:
        assert str(error).count("\n") == 0  # noqa: PT017 -- one sentence
        return False
    json.dumps(encoder.describe(), allow_nan=False, ensure_ascii=False).encode()
    repr(encoder)
    if model.adaptation is not None:
        model.adaptation.summary()
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", ForeignTextWarning)  # most vocabularies lack most words
        try:
            rows = [encoder.encode(TEXTS), encoder.encode_response(TEXTS)]
            encoder.rank(TEXTS[0], TEXTS)
            if encoder.entails:
                rows.append(encoder.entail(TEXTS, TEXTS))
        except ModelError as error:
            said = ("not finite", "inverted", "has no response side")
            assert any(words in str(error) for words in said)  # noqa: PT017
            return True
    assert all(np.isfinite(block).all() and len(block) == len(TEXTS) for block in rows)
    assert not rows[0][1].any()
    return True


def checker(folder: Path) -> Callable[[Random], bool]:
    """What checks one edited folder of any kind; true: it was a model."""
    files = {kind: files_of(make(), folder / kind) for kind, make in MODELS.items()}
    kinds = ["dan"] * 3 + ["full dan"] * 3 + ["int8 dan"] * 2 + ["bilstm", "transformer"]

    def checked(random: Random) -> bool:
        return check(mutated_model(random, files[random.choice(kinds)]), folder / "edited")

    return checked
