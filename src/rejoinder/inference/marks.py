"""What an embedding hardly tells apart: numbers, and words that the model does not know."""

import re
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from rejoinder.inference.near_pairs import NearPairs

_WORD = re.compile(r"[^\W_]+(?:['’][^\W_]+)*")
_DIGIT = re.compile(r"\d")
_SHORT = 16
"""Words of a short text. With longer ones, fewer duplicates were found among questions of 40 words
(CQA 2016), and hardly fewer wrong ones among those of 12 (Quora)."""


def marks_of(
    texts: Sequence[str], unknown: Callable[[list[str]], NDArray[np.bool_]] | None = None
) -> list[frozenset[str]]:
    """Returns the words of short texts that have a digit, or that are `unknown` to the model.

    A text of more than 16 words has none: much else tells it apart.

    >>> [sorted(marks) for marks in marks_of(["Does v2 run on Windows 10?", "Yes"])]
    [['10', 'v2'], []]
    """
    words = [
        {*found} if len(found := _WORD.findall(text.lower())) <= _SHORT else set() for text in texts
    ]
    marks = {word for some in words for word in some if _DIGIT.search(word)}
    if unknown is not None:
        others = sorted({word for some in words for word in some} - marks)
        marks |= {word for word, is_new in zip(others, unknown(others), strict=True) if is_new}
    return [frozenset(some & marks) for some in words]


def differing(pairs: NearPairs, marks: Sequence[frozenset[str]]) -> NDArray[np.bool_]:
    """Returns (P,) bool: which pairs have rows each with a mark that the other lacks.

    `Error 404` and `Error 500` are two things. `Error 404` may be what somebody means by `Error`.
    """
    has_some = np.array([bool(some) for some in marks], np.bool_)
    differ = has_some[pairs.first] & has_some[pairs.second]
    for place in np.flatnonzero(differ).tolist():
        one, other = marks[pairs.first[place]], marks[pairs.second[place]]
        differ[place] = not (one <= other or other <= one)
    return differ
