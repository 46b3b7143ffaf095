"""The table of licences: whole, unambiguous, and judged with care."""

import json
import re
import tomllib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import rejoinder
from rejoinder.datasets.catalogue import (
    NOT_STATED,
    all_rows,
    is_open,
    licence_of_file,
    licence_of_source,
)
from rejoinder.io.formats.compression import decompressed

TABLE = tomllib.loads(
    (Path(rejoinder.__file__).parent / "data" / "licences.toml").read_text("utf-8")
)
WORDS = ("none stated", "research", "non-commercial", "personal use", "various")
OPEN = [
    "CC0-1.0",
    "CC-BY-2.0",
    "CC-BY-SA-4.0",
    "MIT",
    "BSD-3-Clause",
    "CDLA-Sharing-1.0",
    "Apache-2.0",
    "ISC",
    "MPL-2.0",
    "PSF-2.0",
    "Unicode-3.0",
]
CLOSED = [
    "CC-BY-NC-4.0",
    "CC-BY-NC-SA-3.0",
    "CC-BY-ND-4.0",
    "GPL-3.0",
    "LGPL-2.1",
    *WORDS,
    "",
    "mit",
]


def test_names_are_there_once_and_licences_are_identifiers_or_known_words():
    paths = [path for row in TABLE["files"] for path in row["paths"]]
    sources = [source for row in TABLE["conversations"] for source in row["sources"]]
    assert len({*paths}) == len(paths)
    assert len({*sources}) == len(sources)
    assert len(all_rows()) == len(paths) + len(sources)
    for row in (*TABLE["files"], *TABLE["conversations"]):
        parts = row["licence"].split(" AND ")
        assert all(part in WORDS or re.fullmatch(r"[A-Za-z0-9.-]+", part) for part in parts)
        assert row["from"]
        assert row["cite"]
        # a repository's licence is named where it does not count, and there the text has none
        assert "repository" not in row or not is_open(row["licence"])


@given(st.lists(st.sampled_from([*OPEN, *CLOSED]), min_size=1, max_size=4))
def test_open_means_that_every_part_is_open(parts):
    assert is_open(" AND ".join(parts)) == all(part in OPEN for part in parts)


def test_files_are_known_with_and_without_their_compression():
    plain = licence_of_file("captions/coco_more.jsonl")
    assert plain == licence_of_file("./captions/coco_more.jsonl.zst")
    assert (plain.licence, plain.open, plain.known) == ("CC-BY-4.0", True, True)
    assert licence_of_file("mine/coco_more.jsonl.zst") == NOT_STATED
    assert not NOT_STATED.open
    assert (
        str(licence_of_file("captions/msrvtt_valtest.jsonl.zst")) == "none stated (repository: MIT)"
    )


def test_a_source_is_known_by_the_files_of_its_pairs():
    assert licence_of_source("sgd").open
    assert licence_of_source("sgd", ["task.jsonl.zst", "movies.jsonl.zst"]).open
    # a subreddit of somebody's dump may be called like a corpus
    for inputs in ([], ["RC_2015-01.zst"], ["movies.jsonl.zst"], ["task.jsonl.zst", "mine.jsonl"]):
        assert licence_of_source("sgd", inputs) == NOT_STATED
    assert licence_of_source("no such source") == NOT_STATED


@pytest.mark.parametrize(
    "name",
    ["friends", "the_office", "southpark", "changemyview", "reddit_trump", "lennys_podcast",
     "switchboard", "deal_or_no_deal", "dream", "cornell_movie_dialogs"],
)  # fmt: skip
def test_what_belongs_to_others_or_is_not_for_all_is_not_open(name):
    assert licence_of_source(name).known
    assert not licence_of_source(name).open


@pytest.mark.shared_data
def test_the_table_has_every_file_that_can_be_trained_on(shared_data):
    for folder in ("nli", "captions", "paraphrases", "graded", "lexical"):
        for path in sorted((shared_data / folder).iterdir()):
            assert licence_of_file(str(path.relative_to(shared_data))).known, path


@pytest.mark.shared_data
def test_the_table_has_the_sources_of_the_conversations(shared_data):
    for name in ("task.jsonl.zst", "reddit_other.jsonl.zst"):
        content = b"".join(decompressed(shared_data / "conversations" / name))
        found = {json.loads(line)["subreddit"] for line in content.splitlines()}
        assert found == {
            s for row in TABLE["conversations"] if row["file"] == name for s in row["sources"]
        }
