"""A collection of each kind of source: its texts, their embeddings, and what answers what."""

import numpy as np
import pytest

from export_samples import slack, write
from rejoinder import Index, SentenceEncoder
from rejoinder.conversations.collection import open_collection
from rejoinder.corpus.extract import extract
from rejoinder.corpus.texts import Entry
from rejoinder.errors import InputError

TEXTS = ["How old are you?", "Where do you live?", "I like pizza.", "How old are you?"]


@pytest.fixture(scope="module")
def encoder():
    return SentenceEncoder("rejoinder-small")


def test_texts_have_numbers_and_equal_ones_equal_rows(encoder, tmp_path):
    (tmp_path / "a.txt").write_text("\n".join(TEXTS))
    for source in (tmp_path / "a.txt", TEXTS, [Entry(None, text) for text in TEXTS]):
        made = open_collection(source, encoder)
        assert (made.ids, made.texts) == (["1", "2", "3", "4"], TEXTS)
        np.testing.assert_allclose(made.embeddings, encoder.encode(TEXTS), atol=1e-6)
        assert (made.embeddings[0] == made.embeddings[3]).all()
        assert made.column("author") == [None] * 4
        assert made.answered.tolist() == [-1] * 4
        assert made.encoder is encoder


def test_greetings_are_not_encoded(encoder):
    made = open_collection(["Hi all, how old are you? Thanks!", "how old are you?"], encoder)
    assert made.texts[0].startswith("Hi")
    assert (made.embeddings[0] == made.embeddings[1]).all()


def test_messages_of_an_export_know_what_they_answer(encoder, tmp_path):
    made = open_collection(write(slack.FILES, tmp_path), encoder)
    assert made.left_out == {"bot": 1, "empty": 1, "private": 1, "system": 1}
    asked = next(row for row, text in enumerate(made.texts) if text.startswith("Does"))
    replies = [made.texts[row] for row in made.replies[asked]]
    assert replies == ["Yes, since today", "Thanks!"]
    assert made.answered[made.replies[asked]].tolist() == [asked, asked]
    assert {*made.column("source")} == {"help"}
    assert all(time > 1e9 for time in made.column("time"))


def test_conditions_choose_messages(encoder, tmp_path):
    folder = write(slack.FILES, tmp_path / "export")
    made = open_collection(folder, encoder, where={"author": "ann"})
    assert {*made.column("author")} == {"Ann"}
    later = open_collection(folder, encoder, where={"since": "2024-03-02"})
    assert later.texts == ["Thanks!"]
    Index.create(tmp_path / "index", folder, encoder)
    assert open_collection(tmp_path / "index", where={"author": "ann"}).texts == made.texts
    with pytest.raises(InputError, match="author=zoe"):
        open_collection(folder, encoder, where={"author": "zoe"})


def test_questions_are_chosen(encoder, tmp_path):
    asked = open_collection([*TEXTS, "https://a.example/?q"], encoder, questions=True)
    assert asked.texts == [text for text in TEXTS if text.endswith("?")]
    Index.create(tmp_path / "index", TEXTS, "rejoinder-small")
    assert open_collection(tmp_path / "index", questions=True).texts == asked.texts
    with pytest.raises(InputError, match="question"):
        open_collection(["Hello"], encoder, questions=True)


def test_pairs_give_both_sides_once(encoder, tmp_path):
    faq = tmp_path / "faq.tsv"
    faq.write_text("q\ta\nHow old are you?\tTwenty.\nHow old are you?\tI am 20 years old.\n")
    extract(
        faq, tmp_path / "pairs", rules="none", columns={"message": "q", "reply": "a"},
    )  # fmt: skip
    made = open_collection(tmp_path / "pairs", encoder)
    assert sorted(made.texts) == [
        "How old are you?", "How old are you?", "I am 20 years old.", "Twenty.",
    ]  # fmt: skip
    answers = {
        made.texts[row]: made.texts[place] for row, place in enumerate(made.answered) if place >= 0
    }
    assert answers == dict.fromkeys(["Twenty.", "I am 20 years old."], "How old are you?")


def test_chains_of_pairs_are_kept(encoder, small_pairs):
    made = open_collection(small_pairs, encoder)
    assert len({*made.ids}) == len(made)
    answering = made.answered >= 0
    inner = {row for row, replies in enumerate(made.replies) if replies}
    assert any(answering[row] for row in inner), "some message answers and is answered"
    assert all(made.column("source"))


def test_an_index_gives_its_own_rows(encoder, tmp_path):
    given = [("a", "Hello"), ("b", "Bye")]
    index = Index.create(tmp_path / "index", given, "rejoinder-small", dtype="float16")
    index.delete("a")
    made = open_collection(tmp_path / "index")
    assert (made.ids, made.texts, len(made)) == (["b"], ["Bye"], 1)
    assert made.embeddings.dtype == np.float32
    np.testing.assert_allclose(made.embeddings, encoder.encode(["Bye"]), atol=1e-3)
    assert not made.of_responses
    np.testing.assert_allclose(made.encoder.encode(["Bye"]), encoder.encode(["Bye"]))
    with pytest.raises(InputError, match="SHA-256"):
        open_collection(tmp_path / "index", "rejoinder-base")


def test_what_does_not_fit_is_refused(encoder, tmp_path):
    with pytest.raises(InputError, match="folder"):
        open_collection(tmp_path, encoder, columns="text=a")
    with pytest.raises(InputError, match="text 1 "):
        open_collection(["a", 3], encoder)
    with pytest.raises(InputError):
        open_collection([], encoder)
    with pytest.raises(InputError):
        open_collection(tmp_path / "nothing", encoder)
