"""Search by meaning, by words and by both: modes and weights."""

import numpy as np
import pytest

from rejoinder import Index
from rejoinder.errors import InputError
from rejoinder.index import segment
from small_indexes import made


def test_a_search_by_meaning_reads_no_words(tmp_path, monkeypatch):
    index = made(tmp_path, {"a": "one"})
    monkeypatch.delattr(segment.Segment, "matcher")
    assert index.nearest(np.array([[1, 0]], np.float32))[0][0].id == "a"


TEXTS = ["How old are you?", "What is your age?", "I lost my XK-47 key.", "Where do you live?"]


@pytest.fixture(scope="module")
def index(tmp_path_factory):
    return Index.create(tmp_path_factory.mktemp("modes") / "index", TEXTS, "rejoinder-small")


def test_modes_compare_meanings_words_or_both(index):
    queries = ["Tell me your age!", "XK"]
    semantic, words, both = (
        [[hit.id for hit in hits] for hits in index.search(queries, mode=mode)]
        for mode in ("semantic", "words", "hybrid")
    )
    assert index.search(queries) == index.search(queries, mode="semantic")
    assert words == [["2"], ["3"]]
    assert all(len(hits) == 4 for hits in semantic + both)
    assert both[0][0] == "2"
    assert both[1][0] == "3"
    weighted = index.search(queries, mode="hybrid", weight=1.0)
    assert [[hit.id for hit in hits] for hits in weighted] == semantic
    weighted = index.search(queries, mode="hybrid", weight=0)
    assert [[hit.id for hit in hits] for hits in weighted] == words
    assert len(index.search("age", 1, mode="hybrid")[0]) == 1


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"mode": "bm25"}, "semantic, words, hybrid.*'bm25'"),
        ({"mode": "hybrid", "weight": 1.1}, "0 to 1.*1.1"),
        ({"mode": "hybrid", "weight": float("nan")}, "0 to 1.*nan"),
        ({"mode": "words", "top_k": 0}, "top_k"),
        ({"mode": "hybrid", "top_k": 1.5}, "top_k"),
    ],
)
def test_wrong_settings_are_refused(index, settings, said):
    with pytest.raises(InputError, match=said):
        index.search("a", **settings)


def test_other_values_than_texts_are_refused(index):
    for mode in ("words", "hybrid"):
        with pytest.raises(InputError, match="strings"):
            index.search(["a", 3], mode=mode)
    assert index.search("\ud83d age", mode="words")[0][0].id == "2"
