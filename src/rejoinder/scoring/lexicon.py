"""Which words mean the same, the opposite, or more general things."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from importlib.resources import files
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from rejoinder.models.layout import read_tensors

KINDS = ("none", "general", "synonym", "antonym", "same")
"""How two words are related; a later kind goes before an earlier one."""
SAME = np.uint8(KINDS.index("same"))
Kinds = NDArray[np.uint8]
_ENDINGS = (
    ("ies", "y"), ("ied", "y"), ("es", "e"), ("es", ""), ("s", ""), ("ed", "e"), ("ed", ""),
    ("ing", "e"), ("ing", ""), ("ly", ""),
)  # fmt: skip
_LEAST_LEMMA = 3


@dataclass(frozen=True)
class Lexicon:
    """V words, and for each the others that it is related to."""

    places: dict[str, int]
    """The number of each word."""
    begins: NDArray[np.int32]
    """(V + 1,) int32: where the related ones of each word begin."""
    related: NDArray[np.uint16]
    """(R,) uint16: words."""
    kinds: Kinds
    """(R,) uint8: places in `KINDS`."""

    def lemmas(self, word: str) -> tuple[int, int]:
        """Returns the numbers of a word and of its basic form, -1 if there is none."""
        return self.places.get(word, -1), self._basic(word)

    def _basic(self, word: str) -> int:
        for ending, other in _ENDINGS:
            if word.endswith(ending) and len(word) - len(ending) >= _LEAST_LEMMA:
                base = word[: -len(ending)]
                twice = base[:-1] if not other and base[-1] == base[-2] else base
                for each in (base + other, twice):
                    if each in self.places:
                        return self.places[each]
        return -1

    def opposites(self, word: str) -> list[str]:
        """Returns the antonyms of a word, as it stands."""
        number = self.places.get(word, -1)
        part = slice(self.begins[number], self.begins[number + 1]) if number >= 0 else slice(0)
        kinds = zip(self.related[part].tolist(), self.kinds[part].tolist(), strict=True)
        return [self._words[other] for other, kind in kinds if KINDS[kind] == "antonym"]

    @cached_property
    def _words(self) -> list[str]:
        return list(self.places)

    def among(self, numbers: NDArray[np.int64]) -> Kinds:
        """Returns (N, N) uint8: how N different words are related."""
        local = np.full(len(self.places), -1, np.int32)
        local[numbers] = np.arange(len(numbers))
        counts = self.begins[numbers + 1] - self.begins[numbers]
        rows = np.repeat(np.arange(len(numbers)), counts)
        shifts = np.repeat(self.begins[numbers] - np.cumsum(counts) + counts, counts)
        places = shifts + np.arange(len(rows))
        columns = local[self.related[places]]
        inside = columns >= 0
        found = np.zeros((len(numbers), len(numbers)), np.uint8)
        found[rows[inside], columns[inside]] = self.kinds[places[inside]]
        np.fill_diagonal(found, SAME)
        return found


@lru_cache(1)
def lexicon() -> Lexicon:
    """Returns the lexicon that comes with the package."""
    path = Path(str(files("rejoinder").joinpath("data", "lexicon.safetensors")))
    tensors = read_tensors(path, remedy="install the package again.")
    words = tensors["words"].tobytes().decode().split("\n")
    places = {word: number for number, word in enumerate(words)}
    return Lexicon(places, tensors["begins"], tensors["related"], tensors["kinds"])


@lru_cache(1 << 16)
def lemmas_of(word: str) -> tuple[int, int]:
    """Returns `Lexicon.lemmas` of a word."""
    return lexicon().lemmas(word)


def relations(words: Sequence[str]) -> tuple[NDArray[np.int32], Kinds]:
    """Returns the lemmas of words, and how these are related.

    Returns:
        (V, 2) int32 numbers of lemmas among the K of these words, K where there is none; and
        (K + 1, K + 1) uint8 their `KINDS`, 0 for those that are none.
    """
    found = [number for word in words for number in lemmas_of(word)]
    numbers = [*dict.fromkeys(number for number in found if number >= 0)]
    kinds = np.zeros((len(numbers) + 1, len(numbers) + 1), np.uint8)
    kinds[:-1, :-1] = lexicon().among(np.array(numbers, np.int64))
    places = {number: place for place, number in enumerate([*numbers, -1])}
    return np.array([places[number] for number in found], np.int32).reshape(-1, 2), kinds
