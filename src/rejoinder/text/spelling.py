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

_OTHER, _FIRST = -3.0, -1.0
"""Logarithms of how much rarer errors are than a dropped, doubled or swapped letter or that of a
neighbouring key: another letter added or instead of one, and an error in the first letter."""
_RANK = 100
"""A word of rank r is found as often as 1 / (r + 100)."""
_ROWS = ("qwertyuiop", "asdfghjkl", "zxcvbnm")
_ASCII = 128


class _Words(NamedTuple):
    """The letters of words that are neither too short nor too long, and hashes without each."""

    letters: NDArray[np.uint32]
    """Code points of all words, with one 0 before each word and after the last one."""
    starts: NDArray[np.int64]
    """Where the letters of each word begin, (N,); 0 for words that are not looked up."""
    owners: NDArray[np.int32]
    """The word of each hash, (H,), ascending."""
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
        self._known = made._replace(
            owners=made.owners[order], left_out=made.left_out[order], hashes=made.hashes[order]
        )
        self._rarity = np.log(np.arange(len(words)) + _RANK)
        # most hashes are not among the known ones, which this tells faster than a search
        self._filter = np.zeros(2**_FILTER_BITS, np.bool_)
        self._filter[_filter_places(made.hashes)] = True
        self._near = _near_keys()

    def __call__(self, words: Sequence[str]) -> NDArray[np.int32]:
        """Returns the number of the known word for each of `words`, (N,) int32; -1 for none."""
        found = np.full(len(words), -1, np.int32)
        asked, known = _hashed(words), self._known
        likely = np.flatnonzero(self._filter[_filter_places(asked.hashes)])
        hashes = asked.hashes[likely]
        first = np.searchsorted(known.hashes, hashes)
        counts = np.searchsorted(known.hashes, hashes, "right") - first
        ask = np.repeat(likely, counts)
        if not len(ask):
            return found
        hit = np.arange(len(ask)) + np.repeat(first - np.cumsum(counts) + counts, counts)
        scores = self._scores(asked, ask, hit)
        owners = asked.owners[ask]
        groups = np.flatnonzero(np.diff(owners, prepend=-1))
        most = np.maximum.reduceat(scores, groups)
        best = np.flatnonzero(scores == np.repeat(most, np.diff(groups, append=len(owners))))
        best = best[scores[best] > -np.inf]
        found[owners[best]] = known.owners[hit[best]]
        return found

    def _scores(
        self, asked: _Words, ask: NDArray[np.int64], hit: NDArray[np.int64]
    ) -> NDArray[np.float64]:
        """Returns (P,) logarithms of how likely a word is written for a known one.

        They are given by `ask`, of the hashes of `asked`, and `hit`, of those of the known words;
        -inf stands for two errors.
        """
        known = self._known
        left, right = asked.left_out[ask], known.left_out[hit]
        places = asked.starts[asked.owners[ask]] + left
        wrong = asked.letters[places]
        meant = known.letters[known.starts[known.owners[hit]] + right]
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
        scores -= self._rarity[known.owners[hit]]
        return scores


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
    starts = np.zeros(len(words), np.int64)
    starts[fits] = begins = np.cumsum(lengths) - lengths + 1
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
    kept = np.repeat(of_letters, lengths)
    return _Words(letters, starts, owners[kept], numbers[kept].astype(np.int8), hashes[kept])


def _filter_places(hashes: NDArray[np.uint64]) -> NDArray[np.int64]:
    return (hashes >> np.uint64(64 - _FILTER_BITS)).astype(np.int64)


def _near_keys() -> NDArray[np.bool_]:
    """Returns (128, 128) bool: which keys are next to each other, or one above the other."""
    near = np.zeros((_ASCII, _ASCII), np.bool_)
    for row, keys in enumerate(_ROWS):
        below = _ROWS[row + 1] if row + 1 < len(_ROWS) else ""
        pairs = [*pairwise(keys), *zip(keys, below, strict=False)]
        for one, other in [*pairs, *zip(keys[1:], below, strict=False)]:
            near[ord(one), ord(other)] = near[ord(other), ord(one)] = True
    return near
