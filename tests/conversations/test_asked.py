"""Questions that were asked again and again, with the replies that they got."""

import pytest

from rejoinder.conversations.asked import asked_again, asks
from rejoinder.conversations.collection import open_collection
from rejoinder.conversations.dedupe import dedupe
from rejoinder.corpus.texts import Entry


def message(name, text, author, time, answers=None):
    about = {"author": author, "time": float(time), "source": "help"}
    return Entry(name, text, about | ({"answers": answers} if answers else {}))


MESSAGES = [
    message("a", "Hi all! How do I reset my password?", "Ann", 10),
    message("b", "Click on forgot password.", "Bob", 11, "a"),
    message("c", "How can I reset my password?", "Cid", 20),
    message("d", "Click on 'forgot password'.", "Dan", 21, "c"),
    message("e", "Thanks, that worked.", "Cid", 22, "c"),
    message("f", "how do i reset my password", "Eve", 30),
    message("g", "Ask the admin.", "Ann", 31, "f"),
    message("h", "Is the server down?", "Dan", 40),
    message("i", "Is the server down?", "Dan", 41),
    message("l", "Which version is it?", "Bob", 15, "a"),
    message("m", "Which version is it?", "Dan", 25, "c"),
    message("n", "The newest version.", "Ann", 26, "m"),
    message("j", "The sun is shining.", "Ann", 50),
    message("k", "The sun is shining.", "Bob", 51),
]


@pytest.fixture(scope="module")
def asked():
    collection = open_collection(MESSAGES, "rejoinder-small")
    return asked_again(collection, dedupe(collection, threshold=0.8))


def test_a_question_is_counted_over_its_ways(asked):
    one = asked[0]
    assert one.begins
    assert (one.count, one.authors, one.first, one.last) == (3, 3, 10.0, 30.0)
    assert {*one.ids} == {"a", "c", "f"}
    assert one.text in {"How do I reset my password?", "how do i reset my password"}
    assert one.ways == ["How can I reset my password?"]


def test_replies_that_say_the_same_are_folded_and_those_of_the_asker_left_out(asked):
    one = asked[0]
    assert one.replied == 5
    assert [(reply.text, reply.count) for reply in one.replies] == [
        ("Click on forgot password.", 2),
        ("Which version is it?", 2),
        ("Ask the admin.", 1),
    ]
    assert one.replies[0].author == "Bob"


def test_questions_in_answer_to_messages_come_last(asked):
    assert [(one.text, one.count, one.begins) for one in asked[1:]] == [
        ("Which version is it?", 2, False)
    ]


def test_without_links_any_question_may_begin_a_conversation():
    collection = open_collection(MESSAGES, "rejoinder-small")
    found = asked_again(collection, dedupe(collection, threshold=0.8), linked=False)
    assert all(one.begins for one in found)
    assert [one.count for one in found] == [3, 2]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("Where is it", True),
        ("Any idea how that works?", True),
        ("It broke. Can you help me? Thanks", True),
        ("Really?", False),
        ("Honestly? I slept badly.", False),
        ("Who knows", False),
        ("I know who did it.", False),
        ("", False),
    ],
)
def test_english_questions_are_told(text, said):
    assert asks(text) is said
