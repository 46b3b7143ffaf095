"""Indexes with a real model find what a search in memory finds, and know their model."""

import gzip
import json
import shutil
import zlib
from datetime import UTC, datetime

import numpy as np
import polars as pl
import pytest

from export_samples import slack, write
from rejoinder import Index, SentenceEncoder, load_encoder
from rejoinder.corpus.texts import entries_of
from rejoinder.corpus.writer import open_pairs
from rejoinder.errors import InputError, ModelError
from rejoinder.inference import sentence_stream
from rejoinder.models.folder import write_model
from tiny_models import dan_model

TEXTS = ["How old are you?", "Where do you live?", "I like pizza.", "", "How old are you?"]


@pytest.fixture(scope="module")
def encoder():
    return SentenceEncoder.load("rejoinder-small")


def test_hits_are_those_of_a_search_in_memory(encoder, tmp_path, monkeypatch):
    monkeypatch.setattr(sentence_stream, "CHUNK", 2)
    index = Index.create(tmp_path / "index", TEXTS, "rejoinder-small")
    queries = ["What is your age?", "pizza", "Zyxxyq"]
    expected = encoder.search(queries, TEXTS, 4)
    for opened in (index, Index.open(tmp_path / "index")):
        found = opened.search(queries, 4)
        assert [[(hit.text, hit.id) for hit in hits] for hits in found] == [
            [(hit.text, str(hit.index + 1)) for hit in hits] for hits in expected
        ]
        scores = [[hit.score for hit in hits] for hits in found]
        np.testing.assert_allclose(
            scores, [[hit.score for hit in hits] for hits in expected], atol=1e-6
        )
    assert len(index) == 5
    assert index.get("3") == "I like pizza."
    assert "6" not in index


def test_texts_are_added_updated_and_deleted(tmp_path):
    index = Index.create(tmp_path / "index", [("a", "How old are you?")], "rejoinder-small")
    assert index.add(["I like pizza.", "Where do you live?"]) == 2
    assert index.get("2") == "Where do you live?"
    with pytest.raises(InputError, match="'a'"):
        index.add([("a", "x")])
    index.add([("a", "What time is it?")], update=True)
    assert index.get("a") == "What time is it?"
    index.delete(["1", "1"])
    assert len(index) == 2
    index.compact()
    index.check()
    [[hit]] = Index.open(tmp_path / "index").search("Tell me the time.", 1)
    assert (hit.id, hit.text) == ("a", "What time is it?")


def test_an_index_knows_its_model(tmp_path):
    write_model(tmp_path / "model", dan_model())
    Index.create(tmp_path / "index", TEXTS, tmp_path / "model")
    assert len(Index.open(tmp_path / "index").search("hello")[0]) == 5
    with pytest.raises(InputError, match=r"SHA-256.*rejoinder-small"):
        Index.open(tmp_path / "index", "rejoinder-small")
    (tmp_path / "model").rename(tmp_path / "moved")
    with pytest.raises(ModelError, match="model"):
        Index.open(tmp_path / "index")
    assert len(Index.open(tmp_path / "index", tmp_path / "moved")) == 5


def test_a_model_inside_moves_with_the_index(tmp_path):
    write_model(tmp_path / "model", dan_model())
    Index.create(tmp_path / "index", TEXTS, tmp_path / "model", copy_model=True)
    shutil.rmtree(tmp_path / "model")
    (tmp_path / "index").rename(tmp_path / "elsewhere")
    index = Index.open(tmp_path / "elsewhere")
    index.add(["more"])
    assert len(Index.open(tmp_path / "elsewhere")) == 6
    assert (tmp_path / "elsewhere/model").is_dir()


def test_an_encoder_in_memory_is_given_again(encoder, tmp_path):
    Index.create(tmp_path / "index", TEXTS, encoder)
    with pytest.raises(InputError, match="`model`"):
        Index.open(tmp_path / "index")
    assert len(Index.open(tmp_path / "index", encoder)) == 5
    with pytest.raises(InputError, match="saved"):
        Index.create(tmp_path / "other", TEXTS, SentenceEncoder(dan_model()))
    assert not (tmp_path / "other").exists()


