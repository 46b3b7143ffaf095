"""Some inputs of each area of `benchmarks/fuzz.py`: accepted, or refused in a sentence."""

from importlib.util import find_spec
from random import Random

import pytest

from fuzzing import (
    bombs,
    config,
    dump_files,
    exports,
    index_folders,
    index_lists,
    index_texts,
    left_overs,
    links,
    requests,
    results,
    rules,
    run_folders,
    texts,
)

_NEEDS_FAISS = [
    pytest.mark.skipif(find_spec("faiss") is None, reason="FAISS is not installed"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
]


@pytest.mark.filterwarnings("error::RuntimeWarning")
@pytest.mark.parametrize(
    ("area", "inputs"),
    [
        (config, 150),
        (texts, 100),
        (results, 30),
        (run_folders, 20),
        (left_overs, 40),
        (links, 100),
        pytest.param(bombs, 6, marks=pytest.mark.slow),
        (rules, 150),
        (dump_files, 60),
        (exports, 75),
        (index_texts, 150),
        (index_folders, 60),
        pytest.param(index_lists, 60, marks=_NEEDS_FAISS),
        (requests, 150),
    ],
)
def test_what_nobody_should_write_is_accepted_or_refused(area, inputs, tmp_path):
    check = area.checker(tmp_path)
    accepted = [check(Random(f"test/{number}")) for number in range(inputs)]  # raises for a find
    assert {True, False} == set(accepted)


@pytest.mark.parametrize(
    ("area", "found"),
    [
        (dump_files, "2/dump files/202"),  # Polars panics at a type of Parquet
        # index.json said to probe by names that are none, by text, by 0 and by 2**63 lists
        pytest.param(index_lists, "0/index lists/2809", marks=_NEEDS_FAISS),
        pytest.param(index_lists, "0/index lists/2814", marks=_NEEDS_FAISS),
        pytest.param(index_lists, "0/index lists/2817", marks=_NEEDS_FAISS),
        pytest.param(index_lists, "0/index lists/2957", marks=_NEEDS_FAISS),
        pytest.param(index_lists, "0/index lists/2862", marks=_NEEDS_FAISS),
    ],
)
def test_what_was_found_is_refused(area, found, tmp_path):
    assert not area.checker(tmp_path)(Random(found))
