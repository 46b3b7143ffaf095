"""The kernels in C against Polars, DuckDB and Python: the same rows, facts, strings and joins."""

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from unittest.mock import patch

import numpy as np
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rejoinder.corpus import query
from rejoinder.corpus.engines.local.hashes import places
from rejoinder.corpus.engines.local.reading import Classifier, Database
from rejoinder.corpus.engines.local.rows import Rows
from rejoinder.corpus.options import Filters
from rejoinder.corpus.reading.json_lines import ParsedBlock, lines_of, parse_block
from rejoinder.corpus.reading.strings import (
    Chosen,
    Strings,
    as_strings,
    gather,
    hashes,
    same,
    sorted_runs,
)
from rejoinder.corpus.reading.texts import clean_and_letters
from rejoinder.corpus.rules import profile
from rejoinder.corpus.schema import COMMENTS
from rejoinder.kernels import kernel

needs_kernel = pytest.mark.skipif(
    kernel("corpus.reading._comments") is None, reason="the kernel is not built"
)


@contextmanager
def without_kernel() -> Iterator[None]:
    with patch.dict(os.environ, REJOINDER_NATIVE="0"):
        yield


texts = st.text(st.sampled_from('aZé 中😀\u2003\x85\u200b&;"\\/\t\n\x01{}[],:t1_.0'), max_size=20)
numbers = st.one_of(
    st.integers(-(10**20), 10**20), st.floats(), st.sampled_from([0, -0.0, 2.0, 1e300])
)
values = st.recursive(
    st.one_of(st.none(), st.booleans(), numbers, texts),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=6,
)
objects = st.dictionaries(st.sampled_from(["id", "body", "parent_id", "other", 'k"é']), values)


@st.composite
def json_line(draw: st.DrawFn) -> bytes:
    """A line of JSON, written in one of the ways that are allowed, or damaged."""
    spaces = draw(st.sampled_from([(",", ":"), (", ", ": "), (" ,\t", " :  ")]))
    escaped = draw(st.booleans())
    line = json.dumps(draw(objects), ensure_ascii=escaped, separators=spaces)
    line = draw(st.sampled_from(["", " ", "\t"])) + line + draw(st.sampled_from(["", " ", "\r"]))
    if draw(st.integers(0, 5)) == 0:  # a repeated key, half a pair, a control character, an escape
        bad = ['{"id":1,"id":2,', '{"id":"\\ud83d",', '{"body":"\t",', '{"body":"\\u0041\\/",', "{"]
        line = line.replace("{", draw(st.sampled_from(bad)), 1)
    content = line.encode("utf-8", "surrogatepass")
    if draw(st.integers(0, 5)) == 0 and content:
        place = draw(st.integers(0, len(content) - 1))
        content = content[:place] + draw(st.binary(max_size=2)) + content[place + 1 :]
    return content


def as_read(block: bytes) -> ParsedBlock:
    return parse_block(block, ("id", "body", "parent_id"), ("id", "body"), "RC.jsonl", 5)


@needs_kernel
@settings(deadline=None)
@given(st.lists(json_line(), max_size=6).map(b"\n".join))
def test_every_line_reads_as_without_the_kernel(block):
    found = as_read(block)
    with without_kernel():
        expected = as_read(block)
    assert found.table.equals(expected.table)
    assert list(found.numbers) == list(expected.numbers)
    assert found.malformed == expected.malformed


@needs_kernel
def test_plain_lines_are_read_by_the_kernel():
    block = b'{"id":"a","body":"\\u00e9 \\ud83d\\ude00\\n","x":[{"y":-1.5e3}]}\n'
    block += b'\n{"parent_id":7,"id":"b","body":null}\n'
    columns, plain, refused = kernel("corpus.reading._comments").json_fields(
        block, ("id", "body", "parent_id"), 1
    )
    assert np.frombuffer(plain, np.int64).tolist() == [1, 3]
    assert bytes(refused) == b""
    text = ("é 😀\n".encode(), np.int64([0, 8, 8]).tobytes(), b"\x01\x00")
    assert tuple(map(bytes, columns[1])) == text
    assert bytes(columns[2][0]) == b"7"


@needs_kernel
@settings(deadline=None)
@given(st.lists(texts, max_size=8))
def test_texts_have_the_same_facts(found):
    # a slice, whose first string is not at the beginning of its memory
    array = pa.array(["skipped", *found], pa.large_string())[1:]
    clean, letters = clean_and_letters(array)
    with without_kernel():
        expected, counted = clean_and_letters(array)
    assert clean.equals(expected)
    assert letters.tolist() == counted.tolist()


@settings(deadline=None)
@given(
    st.lists(st.lists(texts, min_size=1, max_size=4), min_size=1, max_size=4),
    st.sampled_from(["", "t1_"]),
    st.data(),
)
def test_strings_are_gathered_from_several_columns(columns, prefix, data):
    places = [(which, row) for which, column in enumerate(columns) for row in range(len(column))]
    chosen = data.draw(st.lists(st.sampled_from(places), max_size=9))
    which, rows = np.array(chosen or np.empty((0, 2)), np.uint32).T.copy()
    strings = [as_strings(pl.Series(["skipped", *one])[1:]) for one in columns]
    expected = [columns[column][row].removeprefix(prefix) for column, row in chosen]
    assert gather(strings, which, rows, prefix).to_polars().to_list() == expected
    with without_kernel():
        assert gather(strings, which, rows, prefix).to_polars().to_list() == expected


