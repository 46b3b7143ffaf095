"""Search by words and by both: the scores of bm25s, after any change, and the fusion of places.

Misspelt words of a query are read as words of the index.
"""

import shutil
from itertools import chain

import bm25s
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rejoinder import Index, kernels
from rejoinder.errors import InputError
from rejoinder.index import segment, state
from rejoinder.index import words as word_files
from rejoinder.index.folder import TextIndex, create_index
from rejoinder.index.manifest import IndexModel, Manifest
from rejoinder.index.segment import EncodedTexts
from rejoinder.index.words import words_of

DIM = 2
ABOUT = Manifest(IndexModel("model", "ab" * 32, None, None), DIM)


def part(texts):
    """EncodedTexts of a dict of texts by id."""
    rows = np.tile(np.array([1, 0], np.float32), (len(texts), 1))
    return EncodedTexts(list(texts), list(texts.values()), rows)


def made(folder, *parts):
    index = create_index(folder / "index", ABOUT, map(part, parts))
    return TextIndex(index.folder)


def reference(texts):
    """A function that returns the BM25 of each text with a word of a query, by bm25s."""
    tokens = [words_of(text) for text in texts.values()]
    vocabulary = {w: n for n, w in enumerate(dict.fromkeys(chain.from_iterable(tokens)))}
    if not vocabulary:
        return lambda _query: {}
    other = bm25s.BM25(method="lucene", k1=1.5, b=0.75)
    other.index(([[vocabulary[w] for w in row] for row in tokens], vocabulary), show_progress=False)

    def scores_of(query):
        wanted = [vocabulary[word] for word in words_of(query) if word in vocabulary]
        scores = other.get_scores_from_ids(wanted).tolist()
        return {name: score for name, score in zip(texts, scores, strict=True) if score > 0}

    return scores_of


@pytest.mark.skipif(kernels.kernel("index._matches") is None, reason="kernels were not built")
def test_a_search_takes_the_kernel(tmp_path, monkeypatch):
    index = made(tmp_path, {"a": "one"})
    monkeypatch.delattr("rejoinder.index.matcher.Matcher._by_numpy")
    assert [hit.id for hit in index.matching("one")[0]] == ["a"]


def both_ways(work):
    """What `work` returns with kernels and without."""
    with pytest.MonkeyPatch.context() as patch:
        native = work()
        patch.setattr(kernels, "LEFT_OUT", True)
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


def random_texts(count, seed=0):
    """Texts of words as frequent as in natural text."""
    generator = np.random.default_rng(seed)
    drawn = np.minimum(generator.zipf(1.3, (count, 12)), 3_000)
    lengths = generator.integers(0, 13, count)
    return {
        f"{seed}-{number}": " ".join(f"w{word:x}" for word in row[:length])
        for number, (row, length) in enumerate(zip(drawn.tolist(), lengths.tolist(), strict=True))
    }


@pytest.mark.parametrize("top_k", [1, 10, 100])
def test_frequent_words_are_left_out_without_a_trace(tmp_path, top_k):
    texts = random_texts(9_000)
    queries = [text for text in random_texts(30, seed=1).values() if text]
    index = made(tmp_path, texts)
    check(index, texts, queries, top_k)
    hundreds_of_words = " ".join(random_texts(200, seed=2).values())
    native, plain = both_ways(lambda: index.matching(hundreds_of_words, top_k))
    assert native == plain


def test_words_that_are_put_in_order_in_stretches_give_the_same_files(tmp_path, monkeypatch):
    parts = [part(random_texts(200, seed)) for seed in range(3)]
    whole = create_index(tmp_path / "whole", ABOUT, parts)
    monkeypatch.setattr(word_files, "_PAIRS", 50)
    stretches = create_index(tmp_path / "stretches", ABOUT, parts)
    assert stretches.manifest == whole.manifest


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


def test_a_segment_written_in_parts_is_the_same(tmp_path):
    texts = random_texts(500)
    names = list(texts)
    whole = made(tmp_path / "whole", texts)
    thirds = [{name: texts[name] for name in names[n : n + 77]} for n in range(0, 500, 77)]
    parts = made(tmp_path / "parts", {}, *thirds, {})
    assert parts.manifest.segments == whole.manifest.segments  # hashes of all files


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


@pytest.mark.parametrize("name", word_files.FILES)
def test_a_changed_byte_is_noticed_by_the_first_search(tmp_path, name):
    index = made(tmp_path, random_texts(50))
    path = index.folder / "000001" / name
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)
    opened = TextIndex(index.folder)
    opened.nearest(np.array([[1, 0]], np.float32))
    with pytest.raises(InputError, match=rf"{name} .*SHA-256"):
        opened.matching("w1")


