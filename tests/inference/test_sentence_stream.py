"""The loop that encodes: chunks in order, with how far it is."""

import warnings
from pathlib import Path

import pytest

from rejoinder.corpus.texts import Entry
from rejoinder.errors import ForeignTextWarning, InputError
from rejoinder.inference import sentence_stream
from rejoinder.inference.encoder import SentenceEncoder
from rejoinder.inference.sentence_stream import (
    MOSTLY,
    Source,
    encoded_chunks,
    given_texts,
    model_for,
)
from rejoinder.text.languages import FOUND


@pytest.fixture(autouse=True)
def _small_chunks(monkeypatch):
    monkeypatch.setattr(sentence_stream, "CHUNK", 3)


def test_chunks_come_in_order_with_the_number_before_them():
    told, seen = [], []
    source = Source([f"text {n}" for n in range(7)])

    def encode(chunk, before):
        seen.append(before)
        return len(chunk)

    found = list(source.encoded(encode, lambda *done: told.append(done), 10))
    assert [[entry.text for entry in chunk] for chunk, _ in found] == [
        ["text 0", "text 1", "text 2"], ["text 3", "text 4", "text 5"], ["text 6"],
    ]  # fmt: skip
    assert [made for _, made in found] == [3, 3, 1]
    assert seen == [10, 13, 16]
    assert told == [(10, 0, None), (13, 0, None), (16, 0, None), (17, 0, None)]


def test_texts_that_are_not_wanted_are_not_encoded():
    source = Source(["a", "b", "c"]).only(lambda entry: entry.text != "b")
    [(chunk, made)] = source.encoded(lambda chunk, _: len(chunk), lambda *_: None)
    assert [entry.text for entry in chunk] == ["a", "c"]
    assert made == 2


def test_a_file_tells_how_much_of_it_was_read(tmp_path):
    path, told = tmp_path / "texts.txt", []
    path.write_text("one\ntwo\nthree\nfour\n")
    list(Source(path).encoded(lambda *_: None, lambda *done: told.append(done)))
    assert told[0] == (0, 0, 19)
    assert told[-1] == (4, 19, 19)


def test_rows_and_unknown_sentences_are_those_of_the_encoder():
    encoder = SentenceEncoder("rejoinder-small", threads=1)
    texts = ["How are you?", "\u4f60", "Fine.", ""]
    chunks = list(encoded_chunks(encoder, Source(texts), lambda *_: None))
    assert [chunk.texts for chunk in chunks] == [texts[:3], texts[3:]]
    assert sum(chunk.unknown for chunk in chunks) == int((~encoder.encode(texts).any(axis=1)).sum())


def test_what_is_not_a_text_is_named_by_its_index():
    with pytest.raises(InputError, match="text 1 is 3"):
        list(given_texts(["a", 3]))
    assert list(given_texts(["a", ("x", "b"), Entry("y", "c")])) == [
        Entry(None, "a"), Entry("x", "b"), Entry("y", "c"),
    ]  # fmt: skip


def test_columns_are_for_a_file():
    with pytest.raises(InputError, match="columns"):
        Source(["a"], "text=a")


ENGLISH, GERMAN = "What is the price of it, and when?", "Wie ist das und was ist nicht ein Tag?"


@pytest.mark.usefixtures("multilingual")
@pytest.mark.parametrize(
    ("german", "least", "model", "named"),
    [
        (0, MOSTLY, "rejoinder-base", ""),
        (0, FOUND, "rejoinder-base", ""),
        (10, MOSTLY, "rejoinder-base", "English and German"),
        (10, FOUND, "rejoinder-multi", "English and German"),
        (90, MOSTLY, "rejoinder-multi", "German and English"),
        (100, MOSTLY, "rejoinder-multi", "German"),
    ],
)
def test_the_model_is_chosen_by_the_languages_found(german, least, model, named):
    texts = [GERMAN if n % 100 < german else ENGLISH for n in range(300)]
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        assert model_for(texts, least) == model
    assert [f"like {named}, so {model} " in str(one.message) for one in told] == (
        [True] if named else []
    )


def test_a_model_that_is_not_installed_is_named_where_encoding_would_not(monkeypatch):
    monkeypatch.setattr(
        sentence_stream, "models_knowing", lambda code: ["rejoinder-base"] * (code == "en")
    )
    monkeypatch.setattr(sentence_stream, "shipped_models", lambda: {"rejoinder-base": Path()})
    with pytest.warns(ForeignTextWarning, match="rejoinder-multi"):
        assert model_for([ENGLISH, ENGLISH, GERMAN], FOUND) == "rejoinder-base"
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert model_for([GERMAN]) == "rejoinder-base"
