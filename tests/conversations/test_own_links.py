"""Links that exports state are hidden, and a linker learns to find them."""

import json

import pytest

from rejoinder.conversations.own_links import fit_links, known_links
from rejoinder.corpus.texts import Entry
from rejoinder.errors import InputError


def said(name, author, time, **more):
    return Entry(name, f"text {name}", {"author": author, "time": time, "source": "#a", **more})


def labels(*entries):
    [channel] = known_links(entries)
    return channel.labels


def test_replies_answer_what_they_name_and_threads_begin():
    assert labels(
        said("1", "ann", 1.0, thread="1"), said("2", "bob", 2.0, thread="2"),
        said("3", "cid", 3.0, thread="1", answers="1"), said("4", "ann", 4.0),
        said("5", "ann", 5.0, thread="1", answers="3"), said("6", "eve", 6.0, answers="4"),
        said("7", "eve", 7.0, answers="gone"), said("8", "bob", 8.0, thread="2"),
    ) == {0: [0], 1: [1], 2: [0], 4: [2], 5: [3]}  # fmt: skip


def test_in_flat_threads_the_last_messages_are_right_too():
    found = labels(
        said("1", "ann", 1.0, thread="1"), said("2", "bob", 2.0, thread="1", answers="1"),
        said("x", "eve", 2.5), said("3", "bob", 3.0, thread="1", answers="1"),
        said("4", "ann", 4.0, thread="1"),
    )  # fmt: skip
    assert {row: sorted(answered) for row, answered in found.items()} == {
        0: [0], 1: [0], 3: [0, 1], 4: [3]
    }  # fmt: skip


def test_channels_are_apart_and_in_the_order_of_time():
    entries = [said("2", "bob", 2.0, answers="1"), said("1", "ann", 1.0), Entry("n", "no time")]
    other = Entry("3", "text 3", {"source": "#b", "time": 1.5, "answers": "1"})
    first, second = known_links([*entries, other])
    assert (first.texts, first.labels) == (["text 1", "text 2"], {1: [0]})
    assert (second.authors, second.labels) == ([""], {})


def test_too_few_links_are_refused(tmp_path):
    path = tmp_path / "few.jsonl"
    path.write_text(json.dumps({"id": "1", "text": "a", "time": 1, "thread": "t"}) + "\n", "utf-8")
    with pytest.raises(InputError, match=r"few\.jsonl: 1 messages say what they answer"):
        fit_links([path], tmp_path / "out", columns="text=text,id=id,time=time,thread=thread")
    with pytest.raises(InputError, match=r"writing .* would replace it"):
        fit_links([path], path)
