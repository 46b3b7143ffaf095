"""Sentences of evaluation sets in training text: found by hashes, without the sets.

    python -m rejoinder.leaks ../shared/data src/rejoinder/data/evaluation_hashes.safetensors

writes the shipped list anew.
"""

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path

import numpy as np
import polars as pl
from numpy.typing import NDArray
from safetensors.numpy import load, save

from rejoinder.atomic import write_bytes
from rejoinder.datasets.sts import read_stsb
from rejoinder.errors import InputError, nearest
from rejoinder.text.normalize import as_series, normalize

_FILE = "evaluation_hashes.safetensors"
_ROWS = 32_768
_LONGEST = 1_024
"""Bytes of a normalised sentence; no evaluation sentence is longer, so longer texts are none."""

_BASE = 0x9E3779B97F4A7C15
_POWERS = np.array([pow(_BASE, place, 2**64) for place in range(1, _LONGEST + 1)], dtype=np.uint64)


def comparable(sentences: pl.Series) -> pl.Series:
    """Sentences as all forms of a set have them: NFKC, lower case, letters and digits alone.

    >>> comparable(pl.Series(["A man's  dog.", "a man 's dog ."])).to_list()
    ['a man s dog', 'a man s dog']
    """
    return normalize(sentences).str.replace_all(r"[^\p{L}\p{M}\p{N}]+", " ").str.strip_chars(" ")


def sentence_hashes(sentences: pl.Series) -> NDArray[np.uint64]:
    """(N,) uint64, a hash of each sentence in its comparable form; 0 for empty and very long ones.

    A polynomial in the UTF-8 bytes modulo 2**64, then the finaliser of splitmix64. The shipped
    list is made of these hashes: the function must not change without it.
    """
    parts = [
        _hashes(comparable(sentences.slice(start, _ROWS)))
        for start in range(0, len(sentences), _ROWS)
    ]
    return np.concatenate(parts) if parts else np.empty(0, np.uint64)


def _hashes(texts: pl.Series) -> NDArray[np.uint64]:
    lengths = texts.str.len_bytes().to_numpy().astype(np.int64)
    fit = (lengths > 0) & (lengths <= _LONGEST)
    flat = np.frombuffer("".join(texts.filter(pl.Series(fit))).encode(), np.uint8)
    kept = lengths[fit]
    starts = np.cumsum(kept) - kept
    places = np.arange(len(flat)) - np.repeat(starts, kept)
    terms = (flat.astype(np.uint64) + np.uint64(1)) * _POWERS[places]
    sums = np.add.reduceat(terms, starts) if len(kept) else np.empty(0, np.uint64)
    hashes = np.zeros(len(texts), np.uint64)
    hashes[fit] = _mixed(sums)
    return hashes


def _mixed(values: NDArray[np.uint64]) -> NDArray[np.uint64]:
    values = (values ^ (values >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    values = (values ^ (values >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return values ^ (values >> np.uint64(31))


@dataclass(frozen=True)
class EvaluationHashes:
    """The sentences of some evaluation sets."""

    sets: tuple[str, ...]
    hashes: NDArray[np.uint64]
    """Ascending, each once."""

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
        joined = np.unique(np.concatenate(chosen)) if chosen else np.empty(0, np.uint64)
        return cls(tuple(sets), joined)

    def contains(self, texts: pl.Series) -> NDArray[np.bool_]:
        """(N,) bool, whether each text is, normalised, a sentence of the sets."""
        hashes = sentence_hashes(texts)
        if not len(self.hashes):
            return np.zeros(len(hashes), bool)
        places = np.searchsorted(self.hashes, hashes).clip(max=len(self.hashes) - 1)
        found: NDArray[np.bool_] = (self.hashes[places] == hashes) & (hashes != 0)
        return found


def shipped() -> dict[str, NDArray[np.uint64]]:
    """The hashes that come with the package, by set."""
    return load((files("rejoinder") / "data" / _FILE).read_bytes())


def build(data: Path) -> dict[str, NDArray[np.uint64]]:
    """The hashes of the evaluation sets under `data`: the STS Benchmark in both its forms, STS.

    Raises:
        InputError: a set is not there.
    """
    sentences: dict[str, list[str]] = {}
    for split in ("dev", "test"):
        forms = [read_stsb(data, split, form) for form in ("official", "senteval")]
        sentences[f"stsb-{split}"] = [
            text for form in forms for text in (*form.first, *form.second)
        ]
    for year in ("12", "13", "14", "15"):
        folder = data / "senteval" / "downstream" / "STS" / f"STS{year}-en-test"
        sentences[f"sts{year}"] = _columns(sorted(folder.glob("STS.input.*.txt")))
    sentences["sts2017"] = _columns([data / "sts2017" / "STS.input.track5.en-en.txt"])
    return {
        name: np.setdiff1d(sentence_hashes(as_series(texts)), np.zeros(1, np.uint64))
        for name, texts in sentences.items()
    }


def _columns(paths: Sequence[Path]) -> list[str]:
    """Both sentences of each line of `STS.input` files."""
    if not paths or not all(path.is_file() for path in paths):
        raise InputError(f"an STS set is not there: {paths or 'no STS.input files'}.")
    lines = [line for path in paths for line in path.read_text("utf-8").split("\n")]
    return [text for line in lines for text in line.rstrip("\r").split("\t")[:2] if text.strip()]


if __name__ == "__main__":
    write_bytes(Path(sys.argv[2]), save(build(Path(sys.argv[1]))))
