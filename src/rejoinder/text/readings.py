"""Which known words the words of a text stand for: text rules 5.

A word may be misspelt, a name that a model does not know, or parted as in old corpora (`do n't`). A
repair must be likely. Lists of English tell most of it: misspellings that people make, and words
that look like one and are not. For other words it is the error, the rank of the word that it would
stand for, the length, and the text: a word that stands capitalised inside a sentence, in an
identifier, or in another language, is right. Models of rules 5 and 6 depend on all of it: it must
never change.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum
from functools import cache, cached_property, partial
from importlib.resources import files
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors.numpy import load

from rejoinder.text.normalize import find_tokens, normalize_cased
from rejoinder.text.ragged import Ragged, offsets_of
from rejoinder.text.spelling import Spelling, word_keys
from rejoinder.text.unicode_14 import DIGIT, LETTER, classes
from rejoinder.text.vocabulary import Vocabulary

_SHORT = {4: -1.0, 5: -0.5}
"""What a length takes from the logarithm of an error that makes such a word."""
_SURE, _LIKELY = -12.5, -13.5
"""Logarithms of an error from which a word is read as the known one alone, or as both."""
_AGAIN = 2.0
"""What it takes from them that the text has the word again, or the known word."""
_KEPT = 100_000
"""Number of words whose readings are kept."""
_LONGEST = 40
"""Characters of a word whose reading is kept."""
_NONE, _CERTAIN = np.float32(-np.inf), np.float32(np.inf)
_ENDINGS = ("s", "m", "d", "t", "re", "ve", "ll")
_INSIDE = frozenset(",;-('&/")
"""Signs that do not begin a sentence."""
_CODE_BEFORE, _CODE_AFTER = frozenset("0123456789_@#$`\\"), frozenset("0123456789_@`\\")
_WORD, _LONG = "word", 4
_FEWEST_FOREIGN, _OF_FOREIGN = 3, 2.5
"""Unknown words of a text in another language: at least three, and two of five words."""


@dataclass(frozen=True)
class _Lists:
    """What `tools/spelling_lists.py` wrote."""

    misspelt: dict[str, str]
    own: NDArray[np.uint32]
    """(N,) ascending keys of words that are not misspellings."""


@cache
def _lists() -> _Lists:
    tensors = load(files("rejoinder").joinpath("data/spelling.safetensors").read_bytes())
    lines = tensors["misspelt"].tobytes().decode().splitlines()
    return _Lists(dict(line.split("\t") for line in lines), tensors["own"])


class Mark(IntEnum):
    """What a text tells of an unknown word."""

    NONE = 0
    NAME = 1
    """It stands capitalised inside a sentence, or in an identifier: it is right."""
    FOREIGN = 2
    """Many words of the text are unknown: it is right unless it is a known misspelling."""


Marks = NDArray[np.uint8]


class Readings:
    """Finds the known words that words stand for.

    A word has the id of a known word, -1 if it stands for none, or -2 - id if it may be either.
    """

    def __init__(self, vocabulary: Vocabulary, *, both: bool) -> None:
        """Creates the readings of a model's words; `both`: it can read a word in two ways."""
        self._vocabulary, self._both = vocabulary, both
        self._found: dict[str, tuple[int, float]] = {}

    def __reduce__(self) -> tuple[Any, ...]:
        return partial(Readings, self._vocabulary, both=self._both), ()

    def unknown(self, batch: Ragged, words: Sequence[str], marks: Marks) -> NDArray[np.int32]:
        """Returns the ids of a batch's unknown words, (U,) int32.

        Args:
            batch: Ids, -1 for an unknown word.
            words: The unknown words.
            marks: (U,) what their text tells of them.
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
        """Returns the unknown words of a text that no list has, and what the text tells of them."""
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
        """Returns a batch in which words that old corpora part are one, and what was kept of it.

        The ids of `do n't` and `it 's` become those of `don't` and `it's`; (T,) bool tells which
        ids are kept.
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
        found = self._found
        new = [word for word in dict.fromkeys(words) if word not in found]
        if new:
            made = dict(zip(new, self._new(new), strict=True))
            if len(found) > _KEPT:
                self._found = found = {}
            found.update((word, one) for word, one in made.items() if len(word) <= _LONGEST)
            pairs = [found.get(word) or made[word] for word in words]
        else:
            pairs = [found[word] for word in words]
        ids, scores = zip(*pairs, strict=True) if pairs else ((), ())
        return np.array(ids, np.int32), np.array(scores, np.float32)

    def _new(self, words: list[str]) -> list[tuple[int, float]]:
        lists, index = _lists(), self._vocabulary.index
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
        """(V,) the id that each known word is read as, its complement if `joined` may join it."""
        index, table = self._vocabulary.index, np.arange(len(self._vocabulary), dtype=np.int32)
        for wrong, right in _lists().misspelt.items():
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
    """Returns whether people often write another word so."""
    return word in _lists().misspelt


def _are_own(words: Sequence[str]) -> NDArray[np.bool_]:
    """Returns which words are in the list of those that are not misspellings."""
    own, keys = _lists().own, word_keys(words)
    found: NDArray[np.bool_] = own[np.minimum(np.searchsorted(own, keys), len(own) - 1)] == keys
    return found


def marks_of(text: str, tokens: Sequence[re.Match[str]], unknown: Sequence[bool]) -> Marks:
    """Returns what a text tells of its unknown words by how they stand in it, (U,) uint8.

    `text` has the capitals that were written, and `tokens` are found in it in small letters. The
    kernel does the same (`text/_words.c`).

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
    # where all words have a capital, it tells nothing
    found = [Mark.NAME if code or (small and name) else rest for name, code in marks]
    return np.array(found, np.uint8)


def _in_code(text: str, start: int, stop: int) -> bool:
    """Returns whether the word at a place is part of an identifier, an address or a number."""
    before, after, next_ = text[:start][-1:], text[stop : stop + 1], text[stop + 1 : stop + 2]
    return (
        before in _CODE_BEFORE
        or after in _CODE_AFTER
        or (after == "(" and next_ == ")")
        or (after == "." and ("a" <= next_ <= "z" or "0" <= next_ <= "9"))
        or (before == "." and start > 1 and text[start - 2] not in " .\t\n\r")
    )
