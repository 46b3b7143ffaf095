"""Spelling correction: decides which known words the words of a text stand for (text rules 5).

A word may be misspelt, a name that a model does not know, or split as in old corpora (`do n't`). It
is only corrected if that is likely. English lists decide most cases: common misspellings, and words
that look misspelt but are right. Otherwise it depends on the error, the length, the rank of the
right word, and the text: a word is right if it is capitalised inside a sentence, in an identifier,
or in a text of another language. Models of rules 5 and 6 depend on all of this: it must never
change.

An error is a letter dropped, added, wrong or swapped. Known words are hashed, complete and with
each letter left out, and so is a word to look up: it shares a hash with the right word (symmetric
deletes, Garbe 2012). The most likely candidate wins, by the kind of error and its rank among the
known words. Models of text rules 3 and 4 depend on all of this: it must never change.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum
from functools import cache, cached_property, partial
from importlib.resources import files
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from safetensors.numpy import load

from rejoinder.text.normalize import DIGIT, LETTER, classes, find_tokens, normalize_cased
from rejoinder.text.ragged import Ragged, offsets_of
from rejoinder.text.vocabulary import GOLDEN_GAMMA, Remembered, Vocabulary, mix64

_LEAST, _MOST = 4, 24
"""Shortest and longest words to look up or find: shorter words resemble too many others."""
_WHOLE = -1
"""The index of the left-out letter that stands for none."""
_BASE = np.uint64(GOLDEN_GAMMA)
_INVERSE = np.uint64(pow(GOLDEN_GAMMA, -1, 2**64))
_POWERS = np.cumprod(np.full(_MOST, _BASE))
_FILTER_BITS = 22
_FILTER_SHIFT = np.uint64(64 - _FILTER_BITS)

_OTHER, _FIRST = -3.0, -1.0
"""Log-likelihoods of rarer errors, relative to a dropped, doubled or swapped letter or a
neighbouring key: another letter added or replaced, and an error in the first letter."""
RANK = 100
"""The likelihood of a word of rank r is proportional to 1 / (r + 100)."""
_ROWS = ("qwertyuiop", "asdfghjkl", "zxcvbnm")
_ASCII = 128


class _Words(NamedTuple):
    """The letters of words that are neither too short nor too long, and hashes without each."""

    letters: NDArray[np.uint32]
    """Code points of all words, with one 0 before each word and after the last one."""
    owners: NDArray[np.int32]
    """The word of each hash, (H,), ascending."""
    places: NDArray[np.int64]
    """Where the letter that is left out is among the letters, that of a 0 for a whole word."""
    left_out: NDArray[np.int8]
    """Number of the letter of each hash that is left out, or `_WHOLE`."""
    hashes: NDArray[np.uint64]


class Spelling:
    """Finds the known words that unknown words stand for.

    >>> known = Spelling(("the", "password", "weather", "whether"))
    >>> known(["pasword", "passwrod", "wheather", "xyzzy", "hte"]).tolist()
    [1, 1, 2, -1, -1]
    """

    def __init__(self, words: Sequence[str]) -> None:
        """Hashes known words, the most frequent first: 40,000 in 60 ms."""
        made = _hashed(words)
        order = np.argsort(made.hashes)
        self._hashes = made.hashes[order]
        # the data of a hash is adjacent, since a look-up mostly waits for memory
        letters = made.letters[made.places[order]].astype(np.int64)
        left_out = made.left_out[order].astype(np.int64) - _WHOLE
        self._known = made.owners[order].astype(np.int64) << 32 | letters << 8 | left_out
        # most hashes are unknown; this finds out faster than a search
        bits = np.zeros(2**_FILTER_BITS, np.bool_)
        bits[made.hashes >> _FILTER_SHIFT] = True
        self._filter = np.packbits(bits, bitorder="little")
        self._near = _near_keys()

    def __call__(self, words: Sequence[str]) -> NDArray[np.int32]:
        """Returns the number of the known word for each of `words`, (N,) int32; -1 for none."""
        return self.likely(words)[0]

    def likely(self, words: Sequence[str]) -> tuple[NDArray[np.int32], NDArray[np.float64]]:
        """Returns the result of a call, and the (N,) log-likelihoods of the errors; -inf for none.

        The error contributes 0 (a dropped letter) to -4 (another first letter), minus the
        logarithm of r + `RANK` for a word of rank r.
        """
        found, likely = np.full(len(words), -1, np.int32), np.full(len(words), -np.inf)
        asked = _hashed(words)
        ask, known = self._equal(asked.hashes)
        if not len(ask):
            return found, likely
        scores = self._scores(asked, ask, known)
        owners, order = asked.owners[ask], np.lexsort((-scores, asked.owners[ask]))
        best = order[np.flatnonzero(np.diff(owners[order], prepend=-1))]
        best = best[scores[best] > -np.inf]
        found[owners[best]] = known[best] >> 32
        likely[owners[best]] = scores[best]
        return found, likely

    def _equal(self, hashes: NDArray[np.uint64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Returns (P,) indices of hashes, and what is known of each equal hash of known words."""
        places = hashes >> _FILTER_SHIFT
        bits = self._filter[places >> np.uint64(3)] >> (places & np.uint64(7)).astype(np.uint8)
        likely = np.flatnonzero(bits & 1)
        likely = likely[np.argsort(hashes[likely])]
        first = np.searchsorted(self._hashes, hashes[likely])
        counts = np.searchsorted(self._hashes, hashes[likely], "right") - first
        hits = np.arange(counts.sum()) + np.repeat(first - np.cumsum(counts) + counts, counts)
        return np.repeat(likely, counts), self._known[hits]

    def _scores(
        self, asked: _Words, ask: NDArray[np.int64], known: NDArray[np.int64]
    ) -> NDArray[np.float64]:
        """Returns (P,) logarithms of how likely a word is written for a known one.

        `ask` are indices of the hashes of `asked`; -inf stands for two errors.
        """
        left, right = asked.left_out[ask], (known & 0xFF) + _WHOLE
        places, meant = asked.places[ask], known >> 8 & 0xFFFFFF
        wrong = asked.letters[places]
        added, dropped = right == _WHOLE, left == _WHOLE
        doubled = (asked.letters[places - 1] == wrong) | (asked.letters[places + 1] == wrong)
        near = self._near[np.minimum(wrong, _ASCII - 1), np.minimum(meant, _ASCII - 1)]
        swapped = (np.abs(left - right) == 1) & (wrong == meant)
        scores = np.select(
            [dropped, added & doubled, added, left == right, swapped],
            [0.0, 0.0, _OTHER, np.where(near, 0.0, _OTHER), 0.0],
            -np.inf,
        )
        scores += np.where(np.where(dropped, right, left) == 0, _FIRST, 0.0)
        scores -= np.log((known >> 32) + RANK)
        return scores


