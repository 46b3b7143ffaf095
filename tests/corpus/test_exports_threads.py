"""Threads of messages whose export names none."""

import json

import pytest

from rejoinder.corpus.convert import Threads, convert
from rejoinder.corpus.export_options import ExportOptions, Texts
from rejoinder.exports import FORMATS

SAID = (
    ("1", None, None, "1"),
    ("2", "1", None, "1"),
    ("3", "2", None, "1"),
    ("4", None, "help", "help"),
    ("5", "4", None, "help"),
    ("6", "4", "help", "help"),
    ("7", "gone", None, "gone"),
    ("8", "7", None, "gone"),
    ("2", "1", None, "1"),
    ("9", None, "9", "9"),
    ("10", "9", "9", "9"),
    ("11", "lost", "help", "help"),
    ("12", "11", None, "help"),
)


def test_a_message_is_in_the_thread_of_what_it_answers():
    threads = Threads()
    for id_, parent, given, expected in SAID:
        assert threads.name(id_, parent, given) == expected
    assert threads.are_apart


@pytest.mark.parametrize("given", ["2", "help"])
def test_an_answer_in_another_thread_is_noticed(given):
    threads = Threads()
    for id_, parent, other, _ in SAID:
        threads.name(id_, parent, other)
    assert threads.name("13", "2", given) == given
    assert not threads.are_apart


@pytest.mark.shared_data
@pytest.mark.parametrize("name", ["irc", "stackexchange", "telegram"])
def test_no_message_answers_one_of_another_thread(name, shared_data, tmp_path):
    options, file = ExportOptions(pair="adjacent"), tmp_path / "messages"
    export = shared_data / "exports" / name
    made = convert(export, FORMATS[name], options, Texts(options), file, lambda _: None)
    rows = [json.loads(line) for line in file.read_bytes().splitlines()]
    threads = {row["id"]: row["thread"] for row in rows}
    answers = [row for row in rows if row["parent"] in threads]
    assert len(answers) > 200
    assert [row for row in answers if threads[row["parent"]] != row["thread"]] == []
    assert made.threads_are_apart
