"""The contract of engines: each reads comments, computes the same query, and writes the pairs."""

import gzip
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import ibis
import polars as pl
import pyarrow as pa
import pytest

from dumps import comment, lines
from rejoinder.corpus import query, writer
from rejoinder.corpus.engines import ENGINES, Extraction, Resources
from rejoinder.corpus.engines.duckdb import QueryEngine
from rejoinder.corpus.engines.spark import engine as spark_engine
from rejoinder.corpus.extract import extract
from rejoinder.corpus.options import Columns, ExtractOptions
from rejoinder.corpus.reading.columns import as_table
from rejoinder.corpus.reading.readers import Report
from rejoinder.corpus.writer import Written, write_shards
from rejoinder.errors import InputError

DUMP = lines(
    comment("a", "How are you?"),
    comment("b", "Fine, thanks", "t1_a"),
    comment("c", "[deleted]", "t1_a"),
    comment("d", "Answers nothing now", "t1_c"),
    comment("e", "Good &amp; sound  to hear", "t1_b"),
)
HUNDREDS = 100
"""Hundreds of pairs that fill four shards of `ROWS`: two of train, one of dev, one of test."""
ROWS = 8_192
"""Rows of a shard here: a whole one takes seconds."""


@pytest.fixture(
    params=[
        "duckdb",
        pytest.param("spark", marks=[pytest.mark.slow, pytest.mark.xdist_group("spark")]),
    ]
)
def engine(request, tmp_path) -> Iterator[QueryEngine]:
    """An engine that computes the query; the local one is compared by whole extractions."""
    if request.param == "spark":
        request.getfixturevalue("spark")
    opened = ENGINES[request.param](Resources(tmp_path))
    assert isinstance(opened, QueryEngine)
    yield opened
    opened.close()


@pytest.fixture
def read(engine, tmp_path) -> Callable[..., tuple[ibis.Table, Report]]:
    """Write dumps and let the engine read them."""

    def call(*dumps: bytes, columns: Columns | None = None, **options: Any):
        files = [tmp_path / f"RC-{number}.jsonl" for number in range(len(dumps))]
        for path, dump in zip(files, dumps, strict=True):
            path.write_bytes(dump)
        checked = ExtractOptions(columns=columns or Columns(), **options)
        return engine.read(Extraction(files, checked), lambda *_: None)

    return call


def write(
    engine: QueryEngine, pairs: ibis.Table, folder: Path, limit: int | None = None
) -> Written:
    folder.mkdir()
    return engine.write(pairs, limit, folder, lambda *_: None)


def rows_of(folder: Path, written: Written) -> list[tuple[Any, ...]]:
    return pl.concat(pl.read_parquet(folder / shard.file) for shard in written.shards).rows()


def test_the_query_gives_the_pairs_in_order(engine, read, tmp_path):
    table, report = read(DUMP)
    assert [(file.path.name, file.comments) for file in report.files] == [("RC-0.jsonl", 5)]
    parts = engine.keep("parts", query.splits(table, (95.0, 2.5, 2.5)))
    written = write(engine, query.pairs(table).join(parts, "thread_id"), tmp_path / "out")
    assert rows_of(tmp_path / "out", written) == [
        ("p", "a", "b", "How are you?", "Fine, thanks", "tests", "train"),
        ("p", "b", "e", "Fine, thanks", "Good & sound to hear", "tests", "train"),
    ]
    lost = engine.rows(query.lost_parents(table)).row(0)
    assert tuple(map(int, lost)) == (0, 1)


def test_the_counts_of_files_are_in_the_order_of_the_files(engine, read):
    bad = b'{"id": "x"}\nno JSON\n'
    table, report = read(bad + lines(comment("a", "One")), b"", bad * 30)
    assert [(file.comments, file.malformed) for file in report.files] == [(1, 2), (0, 0), (0, 60)]
    assert [(line.file, line.line) for line in report.malformed] == [
        ("RC-0.jsonl", 1),
        ("RC-0.jsonl", 2),
        *(("RC-2.jsonl", number) for number in range(1, 19)),
    ]
    assert report.malformed[0].problem == "no 'body'"
    assert engine.rows(table.select("id", "text")).rows() == [("a", "One")]


def test_each_column_must_be_in_one_of_the_files(read):
    columns = Columns({"id": "id", "parent": "to", "text": "body"}, given=True)
    first = b'{"id": "a", "body": "Nobody has answered yet"}\n'
    read(first, b'{"id": "b", "body": "Now somebody has", "to": "a"}\n', columns=columns)
    with pytest.raises(InputError, match=r"^RC-0\.jsonl .*'to'"):
        read(first, columns=columns)


def test_a_table_is_kept_in_place_of_its_namesake(engine, read):
    table, _ = read(DUMP)
    kept = engine.keep("kept", table.filter(table.rule.isnull()).select("id"))
    kept = engine.keep("other", kept.order_by("id").limit(1))
    assert engine.rows(kept).rows() == [("a",)]
    assert engine.rows(engine.keep("other", table.select("id"))).height == 5


def test_a_table_may_be_made_of_its_namesake(engine, read):
    table = engine.keep("ids", read(DUMP)[0].select("id"))
    table = engine.keep("ids", table.filter(table.id > "c"))
    assert sorted(engine.rows(table).get_column("id")) == ["d", "e"]


def test_no_rows_have_columns_all_the_same(engine, read, tmp_path):
    table, _ = read(b"")
    assert engine.rows(table).columns == ["id", "parent", "thread", "source", "rule", "text"]
    parts = engine.keep("parts", query.splits(table, (95.0, 2.5, 2.5)))
    written = write(engine, query.pairs(table).join(parts, "thread_id"), tmp_path / "out")
    assert (written.rows, written.shards, list((tmp_path / "out").iterdir())) == (0, [], [])


