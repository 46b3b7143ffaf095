"""Evaluation sets as hashes of their sentences and pairs, and the shipped list of them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib.resources import files

import numpy as np
import polars as pl
from numpy.typing import NDArray
from safetensors.numpy import load

from rejoinder.datasets.leaks.hashes import pair_hashes, sentence_hashes
from rejoinder.errors import InputError, nearest

Hashes = NDArray[np.uint64]
Indices = NDArray[np.int64]

_FILE = "evaluation_hashes.safetensors"
_PAIRS = "pairs/"
"""Prefix of a set's name for the tensor of its pairs."""


@dataclass(frozen=True)
class EvaluationSet:
    """The hashes of one evaluation set, each ascending, distinct and without 0."""

    name: str
    sentences: Hashes
    pairs: Hashes
    """Empty for a set of single sentences."""


def no_hashes() -> Hashes:
    """Returns an empty array of hashes."""
    return np.empty(0, np.uint64)


def distinct(*parts: Hashes) -> Hashes:
    """Returns the hashes ascending, each once, without 0, which is no sentence's hash."""
    hashes = np.concatenate([no_hashes(), *parts])
    return np.unique(hashes[hashes != 0])


def known_indices(known: Hashes, hashes: Hashes) -> tuple[Indices, Indices]:
    """Returns the indices in `hashes` of those that are `known`, and their indices in `known`.

    `known` is ascending, distinct and without 0. The indices in `hashes` are ascending.
    """
    if not len(known):
        return np.empty(0, np.int64), np.empty(0, np.int64)
    nearest_known = np.searchsorted(known, hashes).clip(max=len(known) - 1)
    hits = np.flatnonzero(known[nearest_known] == hashes)
    return hits, nearest_known[hits]


@dataclass(frozen=True)
class EvaluationHashes:
    """The hashes of several evaluation sets together, each ascending, distinct and without 0."""

    sets: tuple[str, ...]
    """Names of the sets."""
    hashes: Hashes
    """Hashes of sentences."""
    pairs: Hashes = field(default_factory=no_hashes)

    @classmethod
    def load(cls, sets: Sequence[str]) -> "EvaluationHashes":
        """Loads the shipped hashes of sets by name.

        Raises:
            InputError: a set is not in the shipped list.
        """
        known = shipped()
        for name in sets:
            if name not in known:
                raise InputError(f"training.leak_sets {name!r}: {nearest(name, known)}.")
        chosen = [known[name] for name in sets]
        sentences = distinct(*(each.sentences for each in chosen))
        return cls(tuple(sets), sentences, distinct(*(each.pairs for each in chosen)))

    def contains(self, texts: pl.Series) -> NDArray[np.bool_]:
        """Returns (N,) bool, whether each text is a sentence of the sets, once normalised."""
        return _among(self.hashes, sentence_hashes(texts))

    def contains_pairs(self, first: pl.Series, second: pl.Series) -> NDArray[np.bool_]:
        """Returns (N,) bool, whether two texts are a pair of the sets, normalised, in any order."""
        return _among(self.pairs, pair_hashes(first, second))


def shipped() -> dict[str, EvaluationSet]:
    """Returns the sets that come with the package, by name."""
    tensors = load((files("rejoinder") / "data" / _FILE).read_bytes())
    return {
        name: EvaluationSet(name, sentences, tensors[_PAIRS + name])
        for name, sentences in tensors.items()
        if not name.startswith(_PAIRS)
    }


def as_tensors(sets: Mapping[str, EvaluationSet]) -> dict[str, Hashes]:
    """Returns the tensors of the shipped file."""
    return {name: hashes.sentences for name, hashes in sets.items()} | {
        _PAIRS + name: hashes.pairs for name, hashes in sets.items()
    }


def _among(known: Hashes, hashes: Hashes) -> NDArray[np.bool_]:
    is_known = np.zeros(len(hashes), bool)
    is_known[known_indices(known, hashes)[0]] = True
    return is_known