def test_files_that_contradict_each_other_are_refused(tmp_path, monkeypatch):
    index = made(tmp_path, {"a": "one two", "b": "two"})
    monkeypatch.setattr(word_files, "check_file", lambda *_arguments, **_named: None)
    for name, values in (("rows", [0, 0, 2]), ("offsets", [0, 9, 3]), ("offsets", [1, 1, 3])):
        path = index.folder / "000001" / f"words.{name}"
        whole = path.read_bytes()
        np.array(values, "<u4" if name == "rows" else "<i8").tofile(path)
        with pytest.raises(InputError, match=rf"words\.{name} does not fit"):
            TextIndex(index.folder).matching("one")
        path.write_bytes(whole)
    [entry] = index.manifest.segments
    files = entry.files | {"words.counts": {"bytes": 2, "sha256": ""}}
    with pytest.raises(InputError, match=r"words\.counts"):
        word_files.Words(index.folder / "000001", files, entry.rows)


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


def test_a_search_by_meaning_reads_no_words(tmp_path, monkeypatch):
    index = made(tmp_path, {"a": "one"})
    monkeypatch.delattr(segment.Segment, "matcher")
    assert index.nearest(np.array([[1, 0]], np.float32))[0][0].id == "a"


def test_segments_that_are_released_are_searched_alike(tmp_path, monkeypatch):
    index = made(tmp_path, random_texts(200))
    queries = [f"w{number:x}" for number in range(1, 40)]
    before = index.matching(queries)
    monkeypatch.setattr("rejoinder.index.hits._KEPT_BYTES", 0)
    assert index.matching(queries) == before


MEANING, FOUND = np.arange(5), np.array([3, 1 << 32])


def test_fusion_adds_shares_of_places():
    found = state.fuse(MEANING, FOUND, 0.25, 10)
    scores = dict(zip(found.places.tolist(), found.scores.tolist(), strict=True))
    assert scores[3] == pytest.approx(0.25 / 64 + 0.75 / 61)
    assert scores[1 << 32] == pytest.approx(0.75 / 62)
    assert found.places.tolist() == [3, 1 << 32, 0, 1, 2, 4]
    assert state.fuse(MEANING, FOUND, 0.25, 1).places.tolist() == [3]
    assert not len(state.fuse(MEANING[:0], FOUND[:0], 0.25, 10).places)


@pytest.mark.parametrize(("weight", "kept"), [(1, MEANING), (0, FOUND)])
def test_a_weight_of_all_gives_one_list(weight, kept):
    found = state.fuse(MEANING, FOUND, weight, 10)
    assert found.places.tolist() == kept.tolist()


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


def test_an_index_of_the_first_format_is_built_again(tmp_path):
    index = made(tmp_path, {"a": "one"})
    path = index.folder / "index.json"
    path.write_text(path.read_text().replace('"format_version": 3', '"format_version": 1'))
    with pytest.raises(InputError, match=r"version 1.*Build the index again"):
        TextIndex(index.folder)


NAMED = [
    "Deploy it to Kubernetes and watch Grafana.",
    "The Kubernetes cluster of RPostgreSQL is down.",
    "dbGetQuery returns a connection",
    "How do I connect to the database?",
    *(f"connect to server {number}" for number in range(30)),
    "conect again",
    "A soda and a pie.",
]


@pytest.fixture(scope="module")
def named(tmp_path_factory):
    return Index.create(tmp_path_factory.mktemp("own") / "index", NAMED, "rejoinder-small")


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("is Kuberntes up", {"kuberntes": "kubernetes"}),
        ("grafna dashboards", {"grafna": "grafana"}),
        ("dbGetQurey fails", {"dbgetqurey": "dbgetquery"}),
        ("the RPosgreSQL conection", {"rposgresql": "rpostgresql", "conection": "connection"}),
        ("how to conect", {"conect": "connect"}),  # the index has both
        ("is Grafana up", {}),
        ("where is Skoda made", {}),  # it has soda, and English has Skoda
        ("pasword", {"pasword": "password"}),  # as the model reads it
        ("", {}),
    ],
)
def test_words_are_read_as_those_of_the_index(named, query, expected):
    assert named.read_as(query) == [expected]


@pytest.mark.parametrize("mode", ["semantic", "words", "hybrid"])
def test_a_misspelt_name_finds_what_the_right_one_does(named, mode):
    wrong, right = named.search(["Kuberntes is down", "Kubernetes is down"], 2, mode=mode)
    assert [(hit.id, hit.score) for hit in wrong] == [(hit.id, hit.score) for hit in right]
    assert wrong[0].id == "2"


def test_the_index_knows_words_that_are_added(tmp_path):
    grown = Index.create(tmp_path / "index", ["How are you?"], "rejoinder-small")
    assert grown.read_as("zabbbix alerts") == [{}]
    grown.add(["Zabbix sends alerts."])
    assert grown.read_as("zabbbix alerts") == [{"zabbbix": "zabbix"}]