def test_files_of_texts_are_read_by_their_names(tmp_path):
    (tmp_path / "a.txt").write_text("one\n\nthree\n", "utf-8")
    expected = [(None, "one"), (None, ""), (None, "three")]
    assert [entry[:2] for entry in entries_of(tmp_path / "a.txt")] == expected
    (tmp_path / "a.tsv").write_text("id\ttext\nx\tone\ny\ttwo\n", "utf-8")
    expected = [("x", "one"), ("y", "two")]
    assert [entry[:2] for entry in entries_of(tmp_path / "a.tsv")] == expected
    rows = [{"id": "x", "text": "one"}, {"id": 7, "text": "two", "more": 1}, {"text": "\ud83d"}]
    (tmp_path / "a.jsonl.gz").write_bytes(gzip.compress("\n".join(map(json.dumps, rows)).encode()))
    expected = [("x", "one"), ("7", "two"), (None, "\ufffd")]
    assert [entry[:2] for entry in entries_of(tmp_path / "a.jsonl.gz")] == expected


def test_every_message_of_an_export_is_indexed_with_what_is_known_of_it(encoder, tmp_path):
    write(slack.FILES, tmp_path / "slack")
    index = Index.create(tmp_path / "index", tmp_path / "slack", encoder)
    kept = [
        one
        for one in slack.MESSAGES
        if one.text and not (one.is_bot or one.is_system or one.is_private)
    ]
    [hits] = index.search("Does it work?", 100)
    assert {hit.id: hit.text for hit in hits} == {one.id: one.text for one in kept}
    [reply] = [one for one in kept if one.text == "Yes, since today"]
    [hit] = [hit for hit in hits if hit.id == reply.id]
    assert hit.about == {
        "author": "Bob B.",
        "time": reply.time,
        "source": "help",
        "thread": reply.thread,
        "answers": reply.parent,
    }
    index.delete([kept[0].id])
    index.compact()
    assert index.search("Yes, since today", 1)[0][0].about["author"] == "Bob B."
    (tmp_path / "empty").mkdir()
    with pytest.raises(InputError, match="neither a folder of pairs nor an export"):
        Index.create(tmp_path / "other", tmp_path / "empty", encoder)


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("a.tsv", "id\ttext\nx\tone\nno tab\n", "line 3"),
        ("a.jsonl", '{"text": "one"}\n{"text": 1}\n', "line 2.*'text'"),
        ("a.jsonl", '{"text": "one", "id": true}\n', "line 1.*'id'"),
        ("a.jsonl", '{"text": NaN}\n', "line 1"),
        ("a.jsonl", "[1]\n", "line 1"),
    ],
)
def test_a_malformed_line_is_named_and_nothing_is_left(tmp_path, name, content, said):
    (tmp_path / name).write_text(content, "utf-8")
    with pytest.raises(InputError, match=said):
        Index.create(tmp_path / "index", tmp_path / name, "rejoinder-small")
    assert [path.name for path in tmp_path.iterdir()] == [name]


def test_an_index_that_was_opened_before_another_addition_gives_other_numbers(encoder, tmp_path):
    first = Index.create(tmp_path / "index", TEXTS, encoder)
    second = Index.open(tmp_path / "index", encoder)
    first.add(["one"])
    second.add(["two"])
    assert (second.get("6"), second.get("7")) == ("one", "two")


def test_progress_begins_with_nothing_done(encoder, tmp_path, monkeypatch):
    monkeypatch.setattr(sentence_stream, "CHUNK", 2)
    (tmp_path / "a.txt").write_text("one\ntwo\nthree\n", "utf-8")
    told = []
    Index.create(
        tmp_path / "index", tmp_path / "a.txt", encoder, progress=lambda *now: told.append(now)
    )
    assert told == [(0, 0, 14), (2, 14, 14), (3, 14, 14)]


