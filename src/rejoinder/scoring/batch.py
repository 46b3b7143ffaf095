"""Pairs of texts as arrays, computed once and shared by all families of features.

Each distinct word of a batch has its embedding, weight, stem and flags, and its relations to other
words: same meaning, opposite, more general. The words of the two texts are aligned one batch at a
time.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from importlib.resources import files
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rejoinder.encoders.layers import Array
from rejoinder.models.config import read_tensors
from rejoinder.text.features import NumberedWords
from rejoinder.text.normalize import is_punctuation
from rejoinder.text.ragged import Ragged

KINDS = ("none", "general", "synonym", "antonym", "same")
"""Relations of two words; a later kind takes precedence over an earlier one."""
SAME = np.uint8(KINDS.index("same"))
Kinds = NDArray[np.uint8]
_ENDINGS = (
    ("ies", "y"), ("ied", "y"), ("es", "e"), ("es", ""), ("s", ""), ("ed", "e"), ("ed", ""),
    ("ing", "e"), ("ing", ""), ("ly", ""),
)  # fmt: skip
_LEAST_LEMMA = 3


@dataclass(frozen=True)
class Lexicon:
    """V words, and the related words of each."""

    places: dict[str, int]
    """The number of each word."""
    begins: NDArray[np.int32]
    """(V + 1,) int32: where the related words of each word begin."""
    related: NDArray[np.uint16]
    """(R,) uint16: the numbers of the related words."""
    kinds: Kinds
    """(R,) uint8: how they are related, as an index of `KINDS`."""

    def basic(self, word: str) -> int:
        """Returns the number of the basic form of a word, -1 if there is none."""
        for ending, other in _ENDINGS:
            if word.endswith(ending) and len(word) - len(ending) >= _LEAST_LEMMA:
                base = word[: -len(ending)]
                twice = base[:-1] if not other and base[-1] == base[-2] else base
                for each in (base + other, twice):
                    if each in self.places:
                        return self.places[each]
        return -1

    def opposites(self, word: str) -> list[str]:
        """Returns the antonyms of a word, without looking up its basic form."""
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
    """Returns the lexicon in the package."""
    path = Path(str(files("rejoinder").joinpath("data", "lexicon.safetensors")))
    tensors = read_tensors(path, remedy="install the package again.")
    words = tensors["words"].tobytes().decode().split("\n")
    places = {word: number for number, word in enumerate(words)}
    return Lexicon(places, tensors["begins"], tensors["related"], tensors["kinds"])


@lru_cache(1 << 16)
def lemmas_of(word: str) -> tuple[int, int]:
    """Returns the numbers of a word and of its basic form in the lexicon, -1 if there is none."""
    return lexicon().places.get(word, -1), lexicon().basic(word)


def relations(words: Sequence[str]) -> tuple[NDArray[np.int32], Kinds]:
    """Returns the lemmas of words, and the relations of these.

    Returns:
        (V, 2) int32 numbers of lemmas among the K lemmas of these words, K for none; and
        (K + 1, K + 1) uint8 their `KINDS`, 0 for unrelated lemmas.
    """
    found = [number for word in words for number in lemmas_of(word)]
    numbers = [*dict.fromkeys(number for number in found if number >= 0)]
    kinds = np.zeros((len(numbers) + 1, len(numbers) + 1), np.uint8)
    kinds[:-1, :-1] = lexicon().among(np.array(numbers, np.int64))
    places = {number: place for place, number in enumerate([*numbers, -1])}
    return np.array([places[number] for number in found], np.int32).reshape(-1, 2), kinds


_SUFFIXES = ("ing", "edly", "ed", "es", "s", "ly")
_LEAST_STEM = 3
NUMBERS = (  # noqa: SIM905
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen "
    "sixteen seventeen eighteen nineteen twenty"
).split()
_NUMBER_WORDS = {word: str(value) for value, word in enumerate(NUMBERS)} | dict(
    pair.split(":")
    for pair in (  # noqa: SIM905
        "thirty:30 forty:40 fifty:50 sixty:60 seventy:70 eighty:80 ninety:90 hundred:100 "
        "thousand:1000 dozen:12 first:1 second:2 third:3"
    ).split()
)
_NEGATIONS = frozenset(
    "no not never none nobody nothing nowhere neither nor without cannot".split()  # noqa: SIM905
)
_IRREGULAR = dict(
    pair.split(":")
    for pair in (  # noqa: SIM905
        "men:man women:woman children:child people:person feet:foot mice:mouse lives:life "
        "knives:knife wives:wife leaves:leaf is:be are:be was:be were:be am:be been:be has:have "
        "had:have does:do did:do goes:go went:go gone:go ran:run sat:sit stood:stand ate:eat "
        "eaten:eat held:hold rode:ride ridden:ride said:say made:make took:take taken:take "
        "lying:lie came:come got:get gave:give given:give found:find told:tell left:leave "
        "saw:see seen:see knew:know known:know thought:think bought:buy sold:sell built:build "
        "won:win lost:lose met:meet paid:pay wrote:write written:write spoke:speak fell:fall "
        "fallen:fall rose:rise grew:grow drove:drive driven:drive flew:fly drew:draw threw:throw "
        "wore:wear broke:break broken:break began:begin begun:begin drank:drink swam:swim "
        "sang:sing sung:sing slept:sleep kept:keep felt:feel caught:catch taught:teach "
        "fought:fight shot:shoot died:die dying:die better:good best:good worse:bad worst:bad"
    ).split()
)
_DIGIT = re.compile(r"\d")
_HALVED = 20.0
"""Rank from which a word's weight grows with the logarithm of its rank."""


