"""Words of a query: what they weigh, and that forms of a word are found."""

from itertools import pairwise

import pytest

from rejoinder import Index
from rejoinder.index.matching import rarity, weights_of

TEXTS = [
    "We were running late for the train.",
    "The mp3 player is broken.",
    "MP files are kept for three years.",
    "What did you say?",
    "The cat sat on the mat.",
]


@pytest.fixture(scope="module")
def index(tmp_path_factory):
    return Index.create(tmp_path_factory.mktemp("matching") / "index", TEXTS, "rejoinder-small")


def ids(index, query, **settings):
    return [hit.id for hit in index.search(query, mode="words", **settings)[0]]


def test_forms_of_a_word_are_found(index):
    assert index.manifest.language == "english"
    assert ids(index, "trains that run") == ["1"]


def test_digits_belong_to_their_word(index):
    assert ids(index, "mp3") == ["2"]
    assert ids(index, "mp") == ["3"]


def test_words_that_ask_say_nothing(index):
    assert ids(index, "What did the cat do?")[0] == "5"


def test_a_query_of_frequent_words_alone_is_searched_by_them(index):
    assert ids(index, "what did you")[0] == "4"


def test_words_weigh_more_the_rarer_they_are():
    weights = [rarity(rank) for rank in (0, 50, 60, 200, 999, 1_000, 50_000, None)]
    assert weights[:2] == [0, 0]
    assert weights[-3:] == [1, 1, 1]
    assert all(before <= after for before, after in pairwise(weights))


def test_a_word_that_is_given_twice_weighs_twice():
    assert weights_of("to be or not to be", list, {"to": 1, "or": 2}) == {"be": 2.0, "not": 1.0}


def test_names_of_authors_weigh_nothing():
    assert weights_of("Ann's cat", list, {}, frozenset({"ann's"})) == {"cat": 1.0}
