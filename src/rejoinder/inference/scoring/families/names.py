"""Whether the texts have the same names: words with a capital that do not begin the text."""

import re

import numpy as np

from rejoinder.encoders.layers import Array
from rejoinder.inference.scoring.batch import PairBatch, share
from rejoinder.inference.scoring.families.base import Family

_CAPITAL = re.compile(r"[^\W\d_a-z]\w+")
_ENDS = (". ", "! ", "? ")
_MOST = 500
"""Characters of a text that are read."""


def names_of(text: str) -> frozenset[str]:
    """Returns the names of a text in lower case.

    >>> sorted(names_of("When Anna met Bob. They talked, Carl didn't."))
    ['anna', 'bob', 'carl']
    """
    text = text[:_MOST]
    if text.isupper() or text.islower():
        return frozenset()
    return frozenset(
        match[0].lower()
        for match in _CAPITAL.finditer(text)
        if match[0][0].isupper()
        and text[match.start() - 1 : match.start()] == " "
        and text[match.start() - 2 : match.start()] not in _ENDS
    )


def _compute(batch: PairBatch) -> list[Array]:
    names = [[names_of(text) for text in side.texts] for side in batch.sides]
    counts = [np.fromiter(map(len, each), np.int64, len(each)) for each in names]
    shared = np.array([len(a & b) for a, b in zip(*names, strict=True)], np.int64)
    whole = counts[0] + counts[1]
    alike = np.where(whole > 0, share(2 * shared, whole), 1)
    return [alike, np.log1p(whole - 2 * shared), np.minimum(*counts) > 0, whole > 0]


NAMES = Family("names", ("shared names", "other names", "both have names", "a name"), _compute)
