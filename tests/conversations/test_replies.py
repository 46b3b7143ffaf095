"""Chats that do not say what a message answers: the last message by another author."""

from rejoinder.conversations.collection import open_collection
from rejoinder.conversations.replies import with_adjacent
from rejoinder.corpus.texts import Entry


def opened(*messages):
    """Messages by id, author, channel and time."""
    entries = [
        Entry(
            name, f"text {name}", {"author": author, "source": source, "time": float(time), **more}
        )
        for name, author, source, time, more in messages
    ]
    return open_collection(entries, "rejoinder-small")


def test_a_message_answers_the_last_one_by_another_author():
    found = with_adjacent(
        opened(
            ("a", "Ann", "help", 0, {}),
            ("b", "Bob", "help", 60, {}),
            ("c", "Bob", "help", 90, {}),  # goes on
            ("d", "Cid", "talk", 100, {}),  # elsewhere
            ("f", "Ann", "help", 2_000, {}),  # too late
            ("e", "Ann", "help", 120, {}),
        )
    )
    assert found.column("answers") == [None, "a", "a", None, None, "c"]
    assert found.answered.tolist() == [-1, 0, 0, -1, -1, 2]


def test_links_of_the_export_count_where_there_are_some():
    given = opened(("a", "Ann", "help", 0, {}), ("b", "Bob", "help", 9, {"answers": "a"}),
                   ("c", "Ann", "help", 10, {}))  # fmt: skip
    assert with_adjacent(given) is given


def test_comments_on_a_ticket_answer_each_other_however_late():
    found = with_adjacent(
        opened(
            ("a", "Ann", "shop", 0, {"thread": "1"}),
            ("b", "Bob", "shop", 10, {"thread": "2"}),
            ("c", "Cid", "shop", 90_000, {"thread": "1"}),
            ("d", "Cid", "shop", 180_000, {"thread": "1"}),
            ("e", "Cid", "shop", 180_001, {}),  # in no ticket
        )
    )
    assert found.column("answers") == [None, None, "a", "a", None]


def test_comments_answer_the_one_before_where_few_name_another():
    tickets = [
        (f"{ticket}{number}", "AB"[number % 2], "shop", 10_000 * number, {"thread": str(ticket)})
        for ticket in range(3)
        for number in range(3)
    ]
    tickets[2][-1]["answers"] = "00"
    found = with_adjacent(opened(*tickets, ("z", "C", "shop", 20_001, {})))
    assert found.column("answers") == [
        None, "00", "00", None, "10", "11", None, "20", "21", None,
    ]  # fmt: skip


def test_texts_without_authors_answer_nothing():
    assert with_adjacent(open_collection(["a", "b"], "rejoinder-small")).replies == [[], []]
