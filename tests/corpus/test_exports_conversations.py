"""What was said before a message."""

from rejoinder.corpus.convert import Conversations
from rejoinder.exports.base import Message


def said(number: int, author: str, **others) -> Message:
    fields = {"id": str(number), "text": "x", "time": 10.0 * number, "source": "room"}
    return Message(**{**fields, "author": author, **others})


def test_threads_and_channels_are_apart():
    seen = Conversations(within=60)
    messages = [
        said(1, "A"),
        said(2, "B", thread="t"),
        said(3, "B", source="other"),
        said(4, "A", thread="t", time=1e9),
        said(5, "B"),
        said(6, "A", time=None),
        said(7, "A", time=2e9),
    ]
    assert [tuple(seen.place(one)) for one in messages] == [
        (None, False, "1"),
        (None, False, "t"),
        (None, False, "3"),
        ("2", True, "t"),
        ("1", True, "1"),
        ("5", True, "1"),
        ("6", False, "1"),
    ]


def test_an_answer_to_an_earlier_conversation_is_apart():
    seen = Conversations(within=60)
    seen.place(said(1, "A"))
    assert [tuple(seen.place(said(number, "B"))) for number in (11, 12)] == [
        (None, False, "11"),
        ("11", False, "11"),
    ]
    seen.place(said(13, "C", parent="1"))
    assert tuple(seen.place(said(14, "A"))) == ("12", True, "11")
    seen.place(said(15, "C", parent="13"))
    seen.place(said(16, "C", parent="12"))
    assert seen.place(said(17, "A")).before == "16"
    seen.place(said(31, "A", parent="1"))  # after a pause
    assert tuple(seen.place(said(32, "B"))) == ("31", True, "31")


def test_a_channel_without_pauses_is_cut():
    seen = Conversations(within=60)
    threads = [seen.place(said(number, "AB"[number % 2])).thread for number in range(2_500)]
    assert [threads.count(thread) for thread in dict.fromkeys(threads)] == [1_000, 1_000, 500]


def test_a_channel_is_cut_before_a_message_without_a_link():
    seen = Conversations(within=60)
    links = [str(number - 1) if number % 7 else None for number in range(2_500)]
    threads = [seen.place(said(n, "AB"[n % 2], parent=link)).thread for n, link in enumerate(links)]
    assert [threads.count(thread) for thread in dict.fromkeys(threads)] == [1_001, 1_001, 498]
    linked = [seen.place(said(n, "C", parent=str(n - 1))).thread for n in range(2_500, 7_500)]
    assert max(map(linked.count, set(linked))) == 2_000
