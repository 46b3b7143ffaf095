"""Dumps to pairs as a whole: joins, threads, splits, order, counts, failure."""

import datetime
import hashlib
import html
import json
import random
import re
import shutil
import unicodedata
from pathlib import Path

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dumps import LONG, comment, lines
from rejoinder.corpus.extract import dropped_most, extract
from rejoinder.corpus.options import as_columns, parse_date
from rejoinder.corpus.query import split_borders
from rejoinder.corpus.writer import BLOCK_ROWS, open_pairs, read_manifest
from rejoinder.errors import InputError
from rejoinder.io.files.hashed import sealed
from rejoinder.io.formats.compression import decompressed

GOLDEN = Path(__file__).parent / "golden" / "raw_reddit.json"


def test_a_chain_gives_a_pair_for_each_reply(run):
    manifest, pairs = run(
        lines(
            comment("a", "First of all"),
            comment("c", "Third of all", "t1_b"),
            comment("b", "Second of all", "t1_a"),
            comment("d", "Another second", "t1_a"),
        )
    )
    columns = ("thread_id", "input_id", "response_id", "input", "response")
    assert pairs.select(columns).rows() == [
        ("p", "a", "b", "First of all", "Second of all"),
        ("p", "b", "c", "Second of all", "Third of all"),
        ("p", "a", "d", "First of all", "Another second"),
    ]
    counts = manifest.counts
    assert (counts.pairs, counts.unique_inputs, counts.unique_responses) == (3, 2, 3)


def test_every_comment_is_accounted_for(run):
    manifest, _ = run(
        lines(
            comment("a", "First of all"),
            comment("b", "Second of all", "t1_a"),
            comment("c", "[deleted]", "t1_a"),
            comment("d", "Reply to what is deleted", "t1_c"),
            comment("e", "Reply to another month", "t1_zz"),
            comment("a", "First of all"),
            comment("b", "Second of all but later", "t1_a"),
        )
    )
    counts = manifest.counts
    assert counts.comments == 7
    assert (counts.duplicates, counts.conflicts) == (1, 1)
    assert counts.dropped["deleted"] == 1
    assert counts.kept == 4
    assert (counts.without_parent, counts.parent_not_found, counts.parent_dropped) == (1, 1, 1)
    assert counts.pairs == 1


def test_of_conflicting_rows_the_smallest_text_is_kept(run):
    _, pairs = run(
        lines(
            comment("a", "First of all"),
            comment("b", "bbb text", "t1_a"),
            comment("b", "aaa text", "t1_a"),
        )
    )
    assert pairs.get_column("response").to_list() == ["aaa text"]


def test_prefixes_of_ids_are_optional(run, tmp_path):
    path = tmp_path / "chat.csv"
    path.write_text("id,to,text,room\nt1_1,,Hello there,x\n2,1,Hi yourself,x\n3,t1_2,Nice,x\n")
    columns = as_columns("id=id,parent=to,text=text,thread=room")
    _, pairs = run(path, columns=columns, rules="none")
    assert pairs.select("input_id", "response_id").rows() == [("1", "2"), ("2", "3")]


@settings(max_examples=8)
@given(st.lists(st.integers(-1, 12), min_size=2, max_size=13))
def test_absent_threads_are_the_roots_of_chains(tmp_path_factory, parents):
    """Comment i answers comment parents[i] if that comes before it; the root is found by hand."""
    parents = [parent if parent < place else -1 for place, parent in enumerate(parents)]
    if all(parent < 0 for parent in parents):
        parents[1] = 0
    folder = tmp_path_factory.mktemp("chains")
    rows = [f"{i},{parent if parent >= 0 else ''},text {i}" for i, parent in enumerate(parents)]
    (folder / "chat.csv").write_text("\n".join(["id,to,text", *rows]) + "\n")
    columns = {"id": "id", "parent": "to", "text": "text"}
    extract(folder / "chat.csv", folder / "out", columns=columns, rules="none")
    pairs = open_pairs(folder / "out")
    found = {
        row[0]: row[1]
        for split in ("train", "dev", "test")
        for row in pairs.frame(split, ["response_id", "thread_id"]).iter_rows()
    }

    def root(place: int) -> int:
        return place if parents[place] < 0 else root(parents[place])

    expected = {str(i): str(root(i)) for i, parent in enumerate(parents) if parent >= 0}
    assert found == expected


