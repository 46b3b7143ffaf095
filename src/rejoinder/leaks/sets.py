"""Evaluation sets as hashes of their sentences and pairs, and the shipped list of them."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.resources import files

import numpy as np
import polars as pl
from numpy.typing import NDArray
from safetensors.numpy import load

from rejoinder.errors import InputError, nearest
from rejoinder.leaks.hashes import pair_hashes, sentence_hashes

Hashes = NDArray[np.uint64]
Indices = NDArray[np.int64]

_FILE = "evaluation_hashes.safetensors"
_PAIRS = "pairs/"
"""Prefix of a set's name for the tensor of its pairs."""


@dataclass(frozen=True)
class EvaluationSet:
    """The hashes of one evaluation set."""

    name: str
    sentences: Hashes
    """Hashes of sentences: ascending, distinct, without 0."""
    pairs: Hashes
    """Hashes of pairs: ascending, distinct, without 0."""


def no_hashes() -> Hashes:
    """Returns an empty array of hashes."""
    return np.empty(0, np.uint64)


def distinct(hashes: Hashes) -> Hashes:
    """Returns the hashes ascending, each once, without 0, which is no sentence's hash."""
    return np.unique(hashes[hashes != 0])


def known_indices(known: Hashes, hashes: Hashes) -> tuple[Indices, Indices]:
    """Finds the hashes that are known.

    Args:
        known: (K,) uint64, ascending, distinct, without 0.
        hashes: (N,) uint64.

    Returns:
        (H,) int64, the indices in `hashes` of those that are known, ascending, and (H,) int64,
        their indices in `known`.
    """
    if not len(known):
        return np.empty(0, np.int64), np.empty(0, np.int64)
    nearest_known = np.searchsorted(known, hashes).clip(max=len(known) - 1)
    hits = np.flatnonzero(known[nearest_known] == hashes)
    return hits, nearest_known[hits]


@dataclass(frozen=True)
class EvaluationHashes:
    """The hashes of several evaluation sets together."""

    sets: tuple[str, ...]
    """Names of the sets."""
    hashes: Hashes
    """Hashes of sentences: ascending, distinct."""
    pairs: Hashes = field(default_factory=no_hashes)
    """Hashes of pairs: ascending, distinct."""

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
        return cls(
            tuple(sets),
            _union(chosen_set.sentences for chosen_set in chosen),
            _union(chosen_set.pairs for chosen_set in chosen),
        )

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


def _union(parts: Iterable[Hashes]) -> Hashes:
    return np.unique(np.concatenate([no_hashes(), *parts]))


def _among(known: Hashes, hashes: Hashes) -> NDArray[np.bool_]:
    is_known = np.zeros(len(hashes), bool)
    is_known[known_indices(known, hashes)[0]] = True
    return is_known
