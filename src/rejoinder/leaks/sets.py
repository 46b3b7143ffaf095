"""The sentences and pairs of evaluation sets, as hashes; those of the shipped list."""

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

_FILE = "evaluation_hashes.safetensors"
_PAIRS = "pairs/"
"""Before a set's name: its pairs."""


@dataclass(frozen=True)
class EvaluationSet:
    """One evaluation set."""

    name: str
    sentences: Hashes
    """Ascending, each once, without 0."""
    pairs: Hashes
    """The same of its pairs."""


def none_of_them() -> Hashes:
    """No hash."""
    return np.empty(0, np.uint64)


def distinct(hashes: Hashes) -> Hashes:
    """Ascending, each once, without 0, which is no sentence's hash."""
    return np.unique(hashes[hashes != 0])


def places_in(known: Hashes, hashes: Hashes) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Where hashes are known.

    Args:
        known: (K,) uint64, ascending, each once, without 0.
        hashes: (N,) uint64.

    Returns:
        (H,) int64 places in `hashes` of those that are known, ascending, and (H,) int64 their
        places in `known`.
    """
    if not len(known):
        return np.empty(0, np.int64), np.empty(0, np.int64)
    places = np.searchsorted(known, hashes).clip(max=len(known) - 1)
    hits = np.flatnonzero(known[places] == hashes)
    return hits, places[hits]


@dataclass(frozen=True)
class EvaluationHashes:
    """The sentences and pairs of some evaluation sets together."""

    sets: tuple[str, ...]
    hashes: Hashes
    """Of sentences; ascending, each once."""
    pairs: Hashes = field(default_factory=none_of_them)
    """Of pairs; ascending, each once."""

    @classmethod
    def load(cls, sets: Sequence[str]) -> "EvaluationHashes":
        """The shipped hashes of the sets named.

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
            _union(one.sentences for one in chosen),
            _union(one.pairs for one in chosen),
        )

    def contains(self, texts: pl.Series) -> NDArray[np.bool_]:
        """(N,) bool, whether each text is, normalised, a sentence of the sets."""
        return _among(self.hashes, sentence_hashes(texts))

    def contains_pairs(self, first: pl.Series, second: pl.Series) -> NDArray[np.bool_]:
        """(N,) bool, whether each two texts are, normalised and in either order, a pair of them."""
        return _among(self.pairs, pair_hashes(first, second))


def shipped() -> dict[str, EvaluationSet]:
    """The sets that come with the package, by name."""
    tensors = load((files("rejoinder") / "data" / _FILE).read_bytes())
    return {
        name: EvaluationSet(name, sentences, tensors[_PAIRS + name])
        for name, sentences in tensors.items()
        if not name.startswith(_PAIRS)
    }


def as_tensors(sets: Mapping[str, EvaluationSet]) -> dict[str, Hashes]:
    """What the shipped file holds of the sets."""
    return {name: one.sentences for name, one in sets.items()} | {
        _PAIRS + name: one.pairs for name, one in sets.items()
    }


def _union(parts: Iterable[Hashes]) -> Hashes:
    return np.unique(np.concatenate([none_of_them(), *parts]))


def _among(known: Hashes, hashes: Hashes) -> NDArray[np.bool_]:
    found = np.zeros(len(hashes), bool)
    found[places_in(known, hashes)[0]] = True
    return found
