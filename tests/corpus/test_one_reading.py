"""A comment means the same whatever the other lines hold, and in every format."""

import csv
import io
import json
from pathlib import Path
from random import Random
from typing import Any

import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dumps import comment, lines
from fuzzing.dumps import check_line_by_line, check_with_malformed, ended, parse
from fuzzing.json_lines import json_lines, malformed_line
from rejoinder.corpus.options import Columns, ExtractOptions, as_columns
from rejoinder.corpus.reading.columns import Parsed, as_comments
from rejoinder.corpus.reading.readers import Report, read_comments


@settings(max_examples=60)
@given(st.integers(0, 2**32))
def test_a_malformed_line_changes_no_other_line(seed):
    random = Random(seed)
    check_with_malformed(json_lines(random), malformed_line(random))


@settings(max_examples=50)
@given(st.integers(0, 2**32))
def test_a_line_means_the_same_alone_as_in_its_file(seed):
    check_line_by_line(json_lines(Random(seed)))


def test_a_large_block_is_read_as_its_lines_are():
    random = Random(5)
    content = b"".join(ended(json_lines(random)) for _ in range(150))
    good = [line for line in content.split(b"\n") if not parse(line, 2).malformed]
    block = b"\n".join(good * 60) + b"\n"
    whole, others = parse(block, 2), parse(block + b"{}\n", 2)
    assert len(block) > 1 << 20
    assert others.table.equals(whole.table)
    one_by_one = [row for line in good for row in parse(line, 2).table.to_pylist()]
    assert whole.table.to_pylist() == one_by_one * 60


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("2.0", "2"), ("-0.0", "-0"), ("1e3", "1000"), ("2.5", "2.5"), ("1e-7", "0.0000001"),
        ("9007199254740993", "9007199254740993"), ("7" * 60, "7" * 60), ("1e400", None),
        (str(2**128 - 1), str(2**128 - 1)), (str(2**128), str(2**128)), ("true", "true"),
        ("NaN", None), ("-Infinity", None), ("null", None), ("[1, 2.0]", "[1, 2.0]"),
        (r'"half \ud83d"', "half \ufffd"), (r'"\ude00\ud83d"', "\ufffd\ufffd"),
        (r'"joined \ud83d\uff01"', "joined \ufffd\uff01"), (r'"\udbff\ue000"', "\ufffd\ue000"),
        ('"a\tb"', "a\tb"),
        (r'"\u0000"', "\0"), ('"a\u2028b"', "a\u2028b"), ('1, "author": 2', "1"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("end", ["\n", "\r\n", "\n{}\n", "\nnull\n", "\ufeff"])
def test_what_a_value_reads_as(value, text, end):
    line = f'{{"id": "a", "body": "b", "author": {value}}}'
    content = end + line if end == "\ufeff" else line + end
    parsed = parse(content.encode())
    assert parsed.table["author"].to_pylist() == [text]


@pytest.mark.parametrize("depth", [30, 40, 800, 100_000])
def test_depth_is_decided_by_one_reader(depth):
    line = b'{"id": "a", "body": "b", "extra": ' + b"[" * depth + b"]" * depth + b"}\n"
    alone, others = parse(line), parse(line + b"{}\n")
    assert len(alone.table) == len(others.table) == (depth < 1_000)
    assert alone.malformed == others.malformed[:-1]


def test_a_float_parent_meets_its_comment_next_to_a_malformed_line(run):
    rows = [comment(str(n), "Words enough", str(n - 1) if n > 1 else "t3_p") for n in range(1, 5)]
    for row in rows[1:]:
        row["parent_id"] = float(row["parent_id"])
    manifest, pairs = run(lines(*rows), rules="none")
    assert len(pairs) == 3
    manifest, again = run(lines(*rows) + b"{cut\n", rules="none")
    assert again.equals(pairs)
    assert manifest.counts.malformed == 1


def read(path: Path, columns: Columns) -> list[dict[str, Any]]:
    options = ExtractOptions(columns=columns)
    pieces = read_comments([path], options, Report(), lambda batch: batch)
    return pa.Table.from_batches(list(pieces)).to_pylist()


COLUMNS = as_columns("id=n,parent=to,text=says,author=who")
ids = st.one_of(
    st.integers(-(2**63), 2**63 - 1),
    st.floats(allow_nan=False, allow_infinity=False),
    st.integers(-(2**53), 2**53).map(float),
)


@settings(max_examples=30)
@given(st.lists(st.tuples(ids, st.none() | ids, st.none() | st.booleans()), min_size=1, max_size=9))
def test_parquet_and_json_lines_agree(tmp_path_factory, rows):
    folder = tmp_path_factory.mktemp("formats")
    if any(isinstance(value, float) for row in rows for value in row[:2]):  # a column has one type
        rows = [(float(n), None if to is None else float(to), who) for n, to, who in rows]
    named = [{"n": n, "to": to, "says": "words", "who": who} for n, to, who in rows]
    pl.DataFrame(named, infer_schema_length=None).write_parquet(folder / "a.parquet")
    (folder / "a.jsonl").write_bytes(lines(*named))
    assert read(folder / "a.parquet", COLUMNS) == read(folder / "a.jsonl", COLUMNS)


words = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=9)


