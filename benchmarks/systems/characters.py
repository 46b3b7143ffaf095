"""How many sequences of characters the texts share."""

import numpy as np
from numpy.typing import NDArray

from rejoinder.encoders.layers import Array
from rejoinder.scoring.batch import PairBatch, share
from rejoinder.scoring.families import Family
from rejoinder.text.normalize import normalize_text
from rejoinder.text.vocabulary import GOLDEN_GAMMA, mix64

_LENGTHS = (2, 3, 4, 5)
_MOST = 500
"""Characters of a text that are read."""
_GAMMA = np.uint64(GOLDEN_GAMMA)
_HASH = np.uint64(40)
"""Bits of a sequence's hash, between the number of its group and the side that has it."""


def _compute(batch: PairBatch) -> list[Array]:
    texts = [text for side in batch.sides for text in side.texts]
    plain = [f" {normalize_text(text[:_MOST])} " for text in texts]
    joined = "".join(plain).encode("utf-32-le", "surrogatepass")
    points = np.frombuffer(joined, np.uint32).astype(np.uint64)
    sizes = np.fromiter(map(len, plain), np.int64, len(plain))
    text_of = np.repeat(np.arange(len(plain), dtype=np.uint64), sizes)
    found = _sequences(points, text_of, len(batch))
    groups = (found >> (_HASH + np.uint64(1))).astype(np.int64)
    in_both = found[1:] >> np.uint64(1) == found[:-1] >> np.uint64(1)
    count = len(_LENGTHS) * len(batch)
    whole = np.bincount(groups, minlength=count)
    common = 2 * np.bincount(groups[1:][in_both], minlength=count)
    return [*share(common, whole).reshape(len(_LENGTHS), len(batch))]


def _sequences(
    points: NDArray[np.uint64], text_of: NDArray[np.uint64], pairs: int
) -> NDArray[np.uint64]:
    """Returns the distinct sequences of characters as ascending numbers.

    A number is the group (of one length and pair), a hash, and the side in the last bit.
    """
    count = np.uint64(max(pairs, 1))
    side, pair = text_of // count, text_of % count
    parts, sums = [], points
    for group, length in enumerate(range(1, _LENGTHS[-1] + 1), start=1 - _LENGTHS[0]):
        if length > 1:
            sums = sums[:-1] * _GAMMA + points[length - 1 :]
        if length in _LENGTHS:
            inside = np.flatnonzero(text_of[: len(sums)] == text_of[length - 1 :])
            groups = pair[inside] + np.uint64(group * pairs)
            hashes = mix64(sums[inside]) >> (np.uint64(64) - _HASH)
            parts.append((groups << _HASH | hashes) << np.uint64(1) | side[inside])
    found = np.sort(np.concatenate(parts))
    fresh = np.ones(len(found), np.bool_)  # np.unique takes 20 times as long
    np.not_equal(found[1:], found[:-1], out=fresh[1:])
    return np.asarray(found[fresh])


CHARACTERS = Family(
    "characters", tuple(f"shared sequences of {n} characters" for n in _LENGTHS), _compute
)