@dataclass(frozen=True)
class WordTable:
    """Facts about V distinct words; the last row of each array is for padding."""

    rows: Array
    """(V + 1, D) float32: the embedding of each word alone, of length 1 or 0."""
    weights: Array
    """(V + 1,) float32: the rarer a word, the higher; 0 for padding."""
    stems: NDArray[np.int32]
    """(V + 1,) int32: equal for words with the same stem; -1 for padding."""
    lemmas: NDArray[np.int32]
    """(V + 1, 2) int32: a word and its basic form among K lemmas, or K."""
    kinds: Kinds
    """(K + 1, K + 1) uint8: how lemmas are related, as an index of `KINDS`."""
    numbers: NDArray[np.bool_]
    """(V + 1,) bool: whether a word is a number."""
    negations: NDArray[np.bool_]
    """(V + 1,) bool: whether a word negates."""


def word_table(words: Sequence[str], rows: Array, ranks: Mapping[str, int]) -> WordTable:
    """Returns the facts about V distinct words with (V, D) embeddings.

    `ranks` has the ranks of known words, from 0.
    """
    unknown = max(len(ranks), 1)
    places = np.array([ranks.get(word, unknown) for word in words], np.float32)
    facts, numbered = [_facts(word) for word in words], dict[str, int]()
    lemmas, kinds = relations(words)
    none = np.full((1, 2), len(kinds) - 1, np.int32)
    return WordTable(
        np.concatenate([rows, np.zeros_like(rows, shape=(1, rows.shape[1]))]),
        np.append(np.log1p((places + _HALVED) / _HALVED), 0).astype(np.float32),
        np.array([*(numbered.setdefault(each[0], len(numbered)) for each in facts), -1], np.int32),
        np.concatenate([lemmas, none]),
        kinds,
        np.array([*(each[1] for each in facts), False]),
        np.array([*(each[2] for each in facts), False]),
    )


@lru_cache(1 << 16)
def _facts(word: str) -> tuple[str, bool, bool]:
    """Returns the stem of a word, whether it is a number, and whether it negates."""
    return stem(word), _DIGIT.search(stem(word)) is not None, negates(word)


def stem(word: str) -> str:
    """Returns a word without its ending, and a number as digits.

    >>> [stem(word) for word in ("plays", "playing", "ran", "three", "forty", "third", "his")]
    ['play', 'play', 'run', '3', '40', '3', 'his']
    """
    if word in _NUMBER_WORDS:
        return _NUMBER_WORDS[word]
    if word in _IRREGULAR:
        return _IRREGULAR[word]
    for suffix in _SUFFIXES:
        if word.endswith(suffix) and len(word) - len(suffix) >= _LEAST_STEM:
            return word[: -len(suffix)]
    return word


def negates(word: str) -> bool:
    """Whether a word is a negation.

    >>> negates("isn't"), negates("nothing"), negates("note")
    (True, True, False)
    """
    return word in _NEGATIONS or word.endswith("n't")


LEAST = np.float32(0.3)
"""Least cosine of aligned words."""


def one_to_one(cosines: Array) -> tuple[NDArray[np.int32], Array]:
    """Aligns words one to one, the nearest first, down to a cosine of `LEAST`.

    `cosines` are (N, L1, L2) float32. Returns the (N, L1) int32 partner of each word of the first
    side, or -1, and their (N, L1) float32 cosines, or 0.

    >>> near = np.array([[[0.9, 0.8], [0.85, 0.4]]], np.float32)
    >>> one_to_one(near)[0].tolist()
    [[0, 1]]
    """
    count, width, height = cosines.shape
    partners = np.full((count, width), -1, np.int32)
    reached = np.zeros((count, width), np.float32)
    left, pairs = cosines.copy(), np.arange(count)
    for _ in range(min(width, height)):
        flat = left.reshape(len(pairs), -1)
        places = flat.argmax(axis=1)
        best = flat[np.arange(len(pairs)), places]
        going = best >= LEAST
        if not going.all():
            left, pairs, places, best = left[going], pairs[going], places[going], best[going]
        if not len(pairs):
            break
        one, other = np.divmod(places, height)
        partners[pairs, one], reached[pairs, one] = other, best
        here = np.arange(len(pairs))
        left[here, one, :] = -1
        left[here, :, other] = -1
    return partners, reached


