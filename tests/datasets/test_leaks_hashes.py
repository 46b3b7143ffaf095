"""Hashes of evaluation sentences and pairs, and the shipped list of them."""

import hashlib

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evaluation_hashes import build
from rejoinder.datasets.labelled import read_binary, read_sst
from rejoinder.datasets.leaks import (
    EvaluationHashes,
    comparable,
    pair_hashes,
    sentence_hashes,
    shipped,
)
from rejoinder.datasets.semeval import read_cqa, read_stsb
from rejoinder.errors import InputError
from rejoinder.evaluation.tasks.ranking import TEXTS
from rejoinder.text.columns import as_series


def slow_hash(text: str) -> int:
    """The definition, a byte at a time."""
    mask, content = 2**64 - 1, comparable(pl.Series([text])).item(0).encode()
    if not 0 < len(content) <= 1_024:
        return 0
    value = sum((b + 1) * pow(0x9E3779B97F4A7C15, i, 2**64) for i, b in enumerate(content, 1))
    value &= mask
    value = ((value ^ (value >> 30)) * 0xBF58476D1CE4E5B9) & mask
    value = ((value ^ (value >> 27)) * 0x94D049BB133111EB) & mask
    return value ^ (value >> 31)


@settings(max_examples=30)
@given(st.lists(st.text(max_size=30), min_size=1, max_size=9))
def test_hashes_are_those_of_the_definition(texts):
    column = as_series(texts)
    assert sentence_hashes(column).tolist() == [slow_hash(text) for text in column]


def test_the_hash_never_changes():
    texts = pl.Series(["A man is playing a guitar.", "", "x" * 2_000, "中文 ½"])
    assert sentence_hashes(texts).tolist() == [slow_hash(text) for text in texts]
    assert sentence_hashes(texts).tolist()[0] == 0x0 + slow_hash("a man is playing a guitar")


def test_forms_of_one_sentence_are_one():
    texts = pl.Series(["A man's dog, it is.", "a man 's dog , it is ."])
    one, other = sentence_hashes(texts)
    assert one == other != 0


def test_arabic_is_compared_without_what_may_be_left_out():
    written, plain = sentence_hashes(pl.Series(["كِتَابٌ جــديد", "كتاب جديد"]))
    assert written == plain != 0


def test_unknown_sets_are_refused_and_none_contain_nothing():
    with pytest.raises(InputError, match="did you mean 'stsb-test'"):
        EvaluationHashes.load(["stsb-tets"])
    assert not EvaluationHashes.load([]).contains(pl.Series(["a", ""])).any()


SENTENCES = st.lists(st.tuples(st.text(max_size=20), st.text(max_size=20)), min_size=1, max_size=9)


def slow_pair(first: int, second: int) -> int:
    """The definition of a pair's hash."""
    if not (first and second):
        return 0
    mask = 2**64 - 1
    value = (min(first, second) * 0x9E3779B97F4A7C15 + max(first, second)) & mask
    value = ((value ^ (value >> 30)) * 0xBF58476D1CE4E5B9) & mask
    value = ((value ^ (value >> 27)) * 0x94D049BB133111EB) & mask
    return value ^ (value >> 31)


@settings(max_examples=30)
@given(SENTENCES)
def test_pairs_have_the_hash_of_the_definition_in_either_order(pairs):
    first, second = (as_series(side) for side in zip(*pairs, strict=True))
    hashes = pair_hashes(first, second)
    assert hashes.tolist() == pair_hashes(second, first).tolist()
    assert hashes.tolist() == [
        slow_pair(slow_hash(a), slow_hash(b)) for a, b in zip(first, second, strict=True)
    ]


@settings(max_examples=30)
@given(SENTENCES, st.sampled_from([str.upper, str.title, lambda text: f" ({text})!  "]))
def test_case_spaces_and_punctuation_change_no_hash(pairs, change):
    plain = [text for pair in pairs for text in pair if text.isascii()]
    changed = [change(text) for text in plain]
    assert sentence_hashes(as_series(changed)).tolist() == [slow_hash(text) for text in plain]


def test_different_pairs_of_the_same_sentences_differ():
    texts = pl.Series(["a", "b", "c", "d"])
    one, other = (
        pair_hashes(texts[[0, 2]], texts[[1, 3]]),
        pair_hashes(texts[[0, 1]], texts[[3, 2]]),
    )
    assert len({*one.tolist(), *other.tolist()}) == 4