def test_replies_of_pairs_are_found_as_answers(encoder, small_pairs, tmp_path):
    index = Index.create(tmp_path / "index", small_pairs, encoder, response=True)
    frame = pl.concat([open_pairs(small_pairs).frame(split) for split in ("train", "dev", "test")])
    replies = dict(zip(frame["response_id"], frame["response"], strict=True))
    assert len(index) == frame["response"].n_unique()
    message = frame["input"][0]
    [hits] = index.search(message, 5)
    assert all(replies[hit.id] == hit.text for hit in hits)
    ranked = encoder.rank(message, list(dict.fromkeys(frame["response"])), 5)
    np.testing.assert_allclose([h.score for h in hits], [h.score for h in ranked], atol=1e-5)
    index.add(["Never seen."])  # on the response side as well
    found = {hit.text: hit.score for hit in index.search("Never?", len(index))[0]}
    own = encoder.encode("Never?") @ encoder.encode_response("Never seen.")
    assert found["Never seen."] == pytest.approx(float(own), abs=1e-5)


@pytest.mark.parametrize(
    ("settings", "said"),
    [({"recall": 0}, "recall.*0"), ({"dtype": "int8"}, "dtype.*float32, float16.*int8")],
)
def test_wrong_settings_are_refused_before_the_work(encoder, tmp_path, settings, said):
    with pytest.raises(InputError, match=said):
        Index.create(tmp_path / "index", TEXTS, encoder, **settings)
    assert not (tmp_path / "index").exists()


def test_float16_halves_the_embeddings_and_finds_the_same(encoder, tmp_path):
    whole = Index.create(tmp_path / "whole", TEXTS, encoder)
    half = Index.create(tmp_path / "half", TEXTS, encoder, dtype="float16")
    for query in ("What is your age?", "pizza"):
        [expected], [found] = whole.search(query), half.search(query)
        assert [hit.id for hit in found] == [hit.id for hit in expected]
        np.testing.assert_allclose(
            [hit.score for hit in found], [hit.score for hit in expected], atol=5e-4
        )
    assert Index.open(tmp_path / "half", encoder).is_exact


def test_other_values_than_texts_are_refused(tmp_path):
    for wrong in (3, ("a", 1), ("a", "b", "c"), None, list(range(10_000))):
        with pytest.raises(InputError, match=r"text 1\b.{1,90}$"):
            Index.create(tmp_path / "index", ["one", wrong], "rejoinder-small")


def test_ids_are_strings_one_or_several(encoder, tmp_path):
    index = Index.create(tmp_path / "index", ["one", "two", "three"], encoder)
    assert index.get("1") == "one"
    assert index.get(["3", "1"]) == ["three", "one"]
    for wrong in ([1], 1, [None]):
        with pytest.raises(InputError, match="strings"):
            index.get(wrong)
        with pytest.raises(InputError, match="strings"):
            index.delete(wrong)
    index.delete("2")
    index.delete(["1"])
    assert len(index) == 1


class Trigrams:
    """Somebody else's encoder: counts of hashed trigrams of letters, mapped to fewer numbers."""

    def __init__(self, dim=32, seed=0):
        self.map = np.random.default_rng(seed).standard_normal((4_096, dim))

    def encode(self, sentences):
        counts = np.zeros((len(sentences), 4_096))
        for row, text in enumerate(sentences):
            letters = f"  {text.lower()} ".encode()
            for at in range(len(letters) - 2):
                counts[row, zlib.crc32(letters[at : at + 3]) % 4_096] += 1
        return 3 * counts @ self.map


def test_any_object_that_encodes_makes_an_index(tmp_path):
    trigrams = Trigrams()
    index = Index.create(tmp_path / "index", TEXTS, trigrams)
    index.add(["Where do they live?"])
    opened = Index.open(tmp_path / "index", Trigrams())
    rows = trigrams.encode([*TEXTS, "Where do they live?"])
    units = rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-12)
    for query in ("Where do you live", "pizza"):
        [row] = trigrams.encode([query])
        scores = np.round(units @ row / np.linalg.norm(row), 6)
        [hits] = opened.search(query, 6)
        assert [hit.id for hit in hits] == [str(i + 1) for i in np.argsort(-scores, kind="stable")]
        np.testing.assert_allclose([hit.score for hit in hits], np.sort(scores)[::-1], atol=2e-6)
    assert opened.search([]) == []
    assert opened.search("pizza", 1, mode="hybrid")[0][0].text == "I like pizza."
    with pytest.raises(InputError, match=r"made with Trigrams .*not with Trigrams"):
        Index.open(tmp_path / "index", Trigrams(seed=1))
    with pytest.raises(InputError, match="Pass the encoder"):
        Index.open(tmp_path / "index")
    with pytest.raises(InputError, match="encode_response"):
        Index.create(tmp_path / "other", TEXTS, trigrams, response=True)
    with pytest.raises(InputError, match="copy_model"):
        Index.create(tmp_path / "other", TEXTS, trigrams, copy_model=True)