def test_a_given_thread_is_that_of_the_replies_below(run, tmp_path):
    path = tmp_path / "chat.csv"
    path.write_text(
        "id,to,text,room\n1,,one,\n2,1,two,x\n3,2,three,\n4,3,four,\n5,9,five,\n6,5,six,\n"
    )
    columns = as_columns("id=id,parent=to,text=text,thread=room")
    _, pairs = run(path, columns=columns, rules="none")
    threads = dict(pairs.select("response_id", "thread_id").rows())
    assert threads == {"2": "x", "3": "x", "4": "x", "6": "9"}


def test_nothing_answers_itself(run):
    manifest, pairs = run(
        lines(comment("a", "First of all", "t1_a"), comment("b", "Second of all", "t1_a"))
    )
    assert pairs.select("input_id", "response_id").rows() == [("a", "b")]
    assert manifest.counts.without_parent == 1


def test_a_circle_of_replies_ends(run, tmp_path):
    path = tmp_path / "chat.csv"
    path.write_text("id,to,text\n1,3,one\n2,1,two\n3,2,three\n")
    with pytest.raises(InputError, match="form a circle"):
        run(path, columns=as_columns("id=id,parent=to,text=text"), rules="none")


def many(count: int) -> list[dict[str, object]]:
    comments = [comment(f"m{i:05d}", LONG + str(i), link_id=f"t3_{i}") for i in range(count)]
    return comments + [
        comment(f"r{i:05d}", LONG + str(i % 7), f"t1_m{i:05d}", link_id=f"t3_{i}")
        for i in range(count)
    ]


def test_splits_are_a_hash_of_the_thread(run):
    _, pairs = run(lines(*many(3_000)), split=(80.0, 10.0, 10.0))
    border = [int(share * 2**32) for share in (0.8, 0.9)]
    for thread, split in pairs.select("thread_id", "split").iter_rows():
        head = int(hashlib.md5(thread.encode()).hexdigest()[:8], 16)  # noqa: S324
        assert split == ("train" if head < border[0] else "dev" if head < border[1] else "test")
    shares = pairs.get_column("split").value_counts(normalize=True).rows_by_key("split")
    assert list(shares["train"][0:1][0]) == pytest.approx([0.8], abs=0.03)


def test_borders_of_splits_never_change():
    assert split_borders((95.0, 2.5, 2.5)) == ("f3333333", "f9999999")
    assert split_borders((100.0, 0.0, 0.0)) == ("g", "g")
    assert split_borders((0.0, 50.0, 50.0)) == ("00000000", "80000000")


def test_the_same_bytes_whatever_the_threads_and_the_order(tmp_path):
    rows = many(2 * BLOCK_ROWS)
    random.Random(1).shuffle(rows)
    half = len(rows) // 2
    (tmp_path / "a.jsonl").write_bytes(lines(*rows[:half]))
    (tmp_path / "b.jsonl").write_bytes(lines(*rows[half:]))
    shutil.copy(tmp_path / "b.jsonl", tmp_path / "x.jsonl")
    shutil.copy(tmp_path / "a.jsonl", tmp_path / "y.jsonl")
    digests = set()
    for number, (files, threads) in enumerate([("ab", 1), ("ba", 2), ("xy", 2)]):
        out = tmp_path / f"out{number}"
        dumps = [tmp_path / f"{name}.jsonl" for name in files]
        manifest = extract(dumps, out, threads=threads)
        digests.add(tuple(shard.sha256 for shard in manifest.shards))
    assert len(digests) == 1


def test_a_small_memory_spills_and_gives_the_same(tmp_path):
    (tmp_path / "a.jsonl").write_bytes(lines(*many(30_000)))
    shards = []
    for memory in ("2GB", "150MB"):
        out = tmp_path / memory
        manifest = extract([tmp_path / "a.jsonl"], out, memory=memory)
        shards.append(manifest.shards)
        assert sorted(path.suffix for path in out.iterdir()) == [
            ".json",
            ".parquet",
            ".parquet",
            ".parquet",
        ]
    assert shards[0] == shards[1]


