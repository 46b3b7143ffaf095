"""Evaluation sentences in training text."""

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rejoinder.datasets.sts import read_stsb
from rejoinder.errors import InputError
from rejoinder.leaks import EvaluationHashes, build, comparable, sentence_hashes, shipped
from rejoinder.text.normalize import as_series


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


def test_unknown_sets_are_refused_and_none_contain_nothing():
    with pytest.raises(InputError, match="did you mean 'stsb-test'"):
        EvaluationHashes.load(["stsb-tets"])
    assert not EvaluationHashes.load([]).contains(pl.Series(["a", ""])).any()


def test_the_shipped_list_covers_the_sets():
    sizes = {name: len(hashes) for name, hashes in shipped().items()}
    assert sizes["stsb-dev"] == 2_907
    assert sizes["stsb-test"] == 2_550
    assert {"sts12", "sts13", "sts14", "sts15", "sts2017"} <= sizes.keys()


@pytest.mark.shared_data
def test_the_shipped_list_can_be_built_again(shared_data):
    built, known = build(shared_data), shipped()
    assert built.keys() == known.keys()
    assert all(np.array_equal(built[name], known[name]) for name in built)
    hashes = EvaluationHashes.load(["stsb-test"])
    for form in ("official", "senteval"):
        pairs = read_stsb(shared_data, "test", form)
        assert hashes.contains(as_series([*pairs.first, *pairs.second])).all()
    assert not hashes.contains(pl.Series(["yes", "how old are you?"])).any()