def word_keys(words: Sequence[str]) -> NDArray[np.uint32]:
    """Returns (N,) uint32 hashes of words; 0 for words that are not looked up."""
    made = _hashed(words)
    keys = np.zeros(len(words), np.uint32)
    whole = made.left_out == _WHOLE
    keys[made.owners[whole]] = made.hashes[whole] >> np.uint64(32)
    return keys


def _hashed(words: Sequence[str]) -> _Words:
    """Returns letters and hashes of words.

    The hash of letters c is the sum of mix(c_j) B^j modulo 2^64. Without letter i it is the sum
    before i, and the sum after it divided by B.
    """
    lengths = np.fromiter(map(len, words), np.int64, len(words))
    fits = (lengths >= _LEAST) & (lengths <= _MOST)
    taken = [word for word, fit in zip(words, fits.tolist(), strict=True) if fit]
    text = "\0".join(["", *taken, ""]).encode("utf-32-le")
    letters, lengths = np.frombuffer(text, np.uint32), lengths[fits] + 1
    begins = np.cumsum(lengths) - lengths + 1
    # a word's place before its first letter stands for the whole word
    numbers = np.arange(lengths.sum()) - np.repeat(begins, lengths)
    here = letters[: len(numbers)]
    values = mix64(here.astype(np.uint64)) * _POWERS[numbers]  # mix64(0) is 0
    sums = np.cumsum(values)
    before = sums - np.repeat(sums[begins - 1], lengths)
    whole = np.repeat(before[begins + lengths - 2], lengths)
    hashes = before - values + (whole - before) * _INVERSE
    hashes[begins - 1] = before[begins + lengths - 2]
    owners = np.repeat(np.flatnonzero(fits).astype(np.int32), lengths)
    of_letters = np.frombuffer(classes(), np.uint8)[letters[begins]] == LETTER
    kept = np.flatnonzero(np.repeat(of_letters, lengths))
    return _Words(letters, owners[kept], kept, numbers[kept].astype(np.int8), hashes[kept])


