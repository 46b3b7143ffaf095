"""Known words that unknown ones are misspellings of."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rejoinder.text.readings import Spelling

KNOWN = (
    "password",
    "weather",
    "whether",
    "don't",
    "Straße".lower(),
    "\u0441\u043b\u043e\u0432\u043e",
    "the",
    "2017",
    "form",
)


def meant(word: str, known: tuple[str, ...] = KNOWN) -> str | None:
    found = int(Spelling(known)([word])[0])
    return None if found < 0 else known[found]


@pytest.mark.parametrize(
    ("word", "right"),
    [
        ("pasword", "password"),
        ("passsword", "password"),
        ("passwrod", "password"),
        ("psasword", "password"),
        ("password\u00e4", "password"),
        ("apssword", "password"),
        ("asswrod", None),
        ("passwod", "password"),
        ("paxxword", None),
        ("wether", "weather"),
        ("do'nt", "don't"),
        ("stra\u00dfee", "stra\u00dfe"),
        ("\u0441\u043b\u043e\u0432", "\u0441\u043b\u043e\u0432\u043e"),
        ("hte", None),
        ("thee", None),
        ("2071", None),
        ("20017", None),
        ("frm", None),
        ("from", "form"),
        ("", None),
        ("p" * 1_000, None),
    ],
)
def test_a_word_with_one_error_stands_for_the_right_one(word, right):
    assert meant(word) == right


def one_error_apart(word: str, other: str) -> bool:
    """The definition: one letter dropped, added or another, or two neighbours swapped."""
    if len(word) == len(other):
        differ = [at for at, (a, b) in enumerate(zip(word, other, strict=True)) if a != b]
        if len(differ) == 2 and differ[1] == differ[0] + 1:
            return word[differ[0]] == other[differ[1]] and word[differ[1]] == other[differ[0]]
        return len(differ) == 1
    short, long = sorted((word, other), key=len)
    return len(long) == len(short) + 1 and any(
        long[:at] + long[at + 1 :] == short for at in range(len(long))
    )


words = st.text(alphabet="abc", min_size=4, max_size=6)


@given(st.lists(words, min_size=1, unique=True), st.lists(words))
def test_exactly_words_with_one_error_are_found(known, asked):
    spelling = Spelling(tuple(known))
    asked = [word for word in asked if word not in known]
    for word, found in zip(asked, spelling(asked).tolist(), strict=True):
        near = [other for other in known if one_error_apart(word, other)]
        assert (known[found] in near) if near else found == -1
        assert spelling([word]).tolist() == [found]


def test_the_more_frequent_word_counts_if_the_errors_are_as_likely():
    assert meant("wrds", ("words", "wards")) == "words"
    assert meant("wrds", ("wards", "words")) == "wards"


def test_a_slip_to_the_neighbouring_key_is_likelier_than_another_letter():
    assert meant("tgank", ("thank", "tzank")) == meant("tgank", ("tzank", "thank")) == "thank"


def test_many_words_are_found_at_once():
    known = tuple("".join(letters) * 2 for letters in product("abcdefghij", repeat=4))
    asked = [word[:3] + word[4:] for word in known]
    found = Spelling(known)(asked)
    assert found.dtype == np.int32
    assert (found >= 0).all()


def test_without_known_words_none_is_found():
    assert Spelling(())(["password"]).tolist() == [-1]
    assert Spelling(("a",))([]).tolist() == []
