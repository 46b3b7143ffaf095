"""Ids of words that a vocabulary lacks."""

from copy import deepcopy

import pytest

from rejoinder.text import unknown_words
from rejoinder.text.buckets import word_buckets
from rejoinder.text.unknown_words import UnknownWords
from rejoinder.text.vocabulary import Vocabulary

VOCABULARY = Vocabulary(("password", "the", "weather"))
WORDS = ["pasword", "kerrville", "wether", "pasword", "a" * 100]


def bucket(word: str) -> int:
    return len(VOCABULARY) + int(word_buckets([word], 7)[0])


def test_a_misspelt_word_has_the_id_of_the_right_one_and_others_their_buckets():
    unknown = UnknownWords(VOCABULARY, 7, spelling=True)
    expected = [0, bucket("kerrville"), 2, 0, bucket("a" * 100)]
    assert unknown(WORDS).tolist() == expected
    assert unknown(WORDS[::-1]).tolist() == expected[::-1]
    assert UnknownWords(VOCABULARY, spelling=True)(WORDS).tolist() == [0, -1, 2, 0, -1]
    assert UnknownWords(VOCABULARY)(WORDS).tolist() == [-1] * 5
    assert UnknownWords(VOCABULARY, 7)(WORDS).tolist() == [bucket(word) for word in WORDS]


def test_ids_do_not_depend_on_what_is_kept(monkeypatch):
    monkeypatch.setattr(unknown_words, "_KEPT", 2)
    unknown = UnknownWords(VOCABULARY, 7, spelling=True)
    expected = UnknownWords(VOCABULARY, 7, spelling=True)(WORDS).tolist()
    for _ in range(3):
        assert unknown(WORDS).tolist() == expected
        assert len(unknown._ids) <= 2 + len(WORDS)
        unknown([f"word{number}" for number in range(5)])


def test_a_copy_gives_the_same_ids():
    unknown = UnknownWords(VOCABULARY, 7, spelling=True)
    assert deepcopy(unknown)(WORDS).tolist() == unknown(WORDS).tolist()


@pytest.mark.parametrize("spelling", [False, True])
def test_no_words_have_no_ids(spelling):
    assert UnknownWords(VOCABULARY, 7, spelling=spelling)([]).tolist() == []