def common_subsequence(same: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Returns (N,) int64 lengths of the longest common subsequences of up to 64 words.

    `same` (N, L1, L2) says which words are equal. All pairs are computed together, on the bits of
    64-bit integers (Hyyrö 2004).

    >>> common_subsequence(np.eye(3, dtype=bool)[None, :, [1, 0, 2]]).tolist()
    [2]
    """
    bits = np.uint64(1) << np.arange(same.shape[2], dtype=np.uint64)
    matches = (same * bits).sum(axis=2, dtype=np.uint64)
    row = np.full(len(same), np.iinfo(np.uint64).max)
    for step in range(same.shape[1]):
        shared = row & matches[:, step]
        row = (row + shared) | (row - shared)
    found = ~row & bits.sum(dtype=np.uint64)
    bits_found = np.unpackbits(found.view(np.uint8)).reshape(-1, 64)
    return np.asarray(bits_found.sum(axis=1), np.int64)


MOST_WORDS = 64
"""Words of a text that are compared one by one; its embedding includes all words."""
_SAME_STEM, _OTHER_STEM = np.float32(1), np.float32(0.99)
"""Cosine of words with the same stem, and the highest cosine of other words."""

_MEANING = np.array([0, 0.7, 0.9, 0, 1], np.float32)
"""How similar in meaning two words are, by `KINDS`."""

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
    """N pairs of texts. The first text of each pair is the alphabetically first."""

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
        """(N, L1) and (N, L2) bool: whether the other text also has the stem of a word."""
        found = [np.asarray(self.same_stem.any(axis=axis)) for axis in (2, 1)]
        return found[0], found[1]

    @cached_property
    def kinds(self) -> Kinds:
        """(N, L1, L2) uint8: how two words are related, as an index of `KINDS`."""
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
        """(N, L1, L2) float32: similarity of two words by the lexicon, from 0 to 1."""
        return np.asarray(_MEANING[self.kinds])

    @cached_property
    def alike(self) -> Array:
        """(N, L1, L2) float32: similarity of two words, by their embeddings or the lexicon."""
        return np.asarray(np.maximum(self.cosines, self.related))

    @cached_property
    def rows(self) -> tuple[Array, Array]:
        """(N, L1, D) and (N, L2, D) float32, the embedding of each word alone."""
        return self.table.rows[self.first.words], self.table.rows[self.second.words]

    @cached_property
    def cosines(self) -> Array:
        """(N, L1, L2) float32: cosines of words; 1 only for the same stem, -1 for padding."""
        near = self.rows[0] @ self.rows[1].transpose(0, 2, 1)
        np.minimum(near, _OTHER_STEM, out=near)
        near[self.same_stem] = _SAME_STEM
        near[~self.first.present] = -1
        near.transpose(0, 2, 1)[~self.second.present] = -1
        return np.asarray(near)

    @cached_property
    def nearest(self) -> tuple[Array, Array]:
        """(N, L1) and (N, L2) float32: the cosine of each word's nearest word on the other side."""
        return self.cosines.max(axis=2), self.cosines.max(axis=1)

    @cached_property
    def partners(self) -> tuple[Words, Array]:
        """(N, L1) int32 word of the second side aligned with each, or -1; and their cosines."""
        return one_to_one(self.cosines)


class PairReader:
    """Makes batches of pairs with an encoder."""

    def __init__(self, encode: Callable[[list[str]], Array], ranks: Mapping[str, int]) -> None:
        """Takes `encode`, which returns (N, D) unit rows, and the ranks of known words, from 0."""
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
        rows = self._encode([*words, *texts[0], *texts[1]])  # one call is faster for one pair
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
    """Returns the quotients of two arrays; 0 where `whole` is 0, as is `part` there.

    >>> share(np.array([1.0, 0.0]), np.array([2.0, 0.0])).tolist()
    [0.5, 0.0]
    """
    found: Array = np.divide(part, np.maximum(whole, _LEAST_WHOLE), dtype=np.float32)
    return found


def lower_and_higher(first: Array, second: Array) -> list[Array]:
    """Returns the lower and the higher value of each pair, so that the order does not matter."""
    return [np.minimum(first, second), np.maximum(first, second)]
