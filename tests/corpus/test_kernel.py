"""The kernels in C against Polars, DuckDB and Python: the same rows, facts, strings and joins."""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from typing import Any
from unittest.mock import patch

import numpy as np
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from rejoinder import registry
from rejoinder.cli.main import app
from rejoinder.corpus.engines.duckdb import QueryEngine
from rejoinder.corpus.engines.local.join import PairsInFiles, PairsInMemory
from rejoinder.corpus.options import ExtractOptions
from rejoinder.corpus.reading import columns, readers
from rejoinder.corpus.reading.columns import Parsed, as_strings, clean_and_letters, gather
from rejoinder.corpus.reading.readers import parse_block
from rejoinder.registry import kernel

needs_kernel = pytest.mark.skipif(
    kernel("corpus.reading._comments") is None, reason="the kernel is not built"
)


@contextmanager
def without_kernel() -> Iterator[None]:
    with patch.object(registry, "WITHOUT_KERNELS", True):
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


def as_read(block: bytes) -> Parsed:
    return parse_block(block, ("id", "body", "parent_id"), ("id", "body"), "RC.jsonl", 5)


@needs_kernel
@given(st.lists(json_line(), max_size=6).map(b"\n".join))
def test_every_line_reads_as_without_the_kernel(block):
    found = as_read(block)
    with without_kernel():
        expected = as_read(block)
    assert found.table.equals(expected.table)
    assert list(found.numbers) == list(expected.numbers)
    assert found.malformed == expected.malformed


@needs_kernel
def test_the_command_takes_the_fast_paths(tmp_path, small_dump, monkeypatch):
    """The kernels, pairs as rows in memory, fewer columns."""
    called: set[str] = set()

    def noted(function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any) -> Any:
            called.add(function.__name__)
            return function(*arguments)

        return call

    class Noted:
        def __init__(self, name: str) -> None:
            self.native = kernel(name)

        def __getattr__(self, name: str) -> Any:
            return noted(getattr(self.native, name))

    for module in (columns, readers):
        monkeypatch.setattr(module, "kernel", Noted)
    monkeypatch.setattr(PairsInMemory, "table", noted(PairsInMemory.table))
    monkeypatch.setattr(PairsInFiles, "write", noted(PairsInFiles.write))
    monkeypatch.setattr(QueryEngine, "extract", noted(QueryEngine.extract))
    told = CliRunner().invoke(app, ["extract", str(small_dump), "--out", str(tmp_path / "pairs")])
    assert told.exit_code == 0
    kernels_called = {"json_fields", "text_facts", "gather", "hashes", "order_in_runs"}
    assert called == {*kernels_called, "table"}
    assert "created" not in ExtractOptions().columns_read.names


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
@given(st.lists(texts, max_size=8))
def test_texts_have_the_same_facts(found):
    # a slice, whose first string is not at the beginning of its memory
    array = pa.array(["skipped", *found], pa.large_string())[1:]
    clean, letters = clean_and_letters(array)
    with without_kernel():
        expected, counted = clean_and_letters(array)
    assert clean.equals(expected)
    assert letters.tolist() == counted.tolist()


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
        with pytest.raises(IndexError, match=f"{row} .*{which}"):
            gather([column], np.uint32([which]), np.uint32([row]))


@given(st.lists(texts, max_size=8), st.sampled_from(["", "t1_"]))
def test_hashes_tell_strings_apart_whatever_stands_before_them(found, prefix):
    column = as_strings(pl.Series(["skipped", *found], dtype=pl.String)[1:])
    names = [text.removeprefix(prefix) for text in found]
    for way in (nullcontext, without_kernel):
        with way():
            hashes = column.hashes(prefix).tolist()
            assert as_strings(pl.Series(names, dtype=pl.String)).hashes().tolist() == hashes
        assert len(set(hashes)) == len(set(names))


@given(st.lists(texts, max_size=8))
def test_prefixes_are_found(found):
    column = as_strings(pl.Series(["skipped", *found], dtype=pl.String)[1:])
    assert column.starts_with(b"t1_").tolist() == [text.startswith("t1_") for text in found]


@given(st.lists(st.lists(texts, max_size=6), max_size=4))
def test_strings_are_sorted_within_their_runs(runs):
    starts = np.cumsum([0, *map(len, runs)])
    together = [text for run in runs for text in run]
    column = as_strings(pl.Series(["skipped", *together], dtype=pl.String)[1:])
    expected = [text for run in runs for text in sorted(run)]
    for way in (nullcontext, without_kernel):
        with way():
            assert [together[row] for row in column.order_in_runs(starts)] == expected


@needs_kernel
@pytest.mark.parametrize("starts", [[0, 1], [1, 2], [0, 2, 1, 2], []])
def test_runs_that_do_not_fit_the_strings_are_refused(starts):
    with pytest.raises(ValueError, match="runs"):
        as_strings(pl.Series(["a", "b"])).order_in_runs(np.array(starts, np.int64))