def _near_keys() -> NDArray[np.bool_]:
    """Returns (128, 128) bool: which keys are next to each other, or one above the other."""
    near = np.zeros((_ASCII, _ASCII), np.bool_)
    for row, keys in enumerate(_ROWS):
        below = _ROWS[row + 1] if row + 1 < len(_ROWS) else ""
        pairs = [*pairwise(keys), *zip(keys, below, strict=False)]
        for one, other in [*pairs, *zip(keys[1:], below, strict=False)]:
            near[ord(one), ord(other)] = near[ord(other), ord(one)] = True
    return near


_SHORT = {4: -1.0, 5: -0.5}
"""Penalty on the log-likelihood of an error, by the length of the word."""
_SURE, _LIKELY = -12.5, -13.5
"""Lowest log-likelihood for reading a word only as the known word, or as both."""
_AGAIN = 2.0
"""Penalty if the text repeats the word, or has the known word, too."""
_NONE, _CERTAIN = np.float32(-np.inf), np.float32(np.inf)
_ENDINGS = ("s", "m", "d", "t", "re", "ve", "ll")
_INSIDE = frozenset(",;-('&/")
"""Signs after which no sentence begins."""
_CODE_BEFORE, _CODE_AFTER = frozenset("0123456789_@#$`\\"), frozenset("0123456789_@`\\")
_WORD, _LONG = "word", 4
_FEWEST_FOREIGN, _OF_FOREIGN = 3, 2.5
"""Unknown words of a text in another language: at least three, and two of five words."""


@dataclass(frozen=True)
class Lists:
    """The lists that `tools/spelling_lists.py` wrote."""

    misspelt: dict[str, str]
    own: NDArray[np.uint32]
    """(N,) ascending keys of words that are not misspellings."""


@cache
def read_lists() -> Lists:
    """Returns the lists of English that readings depend on."""
    tensors = load(files("rejoinder").joinpath("data/spelling.safetensors").read_bytes())
    lines = tensors["misspelt"].tobytes().decode().splitlines()
    return Lists(dict(line.split("\t") for line in lines), tensors["own"])


class Mark(IntEnum):
    """What a text reveals about an unknown word."""

    NONE = 0
    NAME = 1
    """It stands capitalised inside a sentence, or in an identifier: it is right."""
    FOREIGN = 2
    """Many words of the text are unknown: it is right unless it is a known misspelling."""


Marks = NDArray[np.uint8]


