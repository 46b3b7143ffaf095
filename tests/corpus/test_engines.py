"""The contract of engines: each keeps tables and computes the same query."""

from collections.abc import Iterator

import ibis
import polars as pl
import pytest

from rejoinder.corpus import query
from rejoinder.corpus.engines import ENGINES, open_engine
from rejoinder.corpus.engines.base import Engine
from rejoinder.corpus.rules import PROFILES
from rejoinder.corpus.schema import COMMENTS
from rejoinder.errors import InputError

ROWS = [
    ("a", "t3_p", "How are you?"),
    ("b", "t1_a", "Fine, thanks"),
    ("c", "t1_a", "[deleted]"),
    ("d", "t1_c", "Answers nothing now"),
    ("e", "t1_b", "Good to hear that"),
]


def frames(rows: list[tuple[str, str, str]]) -> Iterator[pl.DataFrame]:
    """One row a frame, as readers may deliver them."""
    for name, parent, text in rows:
        values = {
            "id": name,
            "parent": parent,
            "thread": "t3_p",
            "author": "x",
            "source": "s",
            "created": None,
            "text": text,
            "clean": None,
            "letters": len(text) - 2,
        }
        yield pl.DataFrame([values], schema=dict(COMMENTS))


@pytest.fixture(params=ENGINES)
def engine(request, tmp_path) -> Iterator[Engine]:
    spill = tmp_path / "spill"
    spill.mkdir()
    opened = open_engine(request.param, "500MB", 2, spill)
    yield opened
    opened.close()


def ingest(engine: Engine, rows: list[tuple[str, str, str]]) -> ibis.Table:
    return engine.ingest(
        "comments",
        frames(rows),
        lambda table: query.classified(table, PROFILES["paper"], query.Filters()),
    )


def test_the_query_gives_the_pairs_in_order(engine):
    table = ingest(engine, ROWS)
    parts = engine.keep("parts", query.splits(table, (95.0, 2.5, 2.5)))
    found = pl.concat(engine.stream(query.output(query.pairs(table), parts), 1_000))
    assert found.select("input_id", "response_id", "input", "response").rows() == [
        ("a", "b", "How are you?", "Fine, thanks"),
        ("b", "e", "Fine, thanks", "Good to hear that"),
    ]
    lost = engine.rows(query.lost_parents(table)).row(0)
    assert tuple(map(int, lost)) == (0, 1)


def test_a_large_result_keeps_its_order(engine):
    table = ingest(engine, ROWS)
    numbers = engine.keep("numbers", ibis.range(0, 50_000).unnest().name("n").as_table())
    ordered = numbers.cross_join(table.select("id")).order_by("n", "id")
    found = pl.concat(engine.stream(ordered, 4_096))
    assert len(found) == 250_000
    assert found.equals(found.sort("n", "id"))


def test_a_table_is_kept_in_place_of_its_namesake(engine):
    table = ingest(engine, ROWS)
    kept = engine.keep("kept", table.filter(table.rule.isnull()).select("id"))
    kept = engine.keep("other", kept.order_by("id").limit(1))
    assert engine.rows(kept).rows() == [("a",)]
    assert engine.rows(engine.keep("other", table.select("id"))).height == len(ROWS)


def test_no_rows_have_columns_all_the_same(engine):
    table = ingest(engine, [])
    assert engine.rows(table).columns == ["id", "parent", "thread", "source", "rule", "text"]


def test_what_a_reader_says_comes_through(engine):
    def failing() -> Iterator[pl.DataFrame]:
        yield from frames(ROWS)
        raise InputError("RC.zst is cut short")

    with pytest.raises(InputError, match=r"^RC\.zst is cut short$"):
        engine.ingest("comments", failing(), lambda table: table)


def test_unknown_engines_and_amounts_are_refused(tmp_path):
    with pytest.raises(InputError, match="did you mean 'duckdb'"):
        open_engine("duckdbb", "1GB", None, tmp_path)
    for name in ENGINES:
        with pytest.raises(InputError, match="is not an amount"):
            open_engine(name, "much", None, tmp_path)
    assert list(tmp_path.iterdir()) == []
