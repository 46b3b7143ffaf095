"""Known words that unknown ones are misspellings of: a letter dropped, added, wrong or swapped.

Known words are hashed whole and without each of their letters, and so is a word that is looked up:
it shares a hash with the right one (symmetric deletes, Garbe 2012). Of the words that it may stand
for, the most likely counts, by the kind of error and its rank among the known words. Models of
text rules 3 and 4 depend on all of it: it must never change.
"""

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rejoinder.text.buckets import GOLDEN_GAMMA, mix64
from rejoinder.text.unicode_14 import LETTER, classes

_LEAST, _MOST = 4, 24
"""Characters of words that are looked up or found: shorter ones are like too many others."""
_WHOLE = -1
"""The letter that is left out of a whole word."""
_BASE = np.uint64(GOLDEN_GAMMA)
_INVERSE = np.uint64(pow(GOLDEN_GAMMA, -1, 2**64))
_POWERS = np.cumprod(np.full(_MOST, _BASE))
_FILTER_BITS = 22
_FILTER_SHIFT = np.uint64(64 - _FILTER_BITS)

_OTHER, _FIRST = -3.0, -1.0
"""Logarithms of how much rarer errors are than a dropped, doubled or swapped letter or that of a
neighbouring key: another letter added or instead of one, and an error in the first letter."""
RANK = 100
"""A word of rank r is found as often as 1 / (r + 100)."""
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
        # what is known of a hash lies together, since memory takes most of the time of a look-up
        letters = made.letters[made.places[order]].astype(np.int64)
        left_out = made.left_out[order].astype(np.int64) - _WHOLE
        self._known = made.owners[order].astype(np.int64) << 32 | letters << 8 | left_out
        # most hashes are not among the known ones, which this tells faster than a search
        bits = np.zeros(2**_FILTER_BITS, np.bool_)
        bits[made.hashes >> _FILTER_SHIFT] = True
        self._filter = np.packbits(bits, bitorder="little")
        self._near = _near_keys()

    def __call__(self, words: Sequence[str]) -> NDArray[np.int32]:
        """Returns the number of the known word for each of `words`, (N,) int32; -1 for none."""
        return self.likely(words)[0]

    def likely(self, words: Sequence[str]) -> tuple[NDArray[np.int32], NDArray[np.float64]]:
        """Returns what a call does, and (N,) logarithms of how likely the error is; -inf for none.

        An error alone is 0 (a dropped letter) to -4 (another first letter); that of the word of
        rank r is less by the logarithm of r + `RANK`.
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
    """Returns (N,) uint32 hashes of words; 0 for those that are not looked up."""
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
