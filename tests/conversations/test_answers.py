"""What messages answer: as the export says, or else as is likely."""

from contextlib import suppress
from importlib import import_module

import pytest

from export_samples import write
from rejoinder.conversations.answers import linked, says_little, untrusted, with_answers
from rejoinder.conversations.collection import open_collection
from rejoinder.conversations.reading import Reading, all_linked
from rejoinder.corpus.extract import extract
from rejoinder.corpus.texts import Entry
from rejoinder.corpus.writer import open_pairs
from rejoinder.errors import InputError
from rejoinder.exports import FORMATS
from rejoinder.links.linker import SURE, Linker


def message(name, author, time, text=None, source="shop", **more):
    about = {"author": author, "source": source, "time": float(time), **more}
    return Entry(name, text or f"text {name}", about)


def answered(*messages):
    found = with_answers(open_collection(list(messages), "rejoinder-small"))
    return found.column("answers")


CHAT = (
    message("1", "Ann", 0, "Does anybody know how I can mount a usb drive in ubuntu?", "#ubuntu"),
    message("2", "Cid", 20, "does firefox crash for anyone else today?", "#ubuntu"),
    message("3", "Bob", 40, "Ann: sudo mount /dev/sdb1 /mnt", "#ubuntu"),
    message("4", "Ann", 60, "Bob: thanks, that worked", "#ubuntu"),
    message("5", "Eve", 70, "Ann: is it in fstab?", "#other"),
)


def test_a_message_outside_threads_answers_what_is_likely():
    found = with_answers(open_collection(list(CHAT), "rejoinder-small"))
    assert found.column("answers") == [None, None, "1", "3", None]
    assert all(SURE <= one <= 1 for one in found.column("confidence")[2:4])
    assert with_answers(found) is found


@pytest.mark.parametrize("trusted", [True, False])
def test_messages_of_an_export_say_what_they_likely_answer(trusted):
    given = [*CHAT[:3], CHAT[3]._replace(about={**CHAT[3].about, "answers": "2"}), CHAT[4]]
    given.insert(2, message("t", "Eve", 30, "Where is it?", "#ubuntu", thread="t"))
    read = given if trusted else untrusted(given)
    assert says_little(read)
    found = {one.id: one for one in linked(read, Linker())}
    assert [*found] == [one.id for one in given]
    assert found["3"].about["answers"] == "1"
    assert found["3"].about["confidence"] >= SURE
    assert found["4"].about["answers"] == ("2" if trusted else "3")
    assert ("confidence" in found["4"].about) is not trusted
    assert found["t"] == given[2]


def test_links_of_the_export_count_where_there_are_some():
    messages = [
        message("a", "Ann", 0),
        message("b", "Bob", 9, answers="a"),
        message("c", "Ann", 10),
    ]
    given = open_collection(messages, "rejoinder-small")
    assert with_answers(given) is given


def test_comments_on_a_ticket_answer_each_other_however_late():
    assert answered(
        message("a", "Ann", 0, thread="1"),
        message("b", "Bob", 10, thread="2"),
        message("c", "Cid", 90_000, thread="1"),
        message("d", "Cid", 180_000, thread="1"),
        message("e", "Cid", 180_001),  # in no ticket
    ) == [None, None, "a", "a", None]


def test_comments_answer_the_one_before_where_few_name_another():
    tickets = [
        message(f"{ticket}{number}", "AB"[number % 2], 10_000 * number, thread=str(ticket))
        for ticket in range(3)
        for number in range(3)
    ]
    tickets[2].about["answers"] = "00"
    assert answered(*tickets, message("z", "C", 20_001)) == [
        None, "00", "00", None, "10", "11", None, "20", "21", None,
    ]  # fmt: skip


def test_texts_without_authors_answer_nothing():
    assert with_answers(open_collection(["a", "b"], "rejoinder-small")).replies == [[], []]


@pytest.mark.parametrize("name", [*FORMATS])
def test_exploring_and_extracting_agree_who_answers_whom(name, tmp_path):
    export = write(import_module(f"export_samples.{name}").FILES, tmp_path / "export")
    made = with_answers(
        open_collection(all_linked(Reading([export], None).parts(), Linker()), "rejoinder-small")
    )
    authors = dict(zip(made.ids, made.column("author"), strict=True))

    def to_others(pairs):
        return {(a, b) for a, b in pairs if authors[a] is None or authors[a] != authors[b]}

    explored = {(made.ids[a], made.ids[b]) for b, a in enumerate(made.answered) if a >= 0}
    with suppress(InputError):  # none is sure
        extract(
            export,
            tmp_path / "pairs",
            rules="none",
            min_authors=1,
            linker=Linker().stream,
            min_confidence=SURE,
        )
        frames = open_pairs(tmp_path / "pairs").iter_frames("train", ("input_id", "response_id"))
        extracted = {row for frame in frames for row in frame.iter_rows()}
        assert to_others(explored) == to_others(extracted)
        return
    assert to_others(explored) == set()
