"""The share of meaning that finds most replies, and the indexes that take it."""

import json
from dataclasses import replace

import rejoinder
from rejoinder.api.finetuning import search_weight
from rejoinder.corpus.extract import extract
from rejoinder.corpus.writer import open_pairs
from rejoinder.index.indexing import Index
from rejoinder.inference.encoder import SentenceEncoder
from rejoinder.models.find import find_model
from rejoinder.models.folder import read_model, write_model

NUMBERED = [("parcel {n:04} is late", "we lost {n:04}, sorry")] * 200
OTHER_WORDS = [
    ("how old are you? {n}", "I am twenty years old."),
    ("where do you live? {n}", "My house stands in Oslo."),
    ("what did they eat? {n}", "We had pizza for dinner."),
    ("who won the match? {n}", "Our team scored three goals."),
]


def found_in(folder, rows):
    file = folder / "pairs.jsonl"
    lines = [{"q": q.format(n=n), "a": a.format(n=n)} for n, (q, a) in enumerate(rows)]
    file.write_text("\n".join(map(json.dumps, lines)))
    columns = {"message": "q", "reply": "a"}
    extract(file, folder / "pairs", columns=columns, rules="none", split=(10, 80, 10))
    # without buckets it can't tell numbers apart
    rejoinder.export("rejoinder-small", folder / "small", letter_buckets=0)
    encoder, pairs = SentenceEncoder(folder / "small"), open_pairs(folder / "pairs")
    return search_weight(encoder, pairs, folder / "index")


def test_words_count_more_where_they_find_more(tmp_path):
    found = found_in(tmp_path, NUMBERED)
    assert found.queries > 100
    assert found.words == 1.0 > found.meaning
    assert found.weight <= 0.5
    assert found.both > found.meaning


def test_meaning_counts_where_replies_have_other_words(tmp_path):
    found = found_in(tmp_path, OTHER_WORDS * 5)
    assert found.meaning > found.words
    assert found.both >= max(found.meaning, found.words)


def test_an_index_takes_the_weight_of_its_model(tmp_path):
    model = read_model(find_model("rejoinder-small"))
    learnt = replace(model, training={**model.training, "search_weight": 0.2})
    write_model(tmp_path / "learnt", learnt)
    texts = ["the late parcel", "lost in the post", "a late train", "parcel post"]
    for name, weight in ((str(tmp_path / "learnt"), 0.2), ("rejoinder-small", 0.25)):
        index = Index.create(tmp_path / f"index {weight}", texts, name)
        found = index.search("late parcel", mode="hybrid")
        assert found == index.search("late parcel", mode="hybrid", weight=weight)
        assert found != index.search("late parcel", mode="hybrid", weight=0.6)