def test_what_a_reader_says_comes_through(read, tmp_path):
    with pytest.raises(InputError, match=r"RC-1\.jsonl line 1.*JSON.*`strict=True`"):
        read(DUMP, b"no JSON\n", strict=True)
    with pytest.raises(InputError, match=r"^\S*RC-1\.jsonl .*cut"):
        read(DUMP, gzip.compress(DUMP * 100)[:-20])
    with pytest.raises(InputError, match=r"^`separator` .*CSV.*TSV"):
        read(DUMP, separator=";")


def test_text_is_measured_and_ordered_by_character_and_byte(engine, read, tmp_path):
    # beyond the Basic Multilingual Plane, lengths and order in UTF-16 are others
    long = "é😀" * 10 + "x" * 329
    threads = ("\uffff", "😀", "é", "Z")
    dump = lines(
        *(comment(f"m{thread}", "How are you?", link_id=thread) for thread in threads),
        *(comment(f"r{t}", long, f"t1_m{t}", link_id=t) for t in threads),
        comment("long", long + "xx", "t1_mZ", link_id="Z"),
    )
    table, _ = read(dump)
    rules = dict(engine.rows(table.select("id", "rule")).iter_rows())
    assert (rules["long"], rules["rZ"]) == ("too_long", None)
    parts = engine.keep("parts", query.splits(table, (1.0, 0.0, 0.0)))
    written = write(engine, query.pairs(table).join(parts, "thread_id"), tmp_path / "out")
    assert [row[0] for row in rows_of(tmp_path / "out", written)] == ["Z", "é", "\uffff", "😀"]


def _many(engine: QueryEngine) -> ibis.Table:
    """Pairs in three splits, and several shards of train, in no order."""
    numbers = ibis.range(0, HUNDREDS).unnest().name("n").as_table()
    numbers = numbers.cross_join(ibis.range(0, 100).unnest().name("k").as_table())
    number = numbers.n * 100 + numbers.k
    return engine.keep(
        "many",
        numbers.select(
            thread_id=(number % 1_009).cast("string"),
            input_id=(number * 3).cast("string"),
            response_id=number.cast("string"),
            input=(number % 77).cast("string"),
            response=(number % 5_003).cast("string"),
            source=(number % 2).cast("string"),
            part=ibis.cases((number % 1_009 < 3, 2), (number % 1_009 < 90, 1), else_=0).cast(
                "int8"
            ),
        ),
    )


def _expected(limit: int | None) -> Iterator[pa.Table]:
    """The same pairs as `_many`, ordered, as Polars computes them."""
    number = pl.int_range(HUNDREDS * 100, eager=True).alias("n").to_frame()
    n = pl.col("n")
    part = pl.when(n % 1_009 < 3).then(2).when(n % 1_009 < 90).then(1).otherwise(0)
    frame = number.select(
        thread_id=(n % 1_009).cast(pl.String),
        input_id=(n * 3).cast(pl.String),
        response_id=n.cast(pl.String),
        input=(n % 77).cast(pl.String),
        response=(n % 5_003).cast(pl.String),
        source=(n % 2).cast(pl.String),
        part=part.cast(pl.Int8),
    )
    ordered = frame.sort(query.ORDER).head(limit or len(frame))
    yield from map(as_table, ordered.iter_slices(3_001))


@pytest.mark.parametrize("limit", [None, ROWS + 5])
def test_shards_are_those_of_one_writer(engine, tmp_path, limit, monkeypatch):
    for module in (writer, spark_engine):
        monkeypatch.setattr(module, "SHARD_ROWS", ROWS)
    (tmp_path / "expected").mkdir()
    expected = write_shards(tmp_path / "expected", _expected(limit))
    written = write(engine, _many(engine), tmp_path / "out", limit)
    assert written == expected
    assert written.rows == (limit or HUNDREDS * 100)
    for shard in written.shards:
        content = (tmp_path / "out" / shard.file).read_bytes()
        assert content == (tmp_path / "expected" / shard.file).read_bytes()


@pytest.mark.slow
@pytest.mark.xdist_group("spark")
def test_a_whole_extraction_gives_the_same_folder(tmp_path, spark):
    # without threads, with ids that come twice, malformed lines, limits, and all splits
    comments = [
        comment(
            f"c{number}",
            f"This is comment number {'one' * (number % 7)}",
            f"t1_c{max(number - 3, number - number % 20)}" if number % 20 else "t3_p",
            link_id="",
            subreddit=f"tests{number % 3}",
        )
        for number in range(600)
    ]
    comments += [comments[7], {**comments[9], "body": "An earlier text, by its letters"}]
    for part in range(2):
        path = tmp_path / f"RC-{part}.jsonl.gz"
        path.write_bytes(gzip.compress(lines(*comments[part::2]) + b"no JSON\n"))
    for engine in ENGINES:
        extract(
            tmp_path,
            tmp_path / engine,
            engine=engine,
            split=(60.0, 20.0, 20.0),
            limit=500,
            max_reply_count=80,
        )
    one, other = (
        {path.name: path.read_bytes() for path in (tmp_path / engine).iterdir()}
        for engine in ("duckdb", "spark")
    )
    assert one == other
    assert len(one) >= 3


def test_unknown_engines_and_amounts_are_refused(tmp_path):
    with pytest.raises(InputError, match="did you mean 'duckdb'"):
        ENGINES["duckdbb"](Resources(tmp_path))
    for name in ENGINES:
        with pytest.raises(InputError, match="is not an amount"):
            ENGINES[name](Resources(tmp_path, memory="much"))
    assert list(tmp_path.iterdir()) == []
