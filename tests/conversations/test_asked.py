"""Questions that were asked again and again, with the replies that they got."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rejoinder.conversations.asked import asked_again, asking_words, question_of
from rejoinder.conversations.collection import open_collection
from rejoinder.corpus.texts import Entry


def message(name, text, author, time, answers=None, title=None):
    about = {"author": author, "time": float(time), "source": "help", "answers": answers}
    about["title"] = title
    return Entry(name, text, {key: value for key, value in about.items() if value is not None})


def asked(messages):
    return asked_again(open_collection(messages, "rejoinder-small"))


MESSAGES = [
    message("a", "Hi all! How do I reset my password?", "Ann", 10),
    message("b", "Click on forgot password.", "Bob", 11, "a"),
    message("c", "How can I reset my password?", "Cid", 20),
    message("d", "Click on 'forgot password'.", "Dan", 21, "c"),
    message("e", "Thanks, that worked.", "Cid", 22, "c"),
    message("f", "how do i reset my password", "Eve", 30),
    message("g", "Ask the admin.", "Ann", 31, "f"),
    message("h", "Is the printer on fire again?", "Dan", 40),
    message("i", "Is the printer on fire again?", "Dan", 41),
    message("l", "Which version of the printer is it?", "Bob", 15, "a"),
    message("m", "Which version of the printer is it?", "Dan", 25, "c"),
    message("j", "The sun is shining.", "Ann", 50),
    message("k", "The sun is shining.", "Bob", 51),
    message("n", "Can anyone help me?", "Ann", 60),
    message("o", "can somebody help me please?", "Bob", 61),
    message("p", "any ideas how to fix it?", "Cid", 62),
    message("q", "Any ideas how I can fix this?", "Eve", 63),
]


def test_a_question_is_counted_over_its_ways():
    [one] = asked(MESSAGES)
    assert (one.count, one.authors, one.first, one.last) == (3, 3, 10.0, 30.0)
    assert {*one.ids} == {"a", "c", "f"}
    ways = {"How do I reset my password?", "how do i reset my password"}
    assert one.text in {*ways, "How can I reset my password?"}
    assert len(one.ways) == 1


def test_replies_that_say_the_same_are_folded_and_those_of_the_asker_left_out():
    [one] = asked(MESSAGES)
    assert one.replied == 5
    assert [(reply.text, reply.count) for reply in one.replies] == [
        ("Click on forgot password.", 2),
        ("Which version of the printer is it?", 2),
        ("Ask the admin.", 1),
    ]
    assert one.replies[0].author == "Bob"


def test_what_is_pasted_or_said_to_somebody_is_not_asked_again():
    pasted = "E: Could not get lock /var/lib/dpkg: is another process using the folder?"
    said = [message(str(n), pasted, f"P{n}", n) for n in range(5)]
    said += [message(f"x{n}", "Ann: which driver is installed?", f"P{n}", n) for n in range(5)]
    assert asked([*MESSAGES[:1], *said]) == []


def test_subjects_ask_and_a_thread_asks_once():
    mails = [
        message("1", "Does it work?", "Ann", 1, title="Printing from Oracle databases"),
        message("2", "It fails. Why does it?", "Bob", 2, title="Printing from an Oracle database"),
        message("3", "I see. Does it?", "Cid", 3, title="Re Printing from an Oracle database"),
        message(
            "4", "Version 2 is here.", "Dan", 4, title="Release of printing for Oracle databases"
        ),
        message("5", "Who is there?", "Eve", 5, title="Lunch"),
    ]
    [one] = asked(mails)
    assert (one.count, {*one.ids}) == (2, {"1", "2"})
    assert one.text in {mail.about["title"] for mail in mails[:2]}


def test_no_messages_ask_nothing():
    assert asked(MESSAGES[11:13]) == []


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("Where is it", "Where is it"),
        ("Any idea how that works?", "Any idea how that works?"),
        ("It broke. Can you help me? Thanks", "Can you help me?"),
        ("See a.py. Does b.py run?\nIt is late", "Does b.py run?"),
        ("Really?", ""),
        ("Honestly? I slept badly.", ""),
        ("Who knows", ""),
        ("I know who did it.", ""),
        ("", ""),
    ],
)
def test_sentences_that_ask_are_told(text, said):
    assert question_of(text) == said


def test_words_that_ask_in_another_language_are_learned():
    said = [f"¿Por qué no es la {n}? Hay {n} de las que no es para mí." for n in range(9)]
    said += [f"Wie ist das mit der {n}? Das ist nicht die {n}, sagt er." for n in range(30)]
    asking = asking_words(said)
    assert asking == {"wie", "por"}
    assert question_of("Hallo du! Wie kommt man dahin", asking) == "Wie kommt man dahin"
    assert question_of("Wie schön das ist! Was es ist, ist es. Wie geht", asking) == ""
    assert question_of("Was kostet der Drucker?", asking) == "Was kostet der Drucker?"
    assert asking_words(["What is the time of it? That is the one."] * 9) is None


@given(st.text("ab ?.!\n", max_size=60))
def test_what_is_asked_is_said(text):
    assert all(word in text for word in question_of(text).split())
