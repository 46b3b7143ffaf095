"""Pairs of texts as arrays, made once, of which the families compute their features."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rejoinder.encoders.layers import Array
from rejoinder.scoring.words import SAME, Kinds, WordTable, one_to_one, word_table
from rejoinder.text.normalize import is_punctuation
from rejoinder.text.ragged import Ragged
from rejoinder.text.words import NumberedWords

MOST_WORDS = 64
"""Words of a text that are compared one by one; its embedding is of all."""
_SAME_STEM, _OTHER_STEM = np.float32(1), np.float32(0.99)
"""Cosine of words of one stem, and the highest of others."""

_MEANING = np.array([0, 0.7, 0.9, 0, 1], np.float32)
"""How much words mean the same, by `KINDS`."""

_LEAST_WHOLE = np.float32(1e-6)

Words = NDArray[np.int32]
Flags = NDArray[np.bool_]


@dataclass(frozen=True)
class Side:
    """One text of each of N pairs."""

    texts: list[str]
    embeddings: Array
    """(N, D) float32, of length 1 or 0."""
    words: Words
    """(N, L) int32, numbers of words in the table; -1, its last row, is padding."""
    weights: Array
    """(N, L) float32, the weights of the words; 0 is padding."""

    @cached_property
    def present(self) -> Flags:
        """(N, L) bool: whether there is a word."""
        return self.words >= 0

    @cached_property
    def lengths(self) -> Array:
        """(N,) float32: how many words there are."""
        return np.asarray(self.present.sum(axis=1), np.float32)

    @cached_property
    def weight(self) -> Array:
        """(N,) float32: the sum of weights."""
        return np.asarray(self.weights.sum(axis=1))


@dataclass(frozen=True)
class PairBatch:
    """N pairs of texts. Of each pair the text that comes first in the alphabet is the first."""

    first: Side
    second: Side
    table: WordTable

    def __len__(self) -> int:
        return len(self.first.texts)

    @property
    def sides(self) -> tuple[Side, Side]:
        """Both sides."""
        return self.first, self.second

    @cached_property
    def equal(self) -> Flags:
        """(N, L1, L2) bool: whether two words are the same."""
        same = self.first.words[:, :, None] == self.second.words[:, None, :]
        return np.asarray(same & self.first.present[:, :, None])

    @cached_property
    def same_stem(self) -> Flags:
        """(N, L1, L2) bool: whether two words have the same stem."""
        stems = self.table.stems
        same = stems[self.first.words][:, :, None] == stems[self.second.words][:, None, :]
        return np.asarray(same & self.first.present[:, :, None])

    @cached_property
    def shared(self) -> tuple[Flags, Flags]:
        """(N, L1) and (N, L2) bool: whether the other text has the stem of a word, too."""
        found = [np.asarray(self.same_stem.any(axis=axis)) for axis in (2, 1)]
        return found[0], found[1]

    @cached_property
    def kinds(self) -> Kinds:
        """(N, L1, L2) uint8: how two words are related, as `lexicon.KINDS`."""
        lemmas, kinds = self.table.lemmas, self.table.kinds
        first, second = lemmas[self.first.words], lemmas[self.second.words]
        found = np.maximum.reduce([
            kinds[first[:, :, None, one], second[:, None, :, other]]
            for one, other in product((0, 1), repeat=2)
        ])  # fmt: skip
        found[self.same_stem] = SAME
        return np.asarray(found)

    @cached_property
    def related(self) -> Array:
        """(N, L1, L2) float32: how much two words mean the same by the lexicon, from 0 to 1."""
        return np.asarray(_MEANING[self.kinds])

    @cached_property
    def alike(self) -> Array:
        """(N, L1, L2) float32: how near two words are, by their rows or the lexicon."""
        return np.asarray(np.maximum(self.cosines, self.related))

    @cached_property
    def rows(self) -> tuple[Array, Array]:
        """(N, L1, D) and (N, L2, D) float32, the embedding of each word alone."""
        return self.table.rows[self.first.words], self.table.rows[self.second.words]

    @cached_property
    def cosines(self) -> Array:
        """(N, L1, L2) float32: how near two words are; 1 only for one stem, -1 for padding."""
        near = self.rows[0] @ self.rows[1].transpose(0, 2, 1)
        np.minimum(near, _OTHER_STEM, out=near)
        near[self.same_stem] = _SAME_STEM
        near[~self.first.present] = -1
        near.transpose(0, 2, 1)[~self.second.present] = -1
        return np.asarray(near)

    @cached_property
    def nearest(self) -> tuple[Array, Array]:
        """(N, L1) and (N, L2) float32: the cosine of each word's nearest one on the other side."""
        return self.cosines.max(axis=2), self.cosines.max(axis=1)

    @cached_property
    def partners(self) -> tuple[Words, Array]:
        """(N, L1) int32 the word of the second side aligned with each, or -1; their cosines."""
        return one_to_one(self.cosines)


class PairReader:
    """Makes batches of pairs with an encoder."""

    def __init__(self, encode: Callable[[list[str]], Array], ranks: Mapping[str, int]) -> None:
        """`encode` gives (N, D) unit rows; `ranks` are those of known words, frequent ones low."""
        self._encode, self._ranks = encode, ranks

    def __call__(self, first: Sequence[str], second: Sequence[str]) -> PairBatch:
        """Returns the batch of N pairs of texts."""
        ordered = [(b, a) if b < a else (a, b) for a, b in zip(first, second, strict=True)]
        texts = [a for a, _ in ordered], [b for _, b in ordered]
        count, numbered = len(ordered), NumberedWords()
        found = numbered([*texts[0], *texts[1]])
        words = numbered.since(0)
        kept = np.array([not is_punctuation(word) for word in words], np.bool_)
        numbers = (np.cumsum(kept) - 1).astype(np.int32)
        found = found.only(kept[found.ids])
        found = Ragged(numbers[found.ids], found.offsets).first(MOST_WORDS)
        words = [word for word, is_kept in zip(words, kept.tolist(), strict=True) if is_kept]
        rows = self._encode([*words, *texts[0], *texts[1]])  # one call, for the sake of one pair
        table, rows = word_table(words, rows[: len(words)], self._ranks), rows[len(words) :]

        def side(number: int) -> Side:
            begin, end = number * count, (number + 1) * count
            ids = _padded(found.part(begin, end))
            return Side(texts[number], rows[begin:end], ids, table.weights[ids])

        return PairBatch(side(0), side(1), table)


def _padded(batch: Ragged) -> Words:
    lengths = batch.lengths
    words = np.full((len(batch), max(int(lengths.max(initial=0)), 1)), -1, np.int32)
    words[np.arange(words.shape[1]) < lengths[:, None]] = batch.ids
    return words


def share(part: NDArray[Any], whole: NDArray[Any]) -> Array:
    """Returns the quotients of two arrays, 0 where `whole` is; `part` is 0 there, too.

    >>> share(np.array([1.0, 0.0]), np.array([2.0, 0.0])).tolist()
    [0.5, 0.0]
    """
    found: Array = np.divide(part, np.maximum(whole, _LEAST_WHOLE), dtype=np.float32)
    return found


def lower_and_higher(first: Array, second: Array) -> list[Array]:
    """Returns the lower and the higher value of each pair, so that the order does not matter."""
    return [np.minimum(first, second), np.maximum(first, second)]
