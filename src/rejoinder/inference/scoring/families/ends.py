"""Whether both texts begin and end alike."""

from os.path import commonprefix

import numpy as np

from rejoinder.encoders.layers import Array
from rejoinder.inference.scoring.batch import PairBatch, Side, share
from rejoinder.inference.scoring.families.base import Family
from rejoinder.measures import Indices

_CONTENT = np.float32(1.6)
"""Weight from which a word is not one of the 80 most frequent."""
_MOST = 500
"""Characters of a text that are read."""


def _compute(batch: PairBatch) -> list[Array]:
    texts = [[text[:_MOST].lower() for text in side.texts] for side in batch.sides]
    back = [[text[::-1] for text in side] for side in texts]
    firsts = [_first(side) for side in batch.sides]
    lasts = [_last(side) for side in batch.sides]
    rows = np.arange(len(batch))
    both = np.minimum(
        batch.alike[rows, firsts[0]].max(axis=1), batch.alike[rows, :, firsts[1]].max(axis=1)
    )
    return [
        _common(*texts), _common(*back), batch.alike[rows, firsts[0], firsts[1]],
        batch.alike[rows, lasts[0], lasts[1]], both,
    ]  # fmt: skip


def _common(first: list[str], second: list[str]) -> Array:
    """Returns the share of characters at the beginning that are the same."""
    pairs = list(zip(first, second, strict=True))
    same = np.array([len(commonprefix(pair)) for pair in pairs], np.int64)  # noqa: RUF071
    return share(same, np.array([max(map(len, pair)) for pair in pairs], np.int64))


def _first(side: Side) -> Indices:
    """Returns (N,) int64 the place of the first content word, or of the first word."""
    return np.asarray((side.weights >= _CONTENT).argmax(axis=1))


def _last(side: Side) -> Indices:
    """Returns (N,) int64 the place of the last content word, or of the last word."""
    content = side.weights >= _CONTENT
    content |= side.present & ~content.any(axis=1, keepdims=True)
    last: Indices = content.shape[1] - 1 - content[:, ::-1].argmax(axis=1)
    return np.where(content.any(axis=1), last, 0)


ENDS = Family(
    "ends",
    (
        "same beginning", "same ending", "first content words", "last content words",
        "first content words anywhere",
    ),
    _compute,
)  # fmt: skip
