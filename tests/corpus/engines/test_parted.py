"""Extraction by parts: the same pairs, counts and bytes as the query of all engines gives."""

import random
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from dumps import comment, lines
from rejoinder.corpus.engines.duckdb import QueryEngine
from rejoinder.corpus.engines.local import engine as local
from rejoinder.corpus.engines.local import join
from rejoinder.corpus.extract import extract
from rejoinder.corpus.manifest import Manifest
from rejoinder.errors import InputError


def dump(seed: int, count: int, **shares: float) -> bytes:
    """Random comments in threads; a share of them is repeated, changed, lost or crosses threads."""
    drawn = random.Random(seed)
    made: list[dict[str, Any]] = []
    texts = [
        "How are you?",
        "Fine, thanks",
        "[deleted]",
        "12345",
        "Größe &amp; Maß",
        "两  个 spaces",
    ]
    for number in range(count):
        thread = f"t{drawn.randrange(1 + count // 8)}"
        above = [old for old in made if old["link_id"] == f"t3_{thread}"]
        if above and drawn.random() < shares.get("crossing", 0):
            above = made
        parent = (
            f"t1_{drawn.choice(above)['id']}" if above and drawn.random() < 0.8 else f"t3_{thread}"
        )
        if drawn.random() < shares.get("lost", 0):
            parent = "t1_gone"
        made.append(
            {
                "id": f"c{number:05d}" + drawn.choice(["", "_with_a_long_ending"]),
                "parent_id": parent,
                "link_id": f"t3_{thread}" if drawn.random() >= shares.get("loose", 0) else None,
                "author": drawn.choice(["ann", "ROBOT"]) if drawn.random() < 0.1 else "bob",
                "subreddit": drawn.choice(["cats", "a_source_with_a_long_name"]),
                "body": drawn.choice(texts) + " again" * drawn.randrange(9),
            }
        )
        if drawn.random() < shares.get("repeated", 0):
            old = dict(drawn.choice(made))
            if drawn.random() < 0.5:
                old["body"] = drawn.choice(texts)
            if drawn.random() < shares.get("crossing", 0):
                old["link_id"] = "t3_elsewhere"
            made.append(old)
    drawn.shuffle(made)
    return lines(*made)


@pytest.fixture
def both(tmp_path):
    """Extract with both engines and compare; returns the manifest of the local one."""

    def call(content: bytes, **options: Any) -> Manifest:
        path = tmp_path / "RC.jsonl"
        path.write_bytes(content)
        found = [
            extract(path, tmp_path / engine, engine=engine, overwrite=True, **options)
            for engine in ("local", "duckdb")
        ]
        assert found[0] == found[1]
        for shard in found[0].shards:
            local, duckdb = (tmp_path / engine / shard.file for engine in ("local", "duckdb"))
            assert local.read_bytes() == duckdb.read_bytes()
        return found[0]

    return call


@pytest.fixture
def own_way(monkeypatch) -> list[str]:
    """Lists the engines that the query is computed by."""
    asked: list[str] = []
    by_query = QueryEngine.extract

    def noted(engine, *rest):
        asked.append(type(engine).__name__)
        return by_query(engine, *rest)

    monkeypatch.setattr(QueryEngine, "extract", noted)
    return asked


@pytest.mark.parametrize("spilled", [False, True])
@pytest.mark.parametrize("seed", range(3))
def test_repeated_and_lost_comments(both, own_way, monkeypatch, seed, spilled):
    if spilled:
        monkeypatch.setattr(local, "_STORE_SHARE", 1e-6)
        monkeypatch.setattr(join, "_BATCH_ROWS", 3)
        monkeypatch.setattr(local, "_PIECE_ROWS", 10)
    manifest = both(dump(seed, 400, repeated=0.1, lost=0.05), split=(70, 20, 10))
    counts = manifest.counts
    assert min(counts.pairs, counts.duplicates, counts.conflicts, counts.parent_not_found) > 0
    assert counts.parent_dropped
    assert len(manifest.shards) == 3
    assert own_way == ["DuckDBEngine"]


@pytest.mark.parametrize(
    "shares", [{"crossing": 0.1}, {"loose": 0.05}, {"crossing": 0.1, "repeated": 0.2}]
)
def test_what_crosses_threads_is_joined_by_the_query(both, own_way, shares):
    assert both(dump(7, 300, **shares)).counts.pairs
    assert own_way == ["LocalEngine", "DuckDBEngine"]


def test_repeated_ids_in_several_threads(both, own_way):
    same = comment("a", "How are you?", link_id="t3_x")
    other = {**same, "link_id": "t3_y", "body": "Are you well?"}
    reply = comment("b", "Fine, thanks", "t1_a", link_id="t3_y")
    manifest = both(lines(same, other, reply, same))
    assert (manifest.counts.duplicates, manifest.counts.conflicts) == (1, 1)
    assert own_way == ["DuckDBEngine"]


@pytest.mark.parametrize("limit", [1, 37, 100_000])
def test_the_first_pairs_are_kept(both, own_way, limit):
    manifest = both(dump(3, 300), limit=limit)
    assert manifest.counts.pairs == min(limit, both(dump(3, 300)).counts.pairs)
    assert set(own_way) == {"DuckDBEngine"}


def test_replies_with_the_same_text_are_counted_by_the_query(both, own_way):
    assert both(dump(3, 300), max_reply_count=2).counts.capped
    assert own_way == ["LocalEngine", "DuckDBEngine"]


def test_pairs_of_messages_and_replies(tmp_path, own_way):
    frame = pl.DataFrame({"q": ["How are you?", "Who?"], "a": ["Fine", "He"]})
    frame.write_parquet(tmp_path / "faq.parquet")
    columns = {"message": "q", "reply": "a"}
    manifest = extract(tmp_path / "faq.parquet", tmp_path / "out", columns=columns, rules="none")
    assert manifest.counts.pairs == 2
    assert own_way == []


def test_no_pairs_are_explained_and_nothing_is_left(tmp_path):
    path = tmp_path / "RC.jsonl"
    path.write_bytes(lines(comment("a", "How are you?"), comment("b", "Fine", "t1_zz")))
    with pytest.raises(InputError, match="answers 'zz'"):
        extract(path, tmp_path / "out")
    assert [one.name for one in Path(tmp_path).iterdir()] == ["RC.jsonl"]


def test_a_prefix_is_left_out_once_also_of_spilled_comments(both, own_way, monkeypatch):
    monkeypatch.setattr(local, "_STORE_SHARE", 1e-9)
    fields = {"link_id": "t3_t3_x"}
    asks = comment("t1_t1_a", "How are you?", **fields)
    assert both(lines(asks, comment("b", "Fine, thanks", "t1_t1_a", **fields))).counts.pairs == 1
    assert own_way == ["DuckDBEngine"]
