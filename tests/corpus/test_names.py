"""Folders and files whose names are patterns elsewhere: each is read as itself."""

import shutil

import polars as pl
import pytest

from rejoinder.corpus.extract import extract
from rejoinder.corpus.writer import open_pairs

NAMES = ["p[1]", "p*", "p?", "p{1,2}", "100% #1", "p 1"]


@pytest.mark.parametrize("name", NAMES)
def test_pairs_in_a_folder_are_its_own(small_pairs, tmp_path, name):
    shutil.copytree(small_pairs, tmp_path / name)
    expected = open_pairs(small_pairs)
    for other in ("p1", "p2", "p"):  # what a pattern would match
        shutil.copytree(small_pairs, tmp_path / other)
        for shard in (tmp_path / other).glob("*.parquet"):
            pl.read_parquet(shard).head(0).write_parquet(shard)
    found = open_pairs(tmp_path / name)
    for split in ("train", "dev", "test"):
        rows = [pl.concat([pairs.read(block, ["input"]) for block in pairs.blocks(split)] or
                          [pl.DataFrame()]) for pairs in (found, expected)]  # fmt: skip
        assert rows[0].equals(rows[1])


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("engine", ["local", "duckdb"])
def test_a_table_in_a_folder_is_its_own(tmp_path, name, engine):
    for folder, text in ((name, "right"), ("p1", "wrong"), ("p2", "wrong")):
        (tmp_path / folder).mkdir()
        rows = {
            "id": ["a", "b"],
            "parent_id": [None, "t1_a"],
            "link_id": ["t3_x", "t3_x"],
            "body": [f"{text} message", f"{text} reply"],
        }
        pl.DataFrame(rows).write_parquet(tmp_path / folder / "c.parquet")
    extract(tmp_path / name / "c.parquet", tmp_path / "out", rules="none", engine=engine)
    pairs = open_pairs(tmp_path / "out")
    found = [pairs.read(block, ["response"]) for split in ("train", "dev", "test")
             for block in pairs.blocks(split)]  # fmt: skip
    assert pl.concat(found)["response"].to_list() == ["right reply"]