DIGESTS = {
    "sts12": "2dd595ba3d60dc60",
    "sts13": "ab81f465d6df53be",
    "sts14": "de73100217d359a6",
    "sts15": "d8158c21bfa88d9e",
    "sts2017": "ebf00227eb8e7185",
    "stsb-dev": "7bfe685b4689aa88",
    "stsb-test": "6f4ab8012fa942cc",
    "stsb-train": "33972d32b2757724",
    "snli-dev": "4e9a4d87a492a34e",
    "snli-test": "42e4ba72bf7f40b2",
    "mrpc-test": "7dae804bce9d23e4",
    "cqa2016-dev": "bc19c3df89de2f63",
    "cqa2016-test": "dda8b4313c416d32",
    "mr": "c9568dee35596c87",
    "cr": "cfdd0c00dc6ff4b8",
    "subj": "bbc226b005087b6c",
    "sst2-dev": "5ee6555c73d37e40",
    "sst2-test": "ab526cff65c02023",
    "trec-test": "8a89eb4337e6cd6d",
    "sts2017-languages": "1e97a46d79e3ae0a",
    "flores200": "a9bc7572af79c5e2",
    "semrel-ar-test": "11b91a9061253b36",
    "semrel-es-dev": "123214a2da3d857b",
    "semrel-ar-dev": "abf6180bf33e53db",
    "twitter-url-test": "2c2f738dbb58540a",
    "banking77-test": "1370d7792084273a",
    "semrel-en-dev": "5c94043bdb123fac",
    "clinc150-test": "5d33eab74efefbf5",
}
"""Of the sentences of each shipped set: models name these sets, so they never change."""
SIZES = {
    "stsb-train": (10_510, 5_692),
    "stsb-dev": (2_907, 1_496),
    "stsb-test": (2_550, 1_377),
    "sts12": (4_939, 2_892),
    "sts13": (2_631, 1_499),
    "sts14": (6_342, 3_673),
    "sts15": (13_948, 8_389),
    "sts2017": (498, 250),
    "snli-dev": (12_935, 9_840),
    "snli-test": (12_910, 9_824),
    "mrpc-test": (3_388, 1_724),
    "cqa2016-dev": (1_448, 1_493),
    "cqa2016-test": (1_811, 2_073),
    "mr": (11_765, 0),
    "cr": (3_782, 0),
    "subj": (10_782, 0),
    "sst2-dev": (940, 0),
    "sst2-test": (1_953, 0),
    "trec-test": (500, 0),
    "sts2017-languages": (3_403, 1_709),
    "flores200": (7_085, 0),
    "semrel-ar-test": (1_180, 595),
    "semrel-es-dev": (263, 132),
    "semrel-ar-dev": (64, 32),
    "twitter-url-test": (8_918, 8_712),
    "banking77-test": (3_081, 0),
    "semrel-en-dev": (500, 250),
    "clinc150-test": (4_499, 0),
}
SINGLE = ("mr", "cr", "subj", "sst2-dev", "sst2-test", "trec-test", "flores200", "banking77-test",
          "clinc150-test")  # fmt: skip
"""Sets of single sentences, which have no pairs."""


def test_the_shipped_list_covers_the_sets():
    sets = shipped()
    assert {name: (len(one.sentences), len(one.pairs)) for name, one in sets.items()} == SIZES
    for one in sets.values():
        assert bool(len(one.pairs)) is (one.name not in SINGLE)
        for hashes in (one.sentences, one.pairs):
            assert hashes.dtype == np.uint64
            assert (np.diff(hashes) > 0).all()
            assert (hashes[:1] > 0).all()


def test_the_shipped_sets_are_what_they_were():
    sets = shipped()
    found = {name: hashlib.sha256(sets[name].sentences.tobytes()).hexdigest() for name in DIGESTS}
    assert {name: digest[:16] for name, digest in found.items()} == DIGESTS


@pytest.mark.slow
@pytest.mark.shared_data
def test_the_shipped_list_can_be_built_again(shared_data):
    built, known = build(shared_data), shipped()
    assert built.keys() == known.keys()
    for name, one in built.items():
        assert np.array_equal(one.sentences, known[name].sentences)
        assert np.array_equal(one.pairs, known[name].pairs)
    hashes = EvaluationHashes.load(["stsb-test"])
    for form in ("official", "senteval"):
        pairs = read_stsb(shared_data, "test", form)
        first, second = as_series(pairs.first), as_series(pairs.second)
        assert hashes.contains(pl.concat([first, second])).all()
        assert hashes.contains_pairs(second, first).all()
        assert hashes.contains_pairs(first, second.reverse()).mean() < 0.01
    assert not hashes.contains(pl.Series(["yes", "how old are you?"])).any()


@pytest.mark.shared_data
def test_questions_are_found_by_each_part_and_with_each_part(shared_data):
    for split in ("dev", "test"):
        hashes = EvaluationHashes.load([f"cqa2016-{split}"])
        for query in read_cqa(shared_data, "2016", split).queries:
            for part in TEXTS:
                related = [one.text(part) for one in query.related if one.text(part)]
                original = query.original.text(part)
                assert hashes.contains(as_series([original, *related])).all()
                assert hashes.contains_pairs(
                    as_series([original] * len(related)), as_series(related)
                ).all()


@pytest.mark.shared_data
def test_tokenised_sentences_are_found_in_the_form_of_their_authors_too(shared_data):
    hashes = EvaluationHashes.load(["mr", "sst2-test"])
    reviews = [
        *read_binary(shared_data, "MR").splits["all"].first,
        *read_sst(shared_data, classes=2).splits["test"].first,
    ]
    texts = as_series(reviews)
    for changed, rows in (
        (texts.str.replace_all(" n't", "n't", literal=True), 900),
        (texts.str.replace_all("M-i", "é", literal=True), 50),
    ):
        chosen = (changed != texts) & ~texts.str.contains(r"M-[^i]|\bcan not\b|\b(go|wa)n na\b")
        chosen &= ~changed.str.contains(" n't|M-i|got ta")
        assert chosen.sum() > rows
        assert hashes.contains(texts.filter(chosen)).all()
        assert hashes.contains(changed.filter(chosen)).all()
