"""Filters: what is found is what a search of everything finds, without what does not meet them."""

import datetime

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rejoinder import Index, cluster, registry
from rejoinder.errors import InputError
from rejoinder.index import lists
from rejoinder.index.files import IndexModel, Manifest
from rejoinder.index.folder import create_index
from rejoinder.index.segment import EncodedTexts
from rejoinder.index.where import read_query

DIM, DAY = 4, 86_400
ABOUT = Manifest(IndexModel("model", "ab" * 32, None, None), DIM)
WORDS = ["one", "two", "three", "four", "five"]


def part(ids, about, seed=0):
    """Texts of random words and embeddings, with what is known about them."""
    drawn = np.random.default_rng(seed)
    rows = drawn.standard_normal((len(ids), DIM)).astype(np.float32)
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    texts = [" ".join(drawn.choice(WORDS, 3)) for _ in ids]
    return EncodedTexts(ids, texts, rows, about)


def searches(index, where, top_k):
    """Hits of each mode, with scores."""
    query = np.eye(DIM, dtype=np.float32)[:1]
    found = (
        index.nearest(query, top_k, where=where),
        index.matching("two five", top_k, where=where),
        index.best("two five", query, top_k, where=where),
    )
    return [[(hit.id, hit.score) for hit in hits] for [hits] in found]


MESSAGES = st.lists(
    st.fixed_dictionaries(
        {},
        optional={
            "author": st.sampled_from(["Ann", "bob", "Smith, J."]),
            "source": st.sampled_from(["general", "Help"]),
            "thread": st.sampled_from(["1", "2"]),
            "time": st.sampled_from([0.0, DAY - 0.5, DAY, 2.0 * DAY]),
            "link": st.just("https://example.org/1"),
            "product": st.sampled_from(["Router", "Screen"]),  # a field of the user's own
            "severity": st.sampled_from(["high", "low"]),
        },
    ),
    max_size=20,
)


@settings(max_examples=20)
@given(MESSAGES, MESSAGES, st.integers(1, 5))
def test_a_filter_leaves_out_what_does_not_meet_it(tmp_path_factory, first, second, top_k):
    numbered = [f"{number}" for number in range(len(first) + len(second))]
    index = create_index(
        tmp_path_factory.mktemp("any") / "index", ABOUT, [part(numbered[: len(first)], first)]
    )
    index.add_encoded([part(numbered[len(first) :], second, 1)])
    gone, known = numbered[::7], dict(zip(numbered, first + second, strict=True))
    index.delete(gone)
    whole = searches(index, None, 100)
    for where, meets in (
        ({"author": "ANN"}, lambda one: one.get("author") == "Ann"),
        ({"author": ["smith, j.", "bob"]}, lambda one: one.get("author") in ("Smith, J.", "bob")),
        (
            {"source": "help", "since": "1970-01-02"},
            lambda one: one.get("source") == "Help" and one.get("time", -1) >= DAY,
        ),
        (
            {"product": "router", "severity": ["low", "high"]},
            lambda one: one.get("product") == "Router" and "severity" in one,
        ),
        ({"until": datetime.date(1970, 1, 2)}, lambda one: 0 <= one.get("time", -1) < DAY),
    ):
        expected = {name for name, one in known.items() if meets(one) and name not in gone}
        try:
            found = searches(index, where, top_k)
        except InputError:  # no text has one of the values
            named = {str(one.get(key)).casefold() for one in known.values() for key in where}
            timed = {one.get("time") for one in known.values()} - {None}
            wanted = {
                str(value).casefold()
                for key in where
                if key in ("author", "source", "product", "severity")
                for value in ([where[key]] if isinstance(where[key], str) else where[key])
            }
            assert wanted - named or not timed
            continue
        for hits, every in zip(found[:2], whole, strict=False):
            assert hits == [hit for hit in every if hit[0] in expected][:top_k]
        _, by_words, both = searches(index, where, 100)
        assert {name for name, _ in both} == expected or not (by_words or both)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(registry, "WITHOUT_KERNELS", True)
            assert searches(index, where, top_k) == found
    about = {hit.id: hit.about for hit in index.nearest(np.eye(DIM, dtype=np.float32), 100)[0]}
    assert about == {name: one for name, one in known.items() if name not in gone}
    index.compact()
    assert [[hit[0] for hit in hits] for hits in searches(index, None, 100)] == [
        [hit[0] for hit in hits] for hits in whole
    ]


def test_approximate_search_loses_no_hit_by_a_filter(tmp_path, monkeypatch):
    pytest.importorskip("faiss")
    monkeypatch.setattr(lists, "LEAST_ROWS", 1_000)
    monkeypatch.setattr(lists, "_JUDGED", 64)
    about = [{"author": f"a{number % 100}"} for number in range(2_000)]
    index = create_index(tmp_path / "index", ABOUT, [part([str(n) for n in range(2_000)], about)])
    assert not index.is_exact
    query = -np.eye(DIM, dtype=np.float32)
    every = index.nearest(query, 2_000, exact=True)
    for author in ("a0", "a57"):
        found = index.nearest(query, 10, where={"author": author})
        expected = [[hit for hit in hits if hit.about["author"] == author][:10] for hits in every]
        assert found == expected


