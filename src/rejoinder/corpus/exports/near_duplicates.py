"""Messages that say nearly the same as an earlier one, by the MinHash of `rensa`.

Its licence is MIT, and it has wheels for every Python that we support. What it keeps for a text,
1.7 kB, is not kept here.
"""

import re
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from rejoinder.errors import require

_FEWEST_WORDS = 5
"""Shorter messages always stay: many questions have the answer "yes"."""
_SHARE = 0.8
_HASHES, _BANDS, _SEED = 64, 16, 42
_FIRST, _MOST = 1 << 14, 1 << 21
"""Texts for which there is room at the beginning, and at most."""
_NONE = -1
_MIXER = np.uint32(2_654_435_769)
_UNSPACED = "\u0e00-\u0eff\u3040-\u30ff\u3400-\u9fff"
"""Letters of Thai, Lao, Japanese and Chinese, whose words are not set apart."""
_WORDS = re.compile(rf"[{_UNSPACED}]|[^\W{_UNSPACED}]+")
_Sketches = NDArray[np.uint8]


class Doubles:
    """Knows the last two million texts that it was asked about, in 128 bytes for each.

    Two texts are doubles if they share 80 % of their words and pairs of neighbouring words, as
    MinHash estimates it; case and punctuation don't count.

    >>> is_double = Doubles()
    >>> said = ["Read the rules of this channel!", "Yes", "read the rules of this channel", "Yes"]
    >>> [is_double(text) for text in said]
    [False, False, True, False]
    """

    def __init__(self) -> None:
        """Knows no text.

        Raises:
            MissingExtraError: the library is not installed.
        """
        require("filter", "rensa")
        from rensa import RMinHash

        self._sketch = RMinHash
        self._count = 0
        self._make_room(np.empty((0, _HASHES), np.uint8), _FIRST)

    def __call__(self, text: str) -> bool:
        """Returns whether an earlier text says nearly the same. If not, it is known from now on."""
        words = _WORDS.findall(text.lower())
        if len(words) < _FEWEST_WORDS:
            return False
        found = self._sketch(_HASHES, _SEED)
        found.update([*words, *map(" ".join, pairwise(words))])
        # a byte of each hash suffices: one in 256 agrees by chance
        sketch = np.array(found.digest(), np.uint32).astype(np.uint8)
        places = self._places(sketch)
        others = self._latest[places]
        shares = (self._sketches[others[others != _NONE]] == sketch).mean(axis=1)
        if (shares >= _SHARE).any():
            return True
        if self._count == len(self._sketches) < _MOST:
            self._make_room(self._sketches, 2 * self._count)
            places = self._places(sketch)
        row = self._count % len(self._sketches)
        self._sketches[row] = sketch
        self._latest[places] = row
        self._count += 1
        return False

    def _make_room(self, sketches: _Sketches, room: int) -> None:
        self._sketches = np.zeros((room, _HASHES), np.uint8)
        self._sketches[: len(sketches)] = sketches
        self._latest = np.full(_BANDS * room, _NONE, np.int32)
        """The last text in each place: similar texts share some of their 16 places. Others may
        share one by chance, and take it over."""
        for first in range(0, len(sketches), _FIRST):
            places = self._places(sketches[first : first + _FIRST])
            self._latest[places] = np.arange(first, first + len(places))[:, None]

    def _places(self, sketches: _Sketches) -> NDArray[np.intp]:
        """Returns (..., 16) the places of sketches (..., 64): one for each four of the bytes."""
        room = len(self._sketches)
        mixed = sketches.view(np.uint32) * _MIXER >> np.uint32(33 - room.bit_length())
        return mixed.astype(np.intp) + room * np.arange(_BANDS)