def test_pairs_are_read_block_by_block(run, tmp_path):
    run(lines(*many(BLOCK_ROWS + 500)), split=(100.0, 0.0, 0.0))
    pairs = open_pairs(tmp_path / "pairs")
    blocks = pairs.blocks("train")
    assert [block.rows for block in blocks] == [BLOCK_ROWS, 500]
    assert pairs.count("train") == BLOCK_ROWS + 500
    joined = pl.concat(pairs.read(block) for block in blocks)
    assert joined.equals(pairs.frame("train"))
    assert pairs.frame("dev").is_empty()
    keys = joined.select("thread_id", "response_id").rows()
    assert keys == sorted(keys)
    with pytest.raises(InputError, match="no split 'training'"):
        pairs.blocks("training")


def test_filters_limits_and_caps(run):
    rows = many(50)
    for place, row in enumerate(rows):
        row["subreddit"] = "Even" if place % 2 == 0 else "Odd"
        row["created_utc"] = 1_600_000_000 + 86_400 * (place % 50)
    manifest, pairs = run(lines(*rows), subreddits=["Even"])
    assert set(pairs.get_column("source")) == {"Even"}
    assert manifest.counts.dropped["filtered"] == 50
    dates = {"since": "2020-09-20", "until": datetime.date(2020, 10, 1)}
    since, until = (parse_date(str(date)) for date in dates.values())
    manifest, _ = run(lines(*rows), **dates)
    inside = [row for row in rows if since <= row["created_utc"] < until]
    assert manifest.counts.kept == len(inside) > 0
    _, everything = run(lines(*rows))
    _, limited = run(lines(*rows), limit=7)
    order = everything.sort("split", descending=True)
    assert limited.equals(order.filter(pl.col("split") == "train").head(7))
    manifest, capped = run(lines(*rows), max_reply_count=3)
    assert capped.get_column("response").value_counts().get_column("count").max() == 3
    assert (manifest.counts.pairs, manifest.counts.capped) == (21, 29)


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("faq.csv", "id,Question,Answer\n1,How are you today?,I am quite well\n"),
        ("faq.tsv", "prompt\tcompletion\nHow are you today?\tI am quite well\n"),
        ("faq.jsonl", '{"input": "How are you today?", "response": "I am quite well"}\n'),
    ],
)
def test_columns_with_usual_names_are_understood(run, name, content):
    manifest, pairs = run(content.encode(), name)
    assert pairs.select("input", "response").row(0) == ("How are you today?", "I am quite well")
    assert manifest.options["columns"].keys() == {"message", "reply"}


def test_columns_that_may_be_either_are_not_guessed(run):
    table = b"context,question,answer\nIt is late,How are you today?,I am quite well\n"
    with pytest.raises(
        InputError, match=r"its columns are 'context', .*`columns='message=…,reply=…'`"
    ):
        run(table, "faq.csv")


def test_rules_that_drop_most_comments_are_named(run):
    rows = [f"{n}?,{n}" for n in range(40)] + ["How are you today?,I am quite well"]
    table = "\n".join(["message,reply", *rows]).encode()
    manifest, _ = run(table, "faq.csv")
    assert re.search(r"not_alphabetic 80\).* `rules='none'`", dropped_most(manifest.counts))
    assert dropped_most(run(table, "faq.csv", rules="none")[0].counts) == ""
    with pytest.raises(InputError, match=r"not_alphabetic 80\).* `rules='none'`"):
        run("\n".join(["message,reply", *rows[:-1]]).encode(), "faq.csv")


def test_no_pairs_says_what_took_the_comments(run, tmp_path):
    with pytest.raises(InputError, match=r"deleted 1.*\b0\b"):
        run(lines(comment("a", "[deleted]"), comment("b", "Some reply to it", "t1_a")))
    assert not (tmp_path / "pairs").exists()
    with pytest.raises(InputError, match="no comments in"):
        run(b"")


@pytest.mark.parametrize(
    ("parent", "shown"),
    [
        ("t4_a", "'b' answers 't4_a'"),
        ("nowhere", "'b' answers 'nowhere'; ids are like 'b'"),
    ],
)
def test_no_pairs_shows_ids_that_did_not_meet(run, parent, shown):
    with pytest.raises(InputError, match=shown):
        run(lines(comment("a", "First of all"), comment("b", "Second of all", parent)))