@pytest.mark.parametrize(
    ("where", "said"),
    [
        ({"colour": "red"}, "a colour .known: author, source, time"),
        ({"autor": "ann"}, "'autor'.*did you mean 'author'"),
        ({"author": "anna"}, "'anna' .did you mean 'ann'"),
        ({"author": []}, "author needs a value"),
        ({"author": 7}, "got 7"),
        ({"author": ["ann", None]}, "got None"),
        ({"thread": "1"}, "a thread .known: author, source, time"),
        ({"since": "yesterday"}, "'yesterday' is not a date"),
        ({"since": 7}, "got 7"),
        ({"since": ["2024-01-01", "2024-01-02"]}, "one date"),
        ({"since": "2024-01-01", "until": "2024-01-01"}, "later than since"),
    ],
)
def test_a_condition_that_no_text_can_meet_is_one_sentence(tmp_path, where, said):
    known = [{"author": "Ann", "source": "general", "time": 1.0}]
    index = create_index(tmp_path / "index", ABOUT, [part(["a"], known)])
    with pytest.raises(InputError, match=said):
        index.matching("one", where=where)


@pytest.mark.parametrize("key", ["author", "since"])
def test_texts_that_are_not_messages_have_no_filters(tmp_path, key):
    index = create_index(tmp_path / "index", ABOUT, [part(["a"], ())])
    assert not list((tmp_path / "index").rglob("fields"))
    with pytest.raises(InputError, match="messages of an export"):
        index.matching("one", where={key: "2024-01-01"})


@pytest.mark.parametrize("name", ["fields", "values.bin"])
def test_a_changed_column_is_noticed(tmp_path, name):
    known = [{"author": "Ann", "time": 1.0}]
    index = create_index(tmp_path / "index", ABOUT, [part(["a"], known)])
    path = tmp_path / "index/000001" / name
    path.write_bytes(bytes([path.read_bytes()[0] ^ 1]) + path.read_bytes()[1:])
    with pytest.raises(InputError, match="SHA-256"):
        index.matching("one", where={"author": "ann", "since": "1970-01-01"})


@pytest.mark.parametrize(
    ("typed", "text", "where"),
    [
        ("night train", "night train", {}),
        ('"night train" -bus', "night train", {"phrase": ["night train"], "without": ["bus"]}),
        ('a bill from:"Ann B." in:pub', "a bill", {"author": ["Ann B."], "source": ["pub"]}),
        ("rain after:2024-01-01", "rain", {"since": ["2024-01-01"]}),
        ("rain before:2024-02-01", "rain", {"until": ["2024-02-01"]}),
        ("recipes has:link", "recipes", {"has": ["link"]}),
        ("it was -5 at night - and e-mail re:this", "it was -5 at night - and e-mail re:this", {}),
        ('he said "yes', 'he said "yes', {}),
    ],
)  # fmt: skip
def test_what_people_type_is_read(typed, text, where):
    assert read_query(typed) == (text, where)


def test_conditions_alone_are_no_query():
    with pytest.raises(InputError, match="only conditions"):
        read_query("from:ann")


TEXTS = [
    "We took the night train to Rome.",
    "The train left at night.",
    "Night trains are listed at https://trains.example/.",
    "The bus was late.",
]


@pytest.fixture(scope="module")
def words(tmp_path_factory):
    return Index.create(tmp_path_factory.mktemp("words") / "index", TEXTS, "rejoinder-small")


@pytest.mark.parametrize("mode", ["semantic", "words", "hybrid"])
@pytest.mark.parametrize(
    ("where", "ids"),
    [
        ({"phrase": "night train"}, {"1"}),
        ({"phrase": ["Night", "Rome"]}, {"1"}),
        ({"without": "trains"}, {"4"}),
        ({"without": ["rome", "https"]}, {"2", "4"}),
        ({"has": "link"}, {"3"}),
        ({"phrase": "flight"}, set()),
    ],
)
def test_texts_are_read_for_words(words, mode, where, ids):
    found = {hit.id for hit in words.search("train, bus", 10, mode=mode, where=where)[0]}
    assert found == (ids if mode != "words" else found)
    assert found <= ids


def test_what_is_not_known_of_a_text_is_named(words):
    with pytest.raises(InputError, match="has must be link; got 'file'"):
        words.search("train", where={"has": "file"})
    with pytest.raises(InputError, match="only work in a search of an index"):
        cluster(words.folder, where={"phrase": "night"})