class Damaged(Trigrams):
    """Trigrams whose rows of some texts are wrong, but not those of the probe."""

    wrong = ("nan", "short", "flat", "raises")

    def encode(self, sentences):
        rows = super().encode(sentences)
        for kind in self.wrong:
            if kind in sentences:
                return {
                    "nan": lambda: rows * np.nan,
                    "short": lambda: rows[:, 1:],
                    "flat": lambda: rows[0],
                    "raises": lambda: 1 / 0,
                }[kind]()
        return rows


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("nan", "finite"),
        ("short", "31 numbers.* 32"),
        ("flat", "shape"),
        ("raises", "ZeroDivision"),
    ],
)
def test_rows_of_an_encoder_that_can_not_be_used_are_refused(tmp_path, text, said):
    index = Index.create(tmp_path / "index", TEXTS, Damaged())
    for call in (
        lambda: index.add([text]),
        lambda: index.search(text),
        lambda: Index.create(tmp_path / "other", [text], Damaged()),
    ):
        with pytest.raises(InputError, match=rf"encode of the encoder Damaged .*{said}"):
            call()
    assert len(index) == len(TEXTS)
    assert [path.name for path in tmp_path.iterdir()] == ["index"]


def test_encoders_of_load_encoder_make_indexes(encoder, tmp_path):
    rows = encoder.encode(TEXTS)
    frame = pl.DataFrame({"text": TEXTS, "embedding": 2 * rows}).unique("text", maintain_order=True)
    frame.write_parquet(tmp_path / "vectors.parquet")
    stored = load_encoder(f"vectors:{tmp_path / 'vectors.parquet'}")
    index = Index.create(tmp_path / "index", TEXTS, stored)
    [hits] = index.search(TEXTS[0])
    [expected] = encoder.search([TEXTS[0]], TEXTS)
    assert [(hit.id, pytest.approx(hit.score, abs=1e-6)) for hit in hits] == [
        (str(hit.index + 1), hit.score) for hit in expected
    ]
    with pytest.raises(InputError, match=r"made with vectors:vectors.parquet"):
        Index.open(tmp_path / "index", encoder)


@pytest.mark.parametrize("wrong", [3, object(), np.ones(3)])
def test_other_objects_are_not_encoders(tmp_path, wrong):
    with pytest.raises(InputError, match="has no encode"):
        Index.create(tmp_path / "index", TEXTS, wrong)
    assert not list(tmp_path.iterdir())


def test_an_encoder_that_learns_from_all_texts_is_refused(tmp_path):
    with pytest.raises(InputError, match="needs all texts at once"):
        Index.create(tmp_path / "index", TEXTS, load_encoder("baseline:tfidf"))


def test_an_index_tells_what_matters(encoder, tmp_path):
    write(slack.FILES, tmp_path / "slack")
    index = Index.create(tmp_path / "<index>", tmp_path / "slack", encoder)
    summary = index.summary()
    days = [
        datetime.fromtimestamp(time, UTC).date().isoformat()
        for time in (summary.first, summary.last)
    ]
    for told in (
        str(tmp_path), f"{len(index)}", "rejoinder-small", f"{encoder.dim}", *days
    ):  # fmt: skip
        assert told in repr(index)
        assert told in index._repr_html_()
    assert "<index>" in repr(index)
    assert "&lt;index&gt;" in index._repr_html_()
    shutil.rmtree(tmp_path / "<index>")
    assert "<index>" in repr(index)
    assert "from" not in repr(Index.create(tmp_path / "plain", TEXTS, encoder))
