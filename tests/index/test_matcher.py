"""Search by words: the scores of bm25s, after any change, with the kernel and without."""

import shutil
from itertools import chain

import bm25s
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rejoinder import Index, registry
from rejoinder.index.folder import TextIndex
from rejoinder.index.matcher import K1, B
from rejoinder.text.languages import with_digits_in_words
from rejoinder.text.normalize import words_of
from small_indexes import made, part, random_texts


def words(text):
    return words_of(with_digits_in_words(text))


def reference(texts):
    """A function that returns the BM25 of each text with a word of a query, by bm25s."""
    tokens = [words(text) for text in texts.values()]
    vocabulary = {w: n for n, w in enumerate(dict.fromkeys(chain.from_iterable(tokens)))}
    if not vocabulary:
        return lambda _query: {}
    other = bm25s.BM25(method="lucene", k1=K1, b=B)
    other.index(([[vocabulary[w] for w in row] for row in tokens], vocabulary), show_progress=False)

    def scores_of(query):
        wanted = [vocabulary[word] for word in words(query) if word in vocabulary]
        scores = other.get_scores_from_ids(wanted).tolist()
        return {name: score for name, score in zip(texts, scores, strict=True) if score > 0}

    return scores_of


@pytest.mark.skipif(registry.kernel("index._matches") is None, reason="kernels were not built")
def test_a_search_takes_the_kernel(tmp_path, monkeypatch):
    index = made(tmp_path, {"a": "one"})
    monkeypatch.delattr("rejoinder.index.matcher.Matcher._by_numpy")
    assert [hit.id for hit in index.matching("one")[0]] == ["a"]


def both_ways(work):
    """What `work` returns with kernels and without."""
    with pytest.MonkeyPatch.context() as patch:
        native = work()
        patch.setattr(registry, "WITHOUT_KERNELS", True)
        return native, work()


def check(index, texts, queries, top_k):
    """Compares what is found with `texts`, and scores with those of bm25s."""
    scores_of = reference(texts)
    native, plain = both_ways(lambda: index.matching(queries, top_k))
    assert native == plain
    for query, hits in zip(queries, native, strict=True):
        expected = scores_of(query)
        best = sorted(expected.values(), reverse=True)[:top_k]
        scores = [hit.score for hit in hits]
        assert scores == sorted(scores, reverse=True)
        assert scores == pytest.approx(best, rel=2e-6, abs=1e-6)
        assert scores == pytest.approx([expected[hit.id] for hit in hits], rel=2e-6, abs=1e-6)
        assert all(hit.text == texts[hit.id] for hit in hits)


WORDS = [
    "how",
    "old",
    "are",
    "you",
    "?",
    "I",
    "am",
    "20",
    "don't",
    "Ünïcode",
    "😀",
    "ﬁne",
    ".",
    ",",
]


sentences = st.lists(st.sampled_from(WORDS), max_size=12).map(" ".join) | st.text(
    st.characters(exclude_categories=["Cs"]), max_size=20
)


corpora = st.dictionaries(st.sampled_from([f"id{n}" for n in range(30)]), sentences, max_size=30)


@settings(max_examples=25)
@given(
    st.lists(corpora, max_size=3), st.lists(sentences, min_size=1, max_size=3), st.integers(1, 9)
)
def test_scores_are_those_of_bm25s(tmp_path_factory, parts, queries, top_k):
    index, texts = made(tmp_path_factory.mktemp("any")), {}
    for more in parts:
        index.add_encoded([part(more)], update=True)
        texts = {k: v for k, v in texts.items() if k not in more} | more
    check(index, texts, queries, top_k)
    gone = list(texts)[::3]
    index.delete(gone)
    left = {name: text for name, text in texts.items() if name not in gone}
    check(index, left, queries, top_k)
    before = index.matching(queries, top_k)
    index.compact()
    assert index.matching(queries, top_k) == before
    assert TextIndex(index.folder).matching(queries, top_k) == before


@pytest.mark.parametrize("top_k", [1, 10, 100])
def test_frequent_words_are_left_out_without_a_trace(tmp_path, top_k):
    texts = random_texts(9_000)
    queries = [text for text in random_texts(30, seed=1).values() if text]
    index = made(tmp_path, texts)
    check(index, texts, queries, top_k)
    hundreds_of_words = " ".join(random_texts(200, seed=2).values())
    native, plain = both_ways(lambda: index.matching(hundreds_of_words, top_k))
    assert native == plain


