"""How many sequences of characters the texts share."""

import numpy as np
from numpy.typing import NDArray

from rejoinder.encoders.layers import Array
from rejoinder.inference.scoring.batch import PairBatch, share
from rejoinder.inference.scoring.families.base import Family
from rejoinder.text.buckets import GOLDEN_GAMMA, mix64
from rejoinder.text.normalize import normalize_text

_LENGTHS = (2, 3, 4, 5)
_MOST = 500
"""Characters of a text that are read."""
_GAMMA = np.uint64(GOLDEN_GAMMA)


def _compute(batch: PairBatch) -> list[Array]:
    read = [_Characters(side.texts) for side in batch.sides]
    return [_shared(read[0].sequences(n), read[1].sequences(n), len(batch)) for n in _LENGTHS]


class _Characters:
    def __init__(self, texts: list[str]) -> None:
        plain = [f" {normalize_text(text[:_MOST])} " for text in texts]
        joined = "".join(plain).encode("utf-32-le", "surrogatepass")
        self._points = np.frombuffer(joined, np.uint32).astype(np.uint64)
        lengths = np.fromiter(map(len, plain), np.int64, len(plain))
        self._texts = np.repeat(np.arange(len(plain), dtype=np.uint64), lengths)

    def sequences(self, length: int) -> NDArray[np.uint64]:
        """Returns the distinct sequences as numbers: the text, then 44 bits of a hash."""
        count = max(len(self._points) - length + 1, 0)
        sums = self._points[:count]
        for place in range(1, length):
            sums = sums * _GAMMA + self._points[place : place + count]
        texts = self._texts[:count]
        inside = texts == self._texts[length - 1 :]
        found = np.sort((texts << np.uint64(44) | mix64(sums) >> np.uint64(20))[inside])
        fresh = np.ones(len(found), np.bool_)  # np.unique takes 20 times as long
        np.not_equal(found[1:], found[:-1], out=fresh[1:])
        return np.asarray(found[fresh])


def _shared(first: NDArray[np.uint64], second: NDArray[np.uint64], count: int) -> Array:
    sizes = [np.bincount(each >> np.uint64(44), minlength=count) for each in (first, second)]
    both = np.sort(np.concatenate([first, second]))
    common = both[1:][both[1:] == both[:-1]]
    return share(2 * np.bincount(common >> np.uint64(44), minlength=count), sizes[0] + sizes[1])


CHARACTERS = Family(
    "characters", tuple(f"shared sequences of {n} characters" for n in _LENGTHS), _compute
)