@needs_kernel
def test_rows_outside_of_a_column_are_refused():
    column = as_strings(pl.Series(["a", "b"]))
    for which, row in ((0, 2), (1, 0)):
        with pytest.raises(IndexError, match=f"no row {row} in column {which}"):
            gather([column], np.uint32([which]), np.uint32([row]))


@needs_kernel
@given(st.lists(json_line(), max_size=6).map(b"\n".join))
def test_lines_are_counted(block):
    found = lines_of(block)
    assert found == (len(block.removesuffix(b"\n").split(b"\n")) if block else 0)
    with without_kernel():
        assert lines_of(block) == found


PAPER = profile("paper")
references = st.sampled_from(
    ["", "a", "b", "t1_a", "t1_b", "t1_", "t3_a", "t3_", "t1_t3_a", "t", "é"]
)


@needs_kernel
@settings(deadline=None)
@given(st.lists(st.tuples(references, *[st.none() | references] * 2), max_size=8))
def test_comments_have_the_keys_that_the_query_gives_them(found):
    # a comment without a thread can't be parted
    found = [comment for comment in found if comment[2] not in (None, "", "t3_")]
    strings = {name: pa.array([""] * len(found), pa.large_string()) for name in COMMENTS}
    for name, values in zip(("id", "parent", "thread"), zip(*found, strict=True), strict=False):
        strings[name] = pa.array(values, pa.large_string())
    strings["letters"] = pa.array([0] * len(found), pa.int32())
    batch = pa.record_batch([strings[name] for name in COMMENTS], list(COMMENTS))

    def classified() -> Rows:
        select = partial(query.classified, rules=PAPER, filters=Filters())
        return Classifier(Database(), select, [rule.name for rule in PAPER])(batch)[0]

    rows = classified()
    with without_kernel():
        expected = classified()
    assert rows.answers.tolist() == expected.answers.tolist()
    answers = rows.answers
    # the hashes are others, but the same of them are equal
    mine = np.concatenate([rows.id, rows.parent[answers], rows.thread])
    theirs = np.concatenate([expected.id, expected.parent[answers], expected.thread])
    assert (mine[:, None] == mine).tolist() == (theirs[:, None] == theirs).tolist()


def test_regular_ids_have_different_hashes():
    ids = [
        f"{name}_{thread:06d}_{number:03d}"
        for name in ("southpark", "t", "a-longer-name-of-a-set")
        for thread in range(3_000)
        for number in range(20)
    ]
    strings = as_strings(pl.Series(ids))
    assert len(np.unique(hashes(strings))) == len(ids)
    with without_kernel():
        assert len(np.unique(hashes(strings))) == len(ids)


@given(
    st.lists(st.integers(0, 2**64 - 1), unique=True, max_size=20),
    st.lists(st.integers(0, 2**64 - 1), max_size=5),
    st.data(),
)
def test_hashes_are_found(present, others, data):
    asked = data.draw(st.lists(st.sampled_from([*present, *others, 0]), max_size=20))
    found = places(np.array(present, np.uint64), np.array(asked, np.uint64))
    assert found.tolist() == [present.index(one) if one in present else -1 for one in asked]
    with without_kernel():
        again = places(np.array(present, np.uint64), np.array(asked, np.uint64))
    assert again.tolist() == found.tolist()


def chosen_of(values: list[str]) -> Chosen:
    """Chooses values from two columns, in which they stand in another order."""
    columns: list[Strings] = [as_strings(pl.Series(["", *values[half::2]])) for half in range(2)]
    index = np.arange(len(values), dtype=np.uint32)
    return Chosen(columns, index % 2, index // 2 + 1)


@settings(deadline=None)
@given(st.lists(st.lists(texts, max_size=6), min_size=1, max_size=5))
def test_runs_of_strings_are_sorted(runs):
    values = [text for run in runs for text in run]
    starts = np.cumsum([0, *map(len, runs)])
    expected = [text for run in runs for text in sorted(run, key=str.encode)]
    assert [values[row] for row in sorted_runs(chosen_of(values), starts)] == expected
    with without_kernel():
        assert [values[row] for row in sorted_runs(chosen_of(values), starts)] == expected


@given(st.lists(texts, max_size=6), st.lists(texts, max_size=6))
def test_strings_are_compared(first, second):
    for other, expected in ((second, first == second), (list(first), True)):
        assert same(chosen_of(first), chosen_of(other)) is expected
        with without_kernel():
            assert same(chosen_of(first), chosen_of(other)) is expected


@needs_kernel
def test_joins_refuse_what_does_not_fit():
    native = kernel("corpus.reading._join")
    column = as_strings(pl.Series(["a", "b"]))
    chosen = Chosen([column], np.uint32([0, 0]), np.uint32([0, 1]))
    for starts in ([0, 1], [0, 3], [1, 2], [0, 2, 1, 2], []):
        with pytest.raises(ValueError, match="runs"):
            native.sorted_runs(chosen, np.array(starts, np.int64))
    with pytest.raises(ValueError, match="runs"):
        native.sorted_runs(chosen._replace(rows=np.uint32([0, 2])), np.array([0, 2]))
    with pytest.raises(ValueError, match="three columns"):
        native.keys([column, column])
    assert not same(chosen, chosen._replace(rows=np.uint32([0, 2])))
