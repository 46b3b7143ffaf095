"""Training on chosen sources: only their pairs are read, counted, scored and named."""

import json

import numpy as np
import polars as pl
import pytest

from rejoinder.api.pairs import DevScores, response_pairs
from rejoinder.corpus.writer import open_pairs
from rejoinder.datasets import leaks
from rejoinder.errors import ConfigError, InputError
from rejoinder.models.folder import read_model
from rejoinder.training.config.loading import parse_config
from rejoinder.training.config.settings import TrainingConfig
from rejoinder.training.data.preparation import Data, prepare, select_sources
from rejoinder.training.data.stream import PairStream, text_keys
from rejoinder.training.loop.checkpoint import config_hash
from runs import DAN, MULTITASK, small_run

CHOSEN = ["SmallTalk", "TeaAndToast"]
REST = ["AskANeighbour", "EverydayHelp", "LateNightChat"]


def config(**training):
    return parse_config(small_run("dan", training={**DAN["training"], **training}), "test")


@pytest.fixture(scope="module")
def prepared(small_pairs):
    def run(**training):
        data = Data(open_pairs(small_pairs))
        return prepare(data, config(**training), lambda _done, _all: None, None)

    return run


@pytest.fixture(scope="module")
def train_frame(small_pairs):
    return open_pairs(small_pairs).frame("train", ["input", "response", "source"])


def test_pairs_of_other_sources_are_left_out(prepared, train_frame):
    one = prepared(sources=CHOSEN)
    kept = train_frame["source"].is_in(CHOSEN).to_numpy()
    assert (one.pairs, one.leaks) == (kept.sum(), 0)
    [rows] = one.excluded.values()  # the folder has one block
    np.testing.assert_array_equal(rows, np.flatnonzero(~kept))
    everything = prepared()
    assert everything.pairs == len(train_frame)
    assert everything.excluded == {}


def test_the_vocabulary_knows_no_word_of_the_others(prepared, train_frame):
    words = {*prepared(sources=CHOSEN).features.vocabulary.words}
    chosen = train_frame.filter(train_frame["source"].is_in(CHOSEN))
    text = " ".join([*chosen["input"], *chosen["response"]]).lower()
    assert words
    assert all(word in text for word in words)
    assert {*prepared().features.vocabulary.words} - words


def test_the_stream_draws_pairs_of_the_chosen_sources_alone(small_pairs, prepared, train_frame):
    part = prepared(sources=CHOSEN)
    stream = PairStream(
        open_pairs(small_pairs), part.features, window_pairs=1_000, seed=0, excluded=part.excluded
    )
    chosen = train_frame.filter(train_frame["source"].is_in(CHOSEN))
    assert stream.rows == len(chosen)
    from rejoinder.training.data.stream import Position

    seen = []
    for batch in stream.batches(Position(), lambda: 1):
        if batch.after.epoch:
            break
        seen.append(int(batch.left_keys[0]))
        if len(seen) == len(chosen):
            break
    assert sorted(seen) == sorted(text_keys(chosen["input"]).tolist())


def test_leaks_of_sources_that_are_left_out_are_not_counted(prepared, train_frame):
    # "Is it expensive?" (CQA), "What's your name?" (CLINC150) and others are in the example
    hashes = leaks.EvaluationHashes.load(TrainingConfig(exclude_leaks=True).excluded_sets)
    leaked = pl.Series(
        hashes.contains(train_frame["input"]) | hashes.contains(train_frame["response"])
    )
    by_source = {
        source: int((leaked & (train_frame["source"] == source)).sum())
        for source in train_frame["source"].unique()
    }
    assert sum(by_source.values()) > 0
    whole = prepared(exclude_leaks=True)
    assert (whole.pairs, whole.leaks) == (len(train_frame), sum(by_source.values()))
    assert {name: count for name, count in whole.leaks_by_set.items() if count} == {
        "cqa2016-dev": 10, "banking77-test": 2, "clinc150-test": 73
    }  # fmt: skip
    assert sum(whole.leaks_by_set.values()) == whole.leaks
    for source, count in by_source.items():
        rest = prepared(exclude_leaks=True, sources=sorted({*by_source} - {source}))
        assert rest.leaks == whole.leaks - count
        assert sum(map(len, rest.excluded.values())) == len(train_frame) - rest.pairs + rest.leaks


