"""The lexicon that comes with the package, and what features say by it."""

import numpy as np
import pytest

from rejoinder.inference.encoder import SentenceEncoder
from rejoinder.scoring.batch import KINDS, lexicon, relations
from rejoinder.scoring.families import FAMILIES
from rejoinder.scoring.scorer import PairFeatures


def kind(first, second):
    lemmas, kinds = relations([first, second])
    assert np.array_equal(kinds, kinds.T)
    return KINDS[max(kinds[a, b] for a in lemmas[0] for b in lemmas[1])]


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        ("big", "large", "synonym"), ("slicing", "cuts", "synonym"), ("hot", "cold", "antonym"),
        ("sells", "bought", "antonym"), ("dog", "animal", "none"), ("puppies", "dogs", "general"),
        ("dogs", "dog", "same"), ("guitar", "zyxxyq", "none"), ("zyxxyq", "zyxxyq", "none"),
        ("Ωmega", "", "none"),
    ],
)  # fmt: skip
def test_how_words_are_related(first, second, expected):
    assert kind(first, second) == kind(second, first) == expected


def test_no_words_have_no_relations():
    lemmas, kinds = relations([])
    assert lemmas.shape == (0, 2)
    assert kinds.tolist() == [[0]]


def test_relations_do_not_depend_on_other_words():
    words = [*lexicon().places][:2_000:7]
    lemmas, kinds = relations(words)
    for one, other in ((0, 1), (3, 250), (17, 17)):
        among_all = max(kinds[a, b] for a in lemmas[one] for b in lemmas[other])
        assert KINDS[among_all] == kind(words[one], words[other])


def test_opposites_are_counted():
    compute = PairFeatures(SentenceEncoder("rejoinder-small"), [FAMILIES["meanings"]])
    place = FAMILIES["meanings"].features.index("opposite words")
    values = compute(
        ["The water is hot.", "The water is hot.", "hot and cold"],
        ["The water is cold.", "The water is warm.", "cold and hot"],
    )
    assert values[:, place].tolist() == [1, 0, 0]
