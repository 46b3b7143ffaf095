"""The folder of a scorer: what it was fitted on, the regression, the intervals, the pairs."""

from collections.abc import Mapping, Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
from msgspec import to_builtins
from numpy.typing import NDArray
from safetensors.numpy import save

from rejoinder.encoders.layers import Array
from rejoinder.errors import ModelError
from rejoinder.io.files.atomic import new_folder, write_bytes, write_text
from rejoinder.io.files.claims import read_one_state
from rejoinder.io.files.hashed import check_file, file_facts, read_sealed, sealed_text
from rejoinder.io.formats.text_lines import Record
from rejoinder.models.config import read_tensors
from rejoinder.scoring.families import FAMILIES, Family
from rejoinder.scoring.regression import Regression

FILE, WEIGHTS = "scorer.json", "scorer.safetensors"
_FORMAT = 2
_REMEDY = "Copy the whole folder again, or fit it again: `rejoinder fit-scorer`."
_INTERVAL, _PAIRS = ("interval.scores", "interval.low", "interval.high"), "fitted_pairs"

Interval = tuple[Array, Array, Array]
"""Scores in ascending order, and what to add to each for the ends of its interval."""
Keys = NDArray[np.uint64]
"""`datasets.sts.pair_keys` of pairs."""


class ScorerFacts(Record, frozen=True):
    """What a scorer was fitted on, and with what: the content of `scorer.json`."""

    encoder: str
    """Name of the model whose embeddings the features are of."""
    encoder_sha256: str
    """SHA-256 of its weights."""
    families: Mapping[str, list[str]]
    """Names of the features of each family."""
    pairs: Mapping[str, int]
    """Pairs fitted on, by set."""
    leaks_dropped: int
    """Pairs of those sets that are left out because an evaluation set has them, or repeat."""
    seed: int
    dev: Mapping[str, float]
    """Scores on STS-B dev."""
    files: Mapping[str, Mapping[str, Any]]
    """Size and SHA-256 of each other file."""


def shipped_scorer() -> Path:
    """Returns the folder of the scorer that comes with the package.

    Raises:
        ModelError: this installation has none.
    """
    folder = Path(str(files("rejoinder").joinpath("data", "scorer")))
    if not (folder / FILE).is_file():
        raise ModelError(
            "this installation has no scorer. Give the folder of one, which `rejoinder fit-scorer` "
            "writes."
        )
    return folder


def known_families(families: Mapping[str, Sequence[str]], where: object) -> list[Family]:
    """Returns the families of those names, whose features are the named ones.

    Raises:
        ModelError: a family is unknown, or has other features in this version.
    """
    found = []
    for name, features in families.items():
        if name not in FAMILIES or [*FAMILIES[name].features] != [*features]:
            raise ModelError(
                f"{where}: the family of features {name!r} is unknown to this version, or has "
                "other features. Fit the scorer again, or use the version that wrote it."
            )
        found.append(FAMILIES[name])
    return found


def write_scorer(
    folder: Path, facts: ScorerFacts, regression: Regression, interval: Interval,
    fitted_pairs: Keys, *, overwrite: bool = False,
) -> None:  # fmt: skip
    """Writes the folder, whole or not at all; the same scorer gives the same bytes.

    Raises:
        InputError: `folder` is occupied.
    """
    tensors: dict[str, NDArray[Any]] = dict(regression.tensors())
    tensors |= dict(zip(_INTERVAL, interval, strict=True)) | {_PAIRS: fitted_pairs}
    with new_folder(folder, overwrite=overwrite) as new:
        write_bytes(new / WEIGHTS, save({name: tensors[name] for name in sorted(tensors)}))
        listed = to_builtins(facts) | {"files": file_facts(new, [WEIGHTS])}
        write_text(new / FILE, sealed_text(ScorerFacts(**listed), _FORMAT))


def read_scorer(folder: Path) -> tuple[ScorerFacts, Regression, Interval, Keys]:
    """Reads what `write_scorer` wrote.

    Raises:
        ModelError: it is missing, damaged, or not a scorer.
    """
    return read_one_state(folder / FILE, lambda: _read(folder))


def _read(folder: Path) -> tuple[ScorerFacts, Regression, Interval, Keys]:
    facts = read_sealed(
        folder / FILE, ScorerFacts, _FORMAT, ModelError, _REMEDY,
        unreadable=f"{folder} is not a scorer",
    )  # fmt: skip
    path = folder / WEIGHTS
    check_file(path, facts.files.get(WEIGHTS), ModelError, _REMEDY)
    tensors = read_tensors(path, remedy=_REMEDY)
    regression = Regression.of(tensors, sum(map(len, facts.families.values())), str(path))
    interval = tuple(tensors.get(name, np.empty(0)) for name in _INTERVAL)
    points = interval[0]
    right = all(
        each.dtype == np.float32 and each.ndim == 1 and each.shape == points.shape and len(each)
        for each in interval
    )
    if not right or not np.isfinite(interval).all() or (np.diff(points) <= 0).any():
        raise ModelError(f"{path} has no intervals that can be read. {_REMEDY}")
    keys = tensors.get(_PAIRS)
    if keys is None or keys.dtype != np.uint64 or keys.ndim != 1:
        raise ModelError(f"{path} does not say what it was fitted on. {_REMEDY}")
    return facts, regression, interval, keys  # type: ignore[return-value]
