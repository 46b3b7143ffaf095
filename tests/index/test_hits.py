"""The messages around a hit, in a thread or in a channel, of one addition or of several."""

import numpy as np
import pytest

from rejoinder.errors import InputError
from rejoinder.index.files import IndexModel, Manifest
from rejoinder.index.folder import create_index
from rejoinder.index.hits import IndexedText, linked_with
from rejoinder.index.segment import EncodedTexts
from rejoinder.index.words import matches

ABOUT = Manifest(IndexModel("model", "ab" * 32, None, None), 2)


def part(ids, about):
    """Texts with what is known about them."""
    rows = np.tile(np.array([1, 0], np.float32), (len(ids), 1))
    return EncodedTexts(ids, [f"message {name}" for name in ids], rows, about)


def made(folder, *additions):
    """An index of messages by id, of which each text is drawn."""
    first, *more = [part(list(known), list(known.values())) for known in additions]
    index = create_index(folder / "index", ABOUT, [first])
    for addition in more:
        index.add_encoded([addition])
    return index


def around(index, name, context):
    """Ids of the messages before and after one."""
    hits = index.matching("message", 100, context=context)[0]
    [hit] = [hit for hit in hits if hit.id == name]
    assert all(index.get(each.id) == each.text for each in (*hit.before, *hit.after))
    return [each.id for each in hit.before], [each.id for each in hit.after]


def test_messages_of_a_thread_come_by_time_from_all_additions(tmp_path):
    def of(thread, time):
        return {"thread": thread, "source": "help", "time": time}

    index = made(
        tmp_path,
        {"c": of("x", 3.0), "a": of("x", 1.0), "other": of("y", 2.5)},
        {"b": of("x", 2.0), "late": {"thread": "x", "source": "help"}, "d": of("x", 4.0)},
    )
    assert around(index, "c", 1) == (["b"], ["d"])
    assert around(index, "c", 9) == (["a", "b"], ["d", "late"])
    assert around(index, "other", 9) == ([], [])
    index.delete(["b"])
    assert around(index, "c", 1) == (["a"], ["d"])
    index.compact()
    assert around(index, "c", 9) == (["a"], ["d", "late"])


def test_a_channel_shows_no_answers_in_threads(tmp_path):
    index = made(
        tmp_path,
        {
            "a": {"source": "help"},
            "root": {"source": "help", "thread": "root"},
            "answer": {"source": "help", "thread": "root", "answers": "root"},
            "reply": {"source": "help", "answers": "a"},
            "elsewhere": {"source": "general"},
            "alone": {},
        },
    )
    assert around(index, "a", 9) == ([], ["root", "reply"])
    assert around(index, "root", 9) == ([], ["answer"])
    assert around(index, "alone", 9) == ([], [])


def exchange(index, name, context):
    hit = index.around(name, context)
    return linked_with(name, [*hit.before, IndexedText(name, hit.text, hit.about), *hit.after])


def test_an_exchange_is_what_links_connect(tmp_path):
    links = {"b": "a", "d": "b", "e": "c", "f": "d", "g": "b", "h": "gone", "i": "gone"}
    about = {name: {"source": "irc", "time": float(at)} for at, name in enumerate("abcdefghij")}
    for name, answered in links.items():
        about[name]["answers"] = answered
    index = made(tmp_path, about)
    for linked in ("abdfg", "ce", "hi", "j"):
        for name in linked:
            assert exchange(index, name, 9) - {"gone"} == {*linked}
    assert exchange(index, "f", 1) == {"f", "d"}, "what d answers is not around f"
    assert exchange(index, "f", 2) == {"f", "d", "b", "g"}


def test_messages_that_answer_each_other_are_one_exchange(tmp_path):
    index = made(
        tmp_path, {"a": {"source": "x", "answers": "b"}, "b": {"source": "x", "answers": "a"}}
    )
    assert exchange(index, "a", 9) == {"a", "b"}


def test_texts_that_are_not_messages_have_nothing_around_them(tmp_path):
    index = create_index(tmp_path / "index", ABOUT, [part(["a"], ())])
    with pytest.raises(InputError, match="not messages"):
        index.matching("message", context=1)
    with pytest.raises(InputError, match="context"):
        index.matching("message", context=-1)


def test_words_are_found_in_a_text_as_the_index_has_them():
    text = "Caf\u00e9 \ufb01ne, FINE \u2014 isn\u2019t it?"
    found = matches("fine CAF\u00c9 isn't ?", text)
    assert [text[begin:end] for begin, end in found] == [
        "Caf\u00e9",
        "\ufb01ne",
        "FINE",
        "isn\u2019t",
    ]
    assert matches("", text) == matches("refined", text) == []
    assert matches("e\u0301", "e\u0301 e\u0301") == []  # normalising joins characters
