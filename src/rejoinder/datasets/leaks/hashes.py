"""Hashes of the sentences and pairs of evaluation sets, and the shipped list of them.

A hash is that of a normalised sentence, or of a pair of them in either order.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from importlib.resources import files

import numpy as np
import polars as pl
from numpy.typing import NDArray
from safetensors.numpy import load

from rejoinder.errors import InputError, nearest
from rejoinder.text.columns import normalize
from rejoinder.text.vocabulary import GOLDEN_GAMMA, mix64

Hashes = NDArray[np.uint64]
Indices = NDArray[np.int64]

PAIRS = "pairs/"
"""Prefix of a set's name for the tensor of its pairs in the shipped list."""
_FILES = ("evaluation_hashes.safetensors", "evaluation_hashes_languages.safetensors")
_UNWRITTEN = "[\u0640\u064b-\u0652\u0670]"
"""The tatweel and the vowel signs of Arabic."""
_ROWS = 32_768
"""Number of sentences that are hashed at a time."""
_LONGEST = 1_024
"""Most bytes of a normalised sentence. Longer texts match nothing: no such set has longer ones."""

_POWERS = np.array([pow(GOLDEN_GAMMA, i, 2**64) for i in range(1, _LONGEST + 1)], dtype=np.uint64)


def comparable(sentences: pl.Series) -> pl.Series:
    """Returns sentences in a form that all editions of a set share.

    That is NFKC, lower case, and only letters and digits, with single spaces between words. The
    vowel signs of Arabic, which may be left out, and its tatweel are.

    >>> comparable(pl.Series(["A man's  dog.", "a man 's dog ."])).to_list()
    ['a man s dog', 'a man s dog']
    """
    plain = normalize(sentences).str.replace_all(_UNWRITTEN, "")
    return plain.str.replace_all(r"[^\p{L}\p{M}\p{N}]+", " ").str.strip_chars(" ")


def sentence_hashes(sentences: pl.Series) -> Hashes:
    """Returns (N,) uint64, a hash of the comparable form of each sentence.

    Empty and very long sentences have the hash 0. The hash is a polynomial in the UTF-8 bytes
    modulo 2**64, followed by the finaliser of splitmix64. The shipped list consists of these
    hashes: after a change of this function it has to be built again.
    """
    parts = [
        _hashes(comparable(sentences.slice(start, _ROWS)))
        for start in range(0, len(sentences), _ROWS)
    ]
    return np.concatenate(parts) if parts else np.empty(0, np.uint64)


def _hashes(texts: pl.Series) -> Hashes:
    lengths = texts.str.len_bytes().to_numpy().astype(np.int64)
    fit = (lengths > 0) & (lengths <= _LONGEST)
    flat = np.frombuffer("".join(texts.filter(pl.Series(fit))).encode(), np.uint8)
    kept = lengths[fit]
    starts = np.cumsum(kept) - kept
    offsets = np.arange(len(flat)) - np.repeat(starts, kept)
    terms = (flat.astype(np.uint64) + np.uint64(1)) * _POWERS[offsets]
    sums = np.add.reduceat(terms, starts) if len(kept) else np.empty(0, np.uint64)
    hashes = np.zeros(len(texts), np.uint64)
    hashes[fit] = mix64(sums)
    return hashes


def pair_hashes(first: pl.Series, second: pl.Series) -> Hashes:
    """Returns (N,) uint64, a hash of each pair of sentences that ignores their order.

    It is 0 if the hash of one of the sentences is 0.

    >>> dogs, cats = pl.Series(["A dog.", ""]), pl.Series(["a cat", "a cat"])
    >>> bool((pair_hashes(dogs, cats) == pair_hashes(cats, dogs)).all())
    True
    """
    return combined_hashes(sentence_hashes(first), sentence_hashes(second))


def combined_hashes(first: Hashes, second: Hashes) -> Hashes:
    """Returns (N,) uint64, the hashes of pairs, from the hashes of their sentences.

    The hash is the smaller one times an odd number plus the larger one, modulo 2**64, followed by
    the finaliser of splitmix64. The shipped list depends on it, as on `sentence_hashes`.
    """
    low, high = np.minimum(first, second), np.maximum(first, second)
    mixed = mix64(low * np.uint64(GOLDEN_GAMMA) + high)
    return np.where(low == 0, np.uint64(0), mixed)


def no_hashes() -> Hashes:
    """Returns an empty array of hashes."""
    return np.empty(0, np.uint64)


def distinct(*parts: Hashes) -> Hashes:
    """Returns the hashes ascending, each once, without 0, which stands for no sentence."""
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
    """The hashes of an evaluation set, or of several, each ascending, distinct and without 0."""

    name: str
    sentences: Hashes
    pairs: Hashes
    """Empty for a set of single sentences."""

    @classmethod
    def load(cls, sets: Sequence[str]) -> "EvaluationHashes":
        """Loads the shipped hashes of all of some sets.

        Raises:
            InputError: a set is not in the shipped list.
        """
        known = shipped()
        for name in sets:
            if name not in known:
                raise InputError(f"training.leak_sets {name!r}: {nearest(name, known)}.")
        chosen = [known[name] for name in sets]
        sentences = distinct(*(each.sentences for each in chosen))
        return cls(", ".join(sets), sentences, distinct(*(each.pairs for each in chosen)))

    def contains(self, texts: pl.Series) -> NDArray[np.bool_]:
        """Returns (N,) bool, whether each text is a sentence of the sets, once normalised."""
        return _among(self.sentences, sentence_hashes(texts))

    def contains_pairs(self, first: pl.Series, second: pl.Series) -> NDArray[np.bool_]:
        """Returns (N,) bool, whether two texts are a pair of the sets, normalised, in any order."""
        return _among(self.pairs, pair_hashes(first, second))


def shipped() -> dict[str, EvaluationHashes]:
    """Returns the sets that come with the package, by name."""
    tensors: dict[str, Hashes] = {}
    for name in _FILES:
        tensors |= load((files("rejoinder") / "data" / name).read_bytes())
    return {
        name: EvaluationHashes(name, sentences, tensors[PAIRS + name])
        for name, sentences in tensors.items()
        if not name.startswith(PAIRS)
    }


def _among(known: Hashes, hashes: Hashes) -> NDArray[np.bool_]:
    is_known = np.zeros(len(hashes), bool)
    is_known[known_indices(known, hashes)[0]] = True
    return is_known