class Readings:
    """Finds the known words that words stand for.

    A word gets the id of a known word, -1 if it stands for none, or -2 - id if it may be either.
    """

    def __init__(self, vocabulary: Vocabulary, *, both: bool) -> None:
        """Creates the readings for a model; `both`: the model can read a word in two ways."""
        self._vocabulary, self._both = vocabulary, both
        self._found = Remembered(self._find)

    def __reduce__(self) -> tuple[Any, ...]:
        return partial(Readings, self._vocabulary, both=self._both), ()

    def unknown(self, batch: Ragged, words: Sequence[str], marks: Marks) -> NDArray[np.int32]:
        """Returns the ids of a batch's unknown words, (U,) int32.

        Args:
            batch: Ids, -1 for an unknown word.
            words: The unknown words.
            marks: (U,) marks of the unknown words in their texts.
        """
        ids, scores = self._likely(words)
        scores[(marks == Mark.NAME) | ((marks == Mark.FOREIGN) & (scores < _CERTAIN))] = _NONE
        doubted = np.flatnonzero((scores >= _LIKELY) & (scores < _CERTAIN))
        if len(doubted):
            places = np.flatnonzero(batch.ids < 0)[doubted]
            texts = np.searchsorted(batch.offsets, places, "right") - 1
            # one search for all words: a long text has many
            pairs = texts * len(self._vocabulary) + ids[doubted]
            distinct = np.unique(texts)
            near = batch.take(distinct)
            around = np.repeat(distinct, near.lengths) * len(self._vocabulary) + near.ids
            known = np.isin(pairs, around[near.ids >= 0])
            _, which, times = np.unique(pairs, return_inverse=True, return_counts=True)
            scores[doubted] -= np.float32(_AGAIN) * (known | (times[which] > 1))
        sure, likely = scores >= _SURE, scores >= _LIKELY
        either = -2 - ids if self._both else np.full_like(ids, -1)
        return np.select([sure, likely], [ids, either], -1).astype(np.int32)

    def doubted(self, text: str) -> dict[str, Mark]:
        """Returns the unknown words of a text that are in no list, with their marks."""
        text = normalize_cased(text)
        tokens = list(find_tokens(text.lower()))
        unknown = [token[0] not in self._vocabulary.index for token in tokens]
        words = [token[0] for token, new in zip(tokens, unknown, strict=True) if new]
        marks, own = marks_of(text, tokens, unknown).tolist(), _are_own(words).tolist()
        return {
            word: Mark(mark)
            for word, mark, known in zip(words, marks, own, strict=True)
            if not known
        }

    def joined(self, batch: Ragged) -> tuple[Ragged, NDArray[np.bool_]]:
        """Joins words that old corpora split; returns the batch and a mask of the kept ids.

        The ids of `do n't` and `it 's` become the ids of `don't` and `it's`. The mask is (T,) bool.
        """
        ids, kept = batch.ids.copy(), np.ones(len(batch.ids), np.bool_)
        apostrophes, whole, ends = self._parted
        places = np.flatnonzero(ends[np.where(ids < 0, -1, np.minimum(ids, len(ends) - 1))])
        begins = batch.offsets[np.searchsorted(batch.offsets, places, "right") - 1]
        for at, begin in zip(places.tolist(), begins.tolist(), strict=True):
            back = 2 if at and int(ids[at - 1]) in apostrophes else 1
            if at - back < begin or not kept[at - back]:
                continue
            together = whole.get((int(ids[at - back]), int(ids[at])))
            if together is not None and (back == 2) == (int(ids[at]) != self._not):
                ids[at - back] = together
                kept[at - back + 1 : at + 1] = False
        return Ragged(ids[kept], offsets_of(kept.astype(np.int64))[batch.offsets]), kept

    def _likely(self, words: Sequence[str]) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
        """Returns the known word that each word is most likely to stand for, and how likely."""
        pairs = self._found(words)
        ids, scores = zip(*pairs, strict=True) if pairs else ((), ())
        return np.array(ids, np.int32), np.array(scores, np.float32)

    def _find(self, words: list[str]) -> list[tuple[int, float]]:
        lists, index = read_lists(), self._vocabulary.index
        ids, scores = self._spelling.likely(words)
        scores += [_SHORT.get(len(word), 0.0) for word in words]
        scores[_are_own(words)] = _NONE
        for at, word in enumerate(words):
            if (right := index.get(lists.misspelt.get(word, ""))) is not None:
                ids[at], scores[at] = right, _CERTAIN
        return list(zip(ids.tolist(), scores.tolist(), strict=True))

    @cached_property
    def _spelling(self) -> Spelling:
        return Spelling(self._vocabulary.words)

    @cached_property
    def table(self) -> NDArray[np.int32]:
        """(V,) the id that each known word is read as; its complement if `joined` may join it."""
        index, table = self._vocabulary.index, np.arange(len(self._vocabulary), dtype=np.int32)
        for wrong, right in read_lists().misspelt.items():
            if wrong in index and right in index:
                table[index[wrong]] = index[right]
        ends = self._parted[2][:-1]
        table[ends] = ~table[ends]
        return table

    @cached_property
    def _not(self) -> int:
        return self._vocabulary.index.get("n't", -1)

    @cached_property
    def _parted(self) -> tuple[frozenset[int], dict[tuple[int, int], int], NDArray[np.bool_]]:
        """The ids of apostrophes; the id of the word that a word and an end make; what is an end.

        The last are (rows,) bool, with one more for all other ids.
        """
        index, whole = self._vocabulary.index, dict[tuple[int, int], int]()
        # few words have one, and each command begins here
        for word in (one for one in self._vocabulary.words if "'" in one):
            first, _, last = word.rpartition("'")
            if last in _ENDINGS and first in index and last in index:
                whole[index[first], index[last]] = index[word]
            if last == "t" and first[:-1] in index and self._not >= 0:
                whole[index[first[:-1]], self._not] = index[word]
        ends = np.zeros(len(index) + 1, np.bool_)
        ends[[last for _, last in whole]] = True
        return frozenset(index[sign] for sign in "'`" if sign in index), whole, ends


