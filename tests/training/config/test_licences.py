"""The data of a config, judged before anything is trained."""

from dataclasses import replace
from pathlib import Path

import pytest
from msgspec import structs

from rejoinder.corpus.writer import open_pairs
from rejoinder.errors import ModelError
from rejoinder.training.config.loading import load_config, parse_config, shipped_names
from rejoinder.training.data.preparation import data_rows

RESEARCH = Path(__file__).parents[3] / "models/rejoinder-research/src/rejoinder_research"
OPEN = ["self_dialogue_corpus", "sgd", "critical_role"]
TASKS = [
    {"objective": "responses", "share": 0.5},
    {
        "objective": "paraphrase",
        "share": 0.5,
        "data": ["captions/coco_more.jsonl.zst", "paraphrases/tatoeba_pivot.jsonl.zst"],
    },
]


def config(sources=OPEN, data=(), **training):
    tasks = [TASKS[0], {**TASKS[1], "data": [*TASKS[1]["data"], *data]}]
    tree = {"training": {"sources": sources, **training}, "tasks": tasks}
    return parse_config({**tree, "phases": [{"steps": 1}]}, "test")


def not_open(config, pairs=None):
    return [row for row in data_rows(config, pairs) if not row.licence.open]


def test_a_config_of_open_data_has_nothing_that_is_not_open():
    assert not_open(config()) == []
    assert [row.name for row in data_rows(config())] == [*OPEN, *TASKS[1]["data"]]


def test_what_is_not_open_is_named():
    closed = not_open(config([*OPEN, "southpark"], ["nli/mine.jsonl"]))
    assert [(row.kind, row.name) for row in closed] == [
        ("source", "southpark"),
        ("file", "nli/mine.jsonl"),
    ]


def test_the_data_of_the_model_that_training_starts_from_counts():
    closed = not_open(config(init_from=str(RESEARCH / "rejoinder-research")))
    assert len(closed) > 50
    assert not_open(config(init_from="rejoinder-base")) == []
    with pytest.raises(ModelError):
        data_rows(config(init_from="other/model"))


def test_pairs_of_unknown_files_are_not_open_whatever_their_sources_are_called(small_pairs):
    pairs = open_pairs(small_pairs)
    rows = not_open(config([]), pairs)
    assert [row.name for row in rows] == sorted(pairs.manifest.sources)
    assert sum(row.rows for row in rows) == pairs.count("train")
    # as if its sources had been extracted from the files of the table
    known = structs.replace(
        pairs.manifest,
        inputs=({"file": "task.jsonl.zst"},),
        sources={"sgd": {"train": 5, "dev": 1}},
    )
    [row] = data_rows(config([]), replace(pairs, manifest=known))[:1]
    assert (row.name, row.rows, row.licence.licence) == ("sgd", 5, "CC-BY-SA-4.0")


@pytest.mark.parametrize("name", shipped_names())
def test_the_data_of_every_shipped_config_is_in_the_table(name):
    config = load_config(name)
    rows = data_rows(config)
    assert all(row.licence.known for row in rows if row.kind == "file")
    unnamed = config.reads_pairs and not config.training.sources
    assert ("the pairs" in [row.name for row in rows]) == unnamed


@pytest.mark.parametrize("name", ["rejoinder-base", "rejoinder-multi"])
def test_it_is_trained_on_open_data_only(name):
    assert not_open(load_config(name)) == []
