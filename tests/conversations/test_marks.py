"""Numbers and unknown words tell texts apart that embeddings don't."""

import numpy as np

from rejoinder.conversations.dedupe import differing, marks_of
from rejoinder.inference.near_pairs import NearPairs

TEXTS = [
    "Error 404",
    "error 404!",
    "Error 500",
    "An error",
    "Error 404 on Windows 10",
    "zyx",
    "qwv",
]


def differ(one, other, marks):
    pair = NearPairs(len(marks), np.array([one]), np.array([other]), np.ones(1, np.float32))
    return bool(differing(pair, marks)[0])


def test_texts_differ_if_each_has_a_number_that_the_other_lacks():
    marks = marks_of(TEXTS)
    assert not differ(0, 1, marks)
    assert differ(0, 2, marks)
    assert not differ(0, 3, marks)
    assert not differ(0, 4, marks)
    assert differ(2, 4, marks)


def test_unknown_words_tell_apart():
    def unknown(words):
        return np.array([word in ("zyx", "qwv") for word in words])

    assert not differ(5, 6, marks_of(TEXTS))
    assert differ(5, 6, marks_of(TEXTS, unknown))
    assert not differ(3, 6, marks_of(TEXTS, unknown))


def test_a_long_text_has_none():
    assert marks_of(["In 1999 " + "it was " * 9]) == [frozenset()]


def test_no_words_have_no_marks():
    assert marks_of([], np.array) == []
    assert marks_of(["?!", ""]) == [frozenset(), frozenset()]