def test_a_model_knows_what_it_was_trained_on(train, tmp_path):
    tree = small_run("dan", training={**DAN["training"], "sources": CHOSEN, "evaluate_every": 0})
    result, _ = train(tree, tmp_path / "run")
    facts = read_model(result.model).training
    assert sorted(facts["data"]) == CHOSEN
    assert sum(facts["data"].values()) == facts["pairs"] == result.pairs
    assert sorted(facts["sources_left_out"]) == REST
    assert facts["inputs"] == ["small.jsonl"]
    manifest = json.loads((tmp_path / "run" / "manifest.json").read_text("utf-8"))
    assert manifest["sources_left_out"] == facts["sources_left_out"]
    card = (result.model / "MODEL_CARD.md").read_text("utf-8")
    assert "| source | SmallTalk |" in card
    assert "Left out by choice: " in card
    again, _ = train(tree, tmp_path / "parts", stop_at=7)
    again, _ = train(tree, tmp_path / "parts", resume=True)
    for name in ("weights.safetensors", "config.json", "MODEL_CARD.md"):
        assert (again.model / name).read_bytes() == (result.model / name).read_bytes()


def test_a_resumed_run_leaves_out_the_sets_that_it_began_with(train, tmp_path, monkeypatch):
    training = {**DAN["training"], "exclude_leaks": True, "evaluate_every": 0}
    tree = small_run("dan", training=training)
    with monkeypatch.context() as older:
        older.setattr(leaks, "_FILES", leaks._FILES[:1])
        train(tree, tmp_path / "run", stop_at=7)
    result, _ = train(tree, tmp_path / "run", resume=True)
    facts = read_model(result.model).training
    assert {*facts["leak_sets"]} == {*facts["leaks_by_set"]} < leaks.shipped().keys()


def test_evaluations_during_training_follow_the_sources(small_pairs):
    whole = response_pairs(small_pairs, "dev")
    part = response_pairs(small_pairs, "dev", REST)
    assert {*part.sources} == {*CHOSEN}
    assert [
        text for text, source in zip(whole.inputs, whole.sources, strict=True) if source in CHOSEN
    ] == [*part.inputs]

    class Encoder:
        def __init__(self):
            self.texts = set()

        def encode(self, texts):
            self.texts.update(texts)
            return np.array([[len(text), 1.0] for text in texts], np.float32)

    encoder = Encoder()
    DevScores(small_pairs, None, without=REST)(encoder)
    assert encoder.texts == {*part.inputs, *part.responses}


def test_an_unknown_source_is_met_with_those_that_are_there(small_pairs):
    pairs = open_pairs(small_pairs)
    with pytest.raises(InputError, match=r"training\.sources.*'Smalltalk'") as caught:
        select_sources(pairs, TrainingConfig(sources=["Smalltalk"]))
    count = pairs.manifest.sources["SmallTalk"]["train"]
    assert f"SmallTalk ({count:,})" in str(caught.value)
    assert all(name in str(caught.value) for name in (*CHOSEN, *REST))


def test_sources_without_effect_are_refused():
    [task] = [each for each in MULTITASK["tasks"] if each["objective"] == "entailment"]
    alone = {**MULTITASK, "tasks": [{**task, "share": 1.0}]}
    with pytest.raises(ConfigError, match=r"training\.sources .*no effect.*pairs"):
        parse_config({**alone, "training": {"sources": CHOSEN}}, "test")


def test_runs_of_versions_without_the_keys_can_be_resumed():
    assert config_hash(config()) == config_hash(config(sources=[]))
    assert config_hash(config()) != config_hash(config(sources=CHOSEN))