def test_a_full_folder_is_refused_and_a_failed_run_leaves_it_alone(tmp_path):
    dump = tmp_path / "dump.jsonl"
    dump.write_bytes(lines(*many(3)))
    out = tmp_path / "out"
    extract([dump], out)
    before = read_manifest(out)
    with pytest.raises(InputError, match="not empty"):
        extract([dump], out)
    dump.write_bytes(b"")
    with pytest.raises(InputError, match="no comments"):
        extract([dump], out, overwrite=True)
    assert read_manifest(out) == before
    assert sorted(path.name for path in tmp_path.iterdir()) == ["dump.jsonl", "out"]


def test_damaged_pairs_are_refused(run, tmp_path):
    run(lines(*many(30)))
    out = tmp_path / "pairs"
    shard = out / "part-00000.parquet"
    content = shard.read_bytes()
    shard.write_bytes(content[:-1] + b"x")
    with pytest.raises(InputError, match="SHA-256"):
        open_pairs(out).frame("train")
    shard.write_bytes(content[:-1])
    with pytest.raises(InputError, match="it is cut or changed"):
        open_pairs(out)
    shard.unlink()
    with pytest.raises(InputError, match="is missing"):
        open_pairs(out)
    path = out / "manifest.json"
    tree = json.loads(path.read_text())
    del tree["sha256"]
    shard.write_bytes(content)
    other = {**tree["shards"][0], "rows": tree["shards"][0]["rows"] + 1}
    for change, said in (
        ({"counts": {**tree["counts"], "pairs": "9"}}, r"int.*str.*counts\.pairs"),
        ({"splits": {"train": None}}, "int.*null.*splits"),
        ({"shards": [{**other, "file": "../x"}]}, r"str.*shards\[0\]\.file"),
        ({"shards": [other]}, r"part-00000\.parquet .*rows"),
    ):
        path.write_text(json.dumps(sealed({**tree, **change})))
        with pytest.raises(InputError, match=said):
            open_pairs(out).frame(other["split"])
    path.write_text('{"format_version": 99, "shards": []}')
    with pytest.raises(InputError, match="format version 99"):
        open_pairs(out)
    (out / "manifest.json").unlink()
    with pytest.raises(InputError, match="not a finished folder"):
        open_pairs(out)


def test_impossible_options_are_refused(run):
    with pytest.raises(InputError, match="`split`"):
        run(b"", split=(0.0, 0.0, 0.0))
    with pytest.raises(InputError, match="is not a date"):
        run(b"", since="yesterday")


@pytest.mark.shared_data
def test_real_dumps_give_the_golden_counts(tmp_path, shared_data):
    dumps = sorted((shared_data / "raw_reddit").iterdir())
    manifest = extract(dumps, tmp_path / "out")
    written = json.loads((tmp_path / "out" / "manifest.json").read_text())
    found = {name: written[name] for name in ("counts", "splits", "sources", "inputs")}
    assert found == json.loads(GOLDEN.read_text())
    assert manifest.counts.comments == 145_299


@pytest.mark.shared_data
def test_real_pairs_are_those_of_a_plain_implementation(tmp_path, shared_data):
    """The rules and the join once more, in plain Python, on a month of real comments."""
    dump = shared_data / "raw_reddit" / "RC_2021-02.bz2"
    comments = [json.loads(line) for line in b"".join(decompressed(dump)).splitlines()]
    kept = {}
    space = "[\\s\u200b\x85\xa0]+"
    for item in comments:
        body = item["body"]
        text = re.sub(space, " ", html.unescape(body)).strip(" ")
        letters = sum(unicodedata.category(character)[0] == "L" for character in body)
        bad = (
            text in ("", "[deleted]", "[removed]")
            or len(body) >= 350
            or letters * 10 <= len(body) * 7
            or body.startswith(("https", "/r/", "@"))
            or "bot" in item["author"].lower()
        )
        if not bad:
            kept[item["id"]] = (text, item)
    expected = {
        (item["link_id"][3:], item["parent_id"][3:], name, kept[item["parent_id"][3:]][0], text)
        for name, (text, item) in kept.items()
        if item["parent_id"].startswith("t1_") and item["parent_id"][3:] in kept
    }
    extract([dump], tmp_path / "out")
    pairs = open_pairs(tmp_path / "out")
    columns = ["thread_id", "input_id", "response_id", "input", "response"]
    found = [row for s in ("train", "dev", "test") for row in pairs.frame(s, columns).iter_rows()]
    assert len(found) == len(set(found)) == len(expected)
    assert set(found) == expected