def is_listed(word: str) -> bool:
    """Returns whether a word is a common misspelling of another word."""
    return word in read_lists().misspelt


def _are_own(words: Sequence[str]) -> NDArray[np.bool_]:
    """Returns which words are in the list of words that are not misspellings."""
    own, keys = read_lists().own, word_keys(words)
    found: NDArray[np.bool_] = own[np.minimum(np.searchsorted(own, keys), len(own) - 1)] == keys
    return found


def marks_of(text: str, tokens: Sequence[re.Match[str]], unknown: Sequence[bool]) -> Marks:
    """Returns the marks of a text's unknown words, by how they are written in it, (U,) uint8.

    `text` has its original capitals; `tokens` were found in its lower-case form. The kernel does
    the same (`text/_words.c`).

    >>> text = "We met Loach at teh gate"
    >>> marks_of(text, list(find_tokens(text.lower())), [False, False, True, False, True, False])
    array([1, 0], dtype=uint8)
    """
    kinds = classes()
    marks, last, words, strange, small = list[tuple[bool, bool]](), "", 0, 0, False
    for token, new in zip(tokens, unknown, strict=True):
        start, stop = token.span()
        kind, first = kinds[ord(token[0][0])], text[start]
        capital = "A" <= first <= "Z"
        if new:
            late = any("A" <= letter <= "Z" for letter in text[start + 1 : stop])
            name = late or (capital and (last in _INSIDE or last == _WORD))
            marks.append((name, kind == LETTER and _in_code(text, start, stop)))
        if kind == LETTER:
            words, strange = words + 1, strange + new
            small = small or (len(token[0].encode()) >= _LONG and not capital)
        last = _WORD if kind in (LETTER, DIGIT) else first
    foreign = strange >= _FEWEST_FOREIGN and _OF_FOREIGN * strange >= words
    rest = Mark.FOREIGN if foreign else Mark.NONE
    # if all words are capitalised, capitals mean nothing
    found = [Mark.NAME if code or (small and name) else rest for name, code in marks]
    return np.array(found, np.uint8)


def _in_code(text: str, start: int, stop: int) -> bool:
    """Returns whether the word at a position is part of an identifier, an address or a number."""
    before, after, next_ = text[:start][-1:], text[stop : stop + 1], text[stop + 1 : stop + 2]
    return (
        before in _CODE_BEFORE
        or after in _CODE_AFTER
        or (after == "(" and next_ == ")")
        or (after == "." and ("a" <= next_ <= "z" or "0" <= next_ <= "9"))
        or (before == "." and start > 1 and text[start - 2] not in " .\t\n\r")
    )
