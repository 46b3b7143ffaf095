"""Pairs as arrays: words by number, in the order of the alphabet, and how near words are."""

import numpy as np
import pytest

from rejoinder.inference.encoder import SentenceEncoder
from rejoinder.scoring.batch import MOST_WORDS, PairReader, lower_and_higher, share


@pytest.fixture(scope="module")
def read():
    encoder = SentenceEncoder("rejoinder-small", threads=1)
    return PairReader(encoder.encode, encoder.features.vocabulary.index)


def test_sides_are_in_the_order_of_the_alphabet(read):
    batch = read(["Two dogs run.", "A cat."], ["A dog runs.", "The cat."])
    assert batch.first.texts == ["A dog runs.", "A cat."]
    assert batch.second.texts == ["Two dogs run.", "The cat."]
    assert batch.first.lengths.tolist() == [3, 2]  # without punctuation
    assert batch.first.words[1].tolist()[2:] == [-1]
    assert batch.first.weights[1, 2] == 0


def test_words_of_one_stem_are_as_near_as_can_be(read):
    batch = read(["a dog runs"], ["two dogs run"])
    assert np.argwhere(batch.same_stem[0]).tolist() == [[1, 1], [2, 2]]
    assert batch.cosines[0, 1, 1] == 1
    assert (batch.cosines[~batch.same_stem] < 1).all()
    assert [side.tolist() for side in batch.shared] == [[[False, True, True]]] * 2
    partners, _ = batch.partners
    assert partners[0, 1:].tolist() == [1, 2]


def test_related_words_are_told_by_the_lexicon(read):
    batch = read(["hot big"], ["cold large"])
    assert batch.related[0].max() >= 0.9  # big and large


def test_a_long_text_is_compared_by_its_first_words(read):
    batch = read(["a " * 100], ["b"])
    assert batch.first.words.shape[1] == MOST_WORDS


def test_shares_of_nothing_are_nothing():
    assert share(np.array([1.0, 0.0]), np.array([4.0, 0.0])).tolist() == [0.25, 0.0]
    lower, higher = lower_and_higher(np.array([1, 5]), np.array([2, 3]))
    assert (lower.tolist(), higher.tolist()) == ([1, 3], [2, 5])