@settings(max_examples=30)
@given(
    st.lists(
        st.tuples(words, st.sampled_from(["", "1", "2.0", "-0"]), words, words),
        min_size=1,
        max_size=9,
    )
)
def test_text_is_the_same_in_every_format(tmp_path_factory, rows):
    folder = tmp_path_factory.mktemp("formats")
    names = ("n", "to", "says", "who")
    named = [dict(zip(names, row, strict=True)) for row in rows]
    schema = dict.fromkeys(names, pl.String)
    pl.DataFrame(named, schema=schema).write_parquet(folder / "a.parquet")
    (folder / "a.jsonl").write_bytes(lines(*named))
    for name, separator in (("a.csv", ","), ("a.tsv", "\t"), ("a.txt", ";")):
        held = io.StringIO(newline="")
        writer = csv.writer(held, delimiter=separator, quoting=csv.QUOTE_ALL)
        writer.writerows([names, *rows])
        (folder / name).write_text(held.getvalue(), "utf-8", newline="")
    expected = read(folder / "a.jsonl", COLUMNS)
    for name in ("a.csv", "a.tsv", "a.txt", "a.parquet"):
        assert read(folder / name, COLUMNS) == expected


def test_whole_numbers_are_ids_in_every_format(run, tmp_path):
    rows = [{"n": 1.0, "to": None, "says": "one"}, {"n": 2.0, "to": 1.0, "says": "two"}]
    (tmp_path / "a.csv").write_text("n,to,says\n1,,one\n2,1.0,two\n")
    (tmp_path / "a.jsonl").write_text("\n".join(map(json.dumps, rows)))
    frame = pl.DataFrame(rows)
    frame.write_parquet(tmp_path / "a.parquet")
    frame.with_columns(pl.col("n").cast(pl.Decimal(10, 2))).write_parquet(tmp_path / "b.parquet")
    columns = as_columns("id=n,parent=to,text=says")
    for name in ("a.csv", "a.jsonl", "a.parquet", "b.parquet"):
        _, pairs = run(tmp_path / name, columns=columns, rules="none")
        assert pairs.select("input_id", "response_id").rows() == [("1", "2")]


def test_a_missing_number_of_a_table_is_no_id(tmp_path):
    nan = float("nan")
    frame = pl.DataFrame({"n": [1.0, nan, 3.0], "to": [nan, 1.0, 1.0], "says": ["a", "b", None]})
    frame.write_parquet(tmp_path / "a.parquet")
    rows = [dict(zip(frame.columns, row, strict=True)) for row in frame.rows()]
    (tmp_path / "a.jsonl").write_text("\n".join(map(json.dumps, rows)))  # NaN as Python writes it
    for name in ("a.parquet", "a.jsonl"):
        report = Report()
        options = ExtractOptions(columns=as_columns("id=n,parent=to,text=says"))
        [batch] = read_comments([tmp_path / name], options, report, lambda batch: batch)
        assert batch.select(["id", "parent"]).to_pylist() == [{"id": "1", "parent": None}]
        assert [(bad.line, bad.problem) for bad in report.malformed] == [
            (2, "no 'n'"),
            (3, "no 'says'"),
        ]


def test_ids_keep_what_is_no_whole_number():
    values = ["v2.0", "1e3", "2.5", "1.2.0", ".0", "t1_2.0", "2.", "-3.000"]
    strings = pa.array(values, pa.large_string())
    table = pa.table({"n": strings, "to": strings, "says": strings})
    parsed = Parsed(table, range(len(values)), ())
    found = as_comments(parsed, as_columns("id=n,parent=to,text=says"), "a")
    kept = ["v2.0", "1e3", "2.5", "1.2.0", ".0", "2", "2.", "-3"]
    assert found["id"].to_pylist() == kept
    assert found["parent"].to_pylist() == [*kept[:5], "t1_2", *kept[6:]]
    assert found["text"].to_pylist() == values