def test_counts_of_any_size_are_kept(tmp_path):
    texts = {"few": "a b", "many": "a " * 300 + "b", "most": "a " * 70_000, "none": "c"}
    for names, dtype in ((["few"], "u1"), (["few", "many"], "u2"), (list(texts), "u4")):
        some = {name: texts[name] for name in [*names, "none"]}
        index = made(tmp_path, some)
        check(index, some, ["a", "b a"], 9)
        [entry] = index.manifest.segments
        files = entry.files
        pairs = files["words.rows"]["bytes"] // 4
        assert files["words.counts"]["bytes"] == pairs * np.dtype(dtype).itemsize
        shutil.rmtree(index.folder)


def test_texts_without_a_word_of_the_query_are_not_found(tmp_path):
    index = made(tmp_path, {"a": "one two", "b": "", "c": "!", "d": "ONE"})
    assert [hit.id for hit in index.matching("one")[0]] == ["d", "a"]
    assert [hit.id for hit in index.matching("Ｏne")[0]] == ["d", "a"]  # NFKC
    assert index.matching(["", "three", " \n!"]) == [[], [], []]
    assert index.matching([]) == []
    assert made(tmp_path / "empty", {}).matching("one") == [[]]
    assert made(tmp_path / "blank", {"a": "", "b": " "}).matching("one") == [[]]
    index.delete(["a", "d"])
    assert index.matching("one") == [[]]


def test_symbols_are_words_and_punctuation_is_not(tmp_path):
    index = made(tmp_path, {"a": "C++, really?", "b": "ok 😀!", "c": "«?!»"})
    found = [
        [hit.id for hit in hits] for hits in index.matching(["c++", "😀", "really", "?!", "«"])
    ]
    assert found == [["a"], ["b"], ["a"], [], []]


def test_equal_scores_come_in_the_order_of_addition(tmp_path):
    index = made(tmp_path, {"z": "one two", "a": "one two"})
    index.add_encoded([part({"m": "one two"})])
    assert [hit.id for hit in index.matching("two")[0]] == ["z", "a", "m"]
    assert [hit.id for hit in index.matching("two", 2)[0]] == ["z", "a"]


@pytest.mark.parametrize("value", [0, 7, 2**32 - 1])
def test_rows_that_change_after_they_were_checked_are_not_followed(tmp_path, value):
    index = made(tmp_path, random_texts(50))
    queries = ["w1 w2 w3"] * 50
    index.matching(queries)
    path = index.folder / "000001" / "words.rows"
    with path.open("r+b") as file:  # the same file, which is mapped
        file.write(np.full(path.stat().st_size // 4, value, "<u4").tobytes())
    assert all(len(hits) <= 10 for hits in index.matching(queries))


def test_many_queries_are_searched_by_several_threads(tmp_path, monkeypatch):
    monkeypatch.setattr("rejoinder.index.matcher.default_workers", lambda: 4)
    texts = random_texts(2_000)
    index, queries = made(tmp_path, texts), list(random_texts(200, seed=1).values())
    together = index.matching(queries, 5)
    assert together == [index.matching(query, 5)[0] for query in queries]
    check(index, texts, queries[:40], 5)


def test_segments_that_are_released_are_searched_alike(tmp_path, monkeypatch):
    index = made(tmp_path, random_texts(200))
    queries = [f"w{number:x}" for number in range(1, 40)]
    before = index.matching(queries)
    monkeypatch.setattr("rejoinder.index.hits._KEPT_BYTES", 0)
    assert index.matching(queries) == before


TEXTS = ["How old are you?", "What is your age?", "I lost my XK-47 key.", "Where do you live?"]


@pytest.fixture(scope="module")
def index(tmp_path_factory):
    return Index.create(tmp_path_factory.mktemp("modes") / "index", TEXTS, "rejoinder-small")


NAMED = [
    "Deploy it to Kubernetes and watch Grafana.",
    "The Kubernetes cluster of RPostgreSQL is down.",
    "dbGetQuery returns a connection",
    "How do I connect to the database?",
    *(f"connect to server {number}" for number in range(30)),
    "conect again",
    "A soda and a pie.",
]
