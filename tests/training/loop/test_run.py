"""Whole runs: repeatable, resumable to the bit, exported as they are."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
from functools import cache
from pathlib import Path

import numpy as np
import pytest
import torch

from rejoinder.corpus.extract import extract
from rejoinder.datasets.labelled import NLI_CLASSES
from rejoinder.encoders.nn.layers import SparseTable
from rejoinder.errors import BusyError, ConfigError, InputError, RejoinderError, TrainingError
from rejoinder.inference.encoder import SentenceEncoder
from rejoinder.models.folder import read_model
from rejoinder.training.config.loading import load_config, to_toml
from rejoinder.training.loop import checkpoint
from rejoinder.training.objectives import pair_features
from runs import DAN, KINDS, MULTITASK

TEXTS = ["How old are you?", "What is your age?", "", "I live in Oslo.", "zzzz"]


def files(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


@pytest.fixture(scope="module")
def whole(train, tmp_path_factory):
    """Runs of each kind that nothing interrupted, and what they told."""
    folder = tmp_path_factory.mktemp("whole")
    return cache(lambda kind: train(KINDS[kind], folder / kind))


@pytest.fixture(scope="module")
def stopped_once(train, tmp_path_factory):
    folder = tmp_path_factory.mktemp("stopped") / "run"
    train(DAN, folder, stop_at=10)
    return folder


@pytest.fixture
def stopped(stopped_once, tmp_path):
    """A run of DAN that stopped after 10 steps."""
    shutil.copytree(stopped_once, tmp_path / "run")
    return tmp_path / "run"


@pytest.mark.parametrize("kind", ["dan", "multitask"])
@pytest.mark.parametrize("stop_at", [5, 10, 15])
def test_stopped_and_resumed_is_the_same_to_the_bit(train, tmp_path, whole, kind, stop_at):
    whole, told = whole(kind)
    first, _ = train(KINDS[kind], tmp_path / "parts", stop_at=stop_at)
    assert (first.done, first.steps, first.model) == (False, stop_at, None)
    second, told_again = train(KINDS[kind], tmp_path / "parts", resume=True)
    assert whole.done
    assert second.done
    assert files(whole.model) == files(second.model)
    one = checkpoint.load(
        whole.folder / "checkpoints/step-20", load_config(whole.folder / "config.toml")
    )
    two = checkpoint.load(
        tmp_path / "parts/checkpoints/step-20", load_config(tmp_path / "parts/config.toml")
    )
    assert one.state.positions == two.state.positions
    for left, right in ((one.weights, two.weights), (one.optimizer, two.optimizer)):
        assert left.keys() == right.keys()
        assert all(torch.equal(left[name], right[name]) for name in left)
    assert told.scores[-1] == told_again.scores[-1]


def test_the_same_seed_gives_the_same_bytes_and_another_seed_others(train, tmp_path, whole):
    one, _ = whole("dan")
    again, _ = train(DAN, tmp_path / "again")
    tree = {**DAN, "training": {**DAN["training"], "seed": 1}}
    other, _ = train(tree, tmp_path / "other")
    assert files(one.model) == files(again.model)
    assert files(one.model)["weights.safetensors"] != files(other.model)["weights.safetensors"]


def test_the_classifier_of_the_model_is_the_trained_one(train, tmp_path, labelled):
    live = {}

    def keep(encoder):
        with torch.no_grad():
            rows = torch.from_numpy(encoder.encode(TEXTS))
            classifier = encoder.model.heads["entailment"]
            live["scores"] = classifier(pair_features(rows, rows.flip(0))).softmax(dim=1).numpy()
        return {"score": 1.0}

    tree = {**KINDS["multitask"], "export": {"dtype": "float32"}}
    tree["phases"] = [{"steps": 300, "batch_size": 64, "learning_rate": 0.01}]
    tree["training"] = {"log_every": 50, "row_init": "cooccurrence"}
    result, told = train(tree, tmp_path / "run", evaluate=keep)
    encoder = SentenceEncoder.load(result.model)
    found = encoder.entail(TEXTS, TEXTS[::-1])
    np.testing.assert_allclose(found, live["scores"], atol=1e-4)
    rows = [json.loads(line) for line in (labelled / "nli.jsonl").read_text().splitlines()]
    rows = [row for row in rows if row["gold_label"] != "-"]
    answers = encoder.entail(*([row[side] for row in rows] for side in ("sentence1", "sentence2")))
    gold = [NLI_CLASSES.index(row["gold_label"]) for row in rows]
    assert (answers.argmax(axis=1) == gold).mean() > 0.9
    losses = {name for _, metrics in told.metrics for name in metrics}
    assert {"loss responses", "loss entailment", "loss paraphrase", "scale paraphrase"} <= losses
    with pytest.raises(InputError, match="2 premises and 1 hypotheses"):
        encoder.entail(["a", "b"], ["c"])


def test_a_task_may_stand_alone(train, tmp_path):
    tree = {**KINDS["multitask"], "tasks": [{**KINDS["multitask"]["tasks"][1], "share": 1.0}]}
    del tree["objective"], tree["training"]  # of ranking, and of the pairs
    tree["phases"] = [{"steps": 20, "learning_rate": 0.01}]
    result, _ = train(tree, tmp_path / "run", with_pairs=False)
    encoder = SentenceEncoder.load(result.model)
    assert (result.pairs, encoder.entail(["A man eats."], ["A man sleeps."]).shape) == (0, (1, 3))
    facts = encoder.describe()["training"]["labelled"]["nli.jsonl"]
    assert facts["rows"] == {"entailment": 126}
    assert (facts["unlabelled"], facts["leaks"]) == (42, 0)


@pytest.mark.parametrize("kind", ["dan", "transformer", "bilstm"])
def test_training_starts_from_a_model(train, tmp_path, kind):
    plain = KINDS[kind]
    first, _ = train({**plain, "export": {"dtype": "float32"}}, tmp_path / "first")
    tasks = [{**task} for task in KINDS["multitask"]["tasks"]]
    del tasks[-1]["retrofit"]  # the rows are those of the model
    tree = {**plain, "tasks": tasks, "export": {"dtype": "float32"}}
    tree["training"] = {**plain["training"], "init_from": str(first.model)}
    still = [{"steps": 1, "batch_size": 64, "learning_rate": 1e-9}]
    second, _ = train({**tree, "phases": still}, tmp_path / "second")
    one, two = (SentenceEncoder.load(run.model) for run in (first, second))
    np.testing.assert_allclose(one.encode(TEXTS), two.encode(TEXTS), atol=1e-5)
    np.testing.assert_allclose(one.encode_response(TEXTS), two.encode_response(TEXTS), atol=1e-5)
    size = {"transformer": "filter"}.get(kind, "width")
    wrong = {**tree, "encoder": {**plain["encoder"], size: 8}, "phases": still}
    with pytest.raises(ConfigError, match=rf"has encoder .*'{size}': .*they must be equal"):
        train(wrong, tmp_path / "third")
    key = {"transformer": "max_tokens"}.get(kind, "unknown_buckets")
    wrong = {**tree, "text": {**plain["text"], key: 7}, "phases": still}
    with pytest.raises(ConfigError, match=rf"has text.{key} \d+; the config has 7: they must be"):
        train(wrong, tmp_path / "third")
    assert not (tmp_path / "third").exists()


def test_a_task_may_be_called_anything(train, tmp_path):
    # "train" is a method of the dictionary that holds the scales
    task = {"objective": "paraphrase", "share": 1.0, "data": ["groups.jsonl"], "name": "train"}
    tree = {"text": {"min_count": 2}, "encoder": DAN["encoder"], "head": DAN["head"]}
    tree |= {"tasks": [task], "phases": [{"steps": 2, "batch_size": 8}]}
    result, _ = train(tree, tmp_path / "run", with_pairs=False)
    assert result.model.is_dir()


def test_a_labelled_file_must_stay_the_same(train, tmp_path, labelled):
    train(KINDS["multitask"], tmp_path / "run", stop_at=5)
    file = labelled / "groups.jsonl"
    content = file.read_text()
    try:
        file.write_text(content + '{"sentences": ["one more", "once more"]}\n')
        with pytest.raises(TrainingError, match=r"groups.jsonl is not the file that the run began"):
            train(KINDS["multitask"], tmp_path / "run", resume=True)
    finally:
        file.write_text(content)


def test_rows_that_never_learned_are_not_exported(train, tmp_path):
    tree = {**DAN, "phases": [{"steps": 1, "batch_size": 8}], "export": {"dtype": "float16"}}
    result, _ = train(tree, tmp_path / "run")
    model = read_model(result.model)
    rows = model.tensors["encoder.bigram_rows"]
    assert (rows < 0).any()
    assert model.tensors["encoder.table.weight"].dtype == np.float16
    assert (
        len(model.tensors["encoder.table.weight"])
        == model.features.config()["words"] + (rows >= 0).sum()
    )
    tree["text"] = {"min_count": 2, "bigram_buckets": 0}
    result, _ = train(tree, tmp_path / "words")
    vocabulary = (tmp_path / "words/vocabulary/vocabulary.txt").read_text().splitlines()
    kept = (result.model / "vocabulary.txt").read_text().splitlines()
    assert 0 < len(kept) < len(vocabulary)
    assert kept == [word for word in vocabulary if word in set(kept)]


@pytest.mark.parametrize(("kind", "bigrams"), [("dan", 0), ("dan", 500), ("bilstm", 0)])
def test_unknown_words_are_told_apart_by_their_buckets(train, tmp_path, kind, bigrams):
    tree = {**KINDS[kind], "export": {"dtype": "float32"}}
    tree["text"] = {"min_count": 2, "bigram_buckets": bigrams, "unknown_buckets": 1_000}
    tree["phases"] = [{"steps": 3, "batch_size": 64}]
    live = {}

    def keep(encoder):
        live["sentences"] = encoder.encode(["qwzx", "qwzy", "you qwzx"])
        return {"score": 1.0}

    result, _ = train(tree, tmp_path / "run", evaluate=keep)
    encoder = SentenceEncoder.load(result.model)
    one, other, both = encoder.encode(["qwzx", "qwzy", "you qwzx"])
    np.testing.assert_allclose([one, other, both], live["sentences"], atol=2e-5)
    assert np.abs(one - other).max() > 0.01

    tree["training"] = {"init_from": str(result.model)}
    tree["phases"] = [{"steps": 1, "learning_rate": 1e-9, "table_learning_rate": 1e-9}]
    again, _ = train(tree, tmp_path / "again")
    kept = SentenceEncoder.load(again.model).encode(["qwzx"])
    np.testing.assert_allclose(kept, [one], atol=2e-5)


def test_rows_begin_with_lengths_by_rank(train, tmp_path):
    tree = {**MULTITASK, "text": {"min_count": 2, "unknown_buckets": 100}}
    tree["encoder"] = {"kind": "dan", "width": 400, "layers": [12]}
    tree["training"] = {"rank_init": 0.5, "row_init": "cooccurrence"}
    tree["phases"] = [{"steps": 1, "batch_size": 8, "table_learning_rate": 1e-9}]
    tree["export"] = {"dtype": "float32"}
    result, _ = train(tree, tmp_path / "run")
    words = (tmp_path / "run/vocabulary/vocabulary.txt").read_text().splitlines()
    model = read_model(result.model)
    lengths = np.linalg.norm(model.tensors["encoder.table.weight"], axis=1)
    ranks = [words.index(word) for word in model.features.vocabulary.words]
    ranks += range(len(words), len(words) + 100)
    np.testing.assert_allclose(lengths, 0.5 * np.log(np.array(ranks) + np.e), rtol=0.2)


def test_training_learns_that_questions_with_the_same_replies_are_alike(train, tmp_path):
    tree = {
        "text": {"min_count": 2},
        "encoder": {"kind": "dan", "width": 64, "layers": []},
        "head": {"layers": [64], "residual": True},
        "objective": {"scale": 15.0, "mask_duplicates": True},
        "optimizer": {"dense": "adam", "table": "adagrad"},
        "training": {"log_every": 25},
        "phases": [
            {"steps": 150, "batch_size": 128, "learning_rate": 0.003, "table_learning_rate": 0.1}
        ],
    }
    result, told = train(tree, tmp_path / "run")
    losses = [metrics["loss"] for _, metrics in told.metrics]
    assert losses[-1] < losses[0] - 1
    encoder = SentenceEncoder.load(result.model)
    age, other = "How old are you?", "Where do you live?"
    same, different = encoder.similarity([age], ["What is your age?", other])[0]
    assert same > different + 0.2


def test_a_loss_that_is_not_finite_stops_before_the_step(train, stopped):
    place = checkpoint.latest(stopped)
    config = load_config(stopped / "config.toml")
    saved = checkpoint.load(place, config)
    saved.weights["heads.responses.layers.0.weight"][0, 0] = float("nan")
    checkpoint.save(stopped, config, saved)
    with pytest.raises(TrainingError, match="the loss of batch 11 is nan"):
        train(DAN, stopped, resume=True)


@pytest.mark.parametrize("table", ["adagrad", "sgd"])
def test_a_gradient_that_is_not_finite_stops_before_the_step(train, tmp_path, monkeypatch, table):
    tree = {**DAN, "optimizer": {"dense": "adam", "table": table}}
    train(tree, tmp_path / "run", stop_at=10)
    hook = lambda gradient: gradient * float("inf")  # noqa: E731
    sum_bags = SparseTable.sum_bags

    def overflow(self, bags):
        values = sum_bags(self, bags)
        if values.requires_grad:
            values.register_hook(hook)
        return values

    monkeypatch.setattr(SparseTable, "sum_bags", overflow)
    with pytest.raises(TrainingError, match=r"the gradient of batch 11 is not finite \(its loss"):
        train(tree, tmp_path / "run", resume=True)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_interrupting_saves_and_can_go_on(train, tmp_path, whole, number):
    def interrupt(_encoder):
        os.kill(os.getpid(), number)
        return {"score": 0.0}

    stopped, _ = train(DAN, tmp_path / "run", evaluate=interrupt)
    assert (stopped.done, stopped.steps, stopped.interrupted) == (False, 10, number)
    resumed, _ = train(DAN, tmp_path / "run", resume=True)
    assert files(resumed.model) == files(whole("dan")[0].model)


def test_a_limit_of_time_exports_what_there_is(train, tmp_path):
    result, _ = train(DAN, tmp_path / "run", seconds=1e-6)
    assert (result.done, result.steps) == (False, 1)
    assert "after 1 of 20 steps, inside the warm-up: it is hardly trained" in (result.warning)
    assert re.search(r"begin again with phases\.0\.steps=\d+ phases\.1\.steps=\d+", result.warning)
    assert SentenceEncoder.load(result.model).dim == 12


def test_the_log_of_a_resumed_run_says_each_thing_once(train, tmp_path):
    train(DAN, tmp_path / "run", stop_at=15)
    run = tmp_path / "run"
    with (run / "metrics.jsonl").open("a") as file:  # as of a run that died after its checkpoint
        file.write(json.dumps({"step": 18, "group": "train", "loss": 1.0}) + "\n")
    train(DAN, run, resume=True)
    lines = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    told = [(line["group"], line["step"]) for line in lines]
    assert sorted(told) == sorted(
        [("train", step) for step in (5, 10, 15, 20)] + [("dev", 10), ("dev", 20)]
    )
    assert {"loss", "accuracy", "scale responses", "pairs_per_second"} <= lines[0].keys()


def logged(run: Path) -> list[dict[str, object]]:
    """What a run has logged, without speeds."""
    lines = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    return [{k: v for k, v in line.items() if k != "pairs_per_second"} for line in lines]


@pytest.mark.parametrize("kind", ["dan", "multitask"])
def test_an_interrupted_run_logs_what_a_whole_one_logs(train, tmp_path, kind):
    often = {"log_every": 3, "evaluate_every": 6, "checkpoint_every": 4}
    tree = {**KINDS[kind], "training": {**KINDS[kind]["training"], **often}}
    train(tree, tmp_path / "whole")
    run = tmp_path / "parts"

    def stopping(encoder):  # after the checkpoint of step 20, as a kill before the last evaluation
        if len(logged(run)) == 9:
            raise ZeroDivisionError
        return {"norm": float(encoder.encode(["hi"]).sum())}

    train(tree, run, stop_at=4)
    train(tree, run, resume=True, stop_at=11)
    with pytest.raises(ZeroDivisionError):
        train(tree, run, resume=True, evaluate=stopping)
    with (run / "metrics.jsonl").open("a") as file:  # and as one right after it
        file.write(json.dumps({"step": 20, "group": "dev", "norm": 1.0}) + "\n")
    train(tree, run, resume=True)
    assert logged(run) == logged(tmp_path / "whole")
    model = files(run / "model")
    assert model == files(tmp_path / "whole" / "model")
    shutil.rmtree(run / "model")  # as a kill before the export
    train(tree, run, resume=True)
    assert logged(run) == logged(tmp_path / "whole")
    assert files(run / "model") == model


def test_checkpoints_are_kept_in_small_number(train, tmp_path):
    tree = {**DAN, "training": {**DAN["training"], "checkpoint_every": 4}}
    train(tree, tmp_path / "run")
    found = sorted(path.name for path in (tmp_path / "run/checkpoints").iterdir())
    assert found == ["step-16", "step-20"]


def test_other_data_or_another_config_or_damage_is_refused(train, tmp_path, small_pairs):
    train(DAN, tmp_path / "run", stop_at=5)
    run = tmp_path / "run"
    config = load_config(run / "config.toml", ["encoder.activation=relu"])
    with pytest.raises(TrainingError, match="another config"):
        checkpoint.load(run / "checkpoints/step-5", config)
    (run / "config.toml").write_text(to_toml(config))
    with pytest.raises(TrainingError, match="the config differs from "):
        train(DAN, run, resume=True)


def test_other_pairs_are_refused(train, tmp_path, small_dump):
    train(DAN, tmp_path / "run", stop_at=5)
    extract(small_dump, tmp_path / "pairs", split=(70.0, 20.0, 10.0))
    with pytest.raises(TrainingError, match=r"pairs is not the data that .*run began with"):
        train(DAN, tmp_path / "run", resume=True, pairs=tmp_path / "pairs")


def flip(path: Path, position: int) -> None:
    """Change one bit of a file; its size stays."""
    content = bytearray(path.read_bytes())
    content[position % len(content)] ^= 4
    path.write_bytes(content)


@pytest.mark.parametrize(
    "name",
    [
        "manifest.json",
        "excluded.safetensors",
        "vocabulary/vocabulary.txt",
        "checkpoints/step-10/state.json",
        "checkpoints/step-10/weights.safetensors",
        "checkpoints/step-10/optimizer.safetensors",
    ],
)
@pytest.mark.parametrize("position", [40, -20])
def test_one_flipped_bit_of_a_run_is_found(train, stopped, name, position):
    flip(stopped / name, position)
    with pytest.raises(RejoinderError, match=re.escape(name.split("/")[-1])):
        train(DAN, stopped, resume=True)


@pytest.mark.parametrize(
    ("name", "key", "value"),
    [
        ("checkpoints/step-10/state.json", "step", 3),
        ("checkpoints/step-10/state.json", "positions", {}),
        ("checkpoints/step-10/state.json", "format_version", 2),
        ("manifest.json", "format_version", 1),
        ("manifest.json", "leaks", 7),
        ("manifest.json", "rejoinder_version", "9.9"),
    ],
)
def test_edited_numbers_of_a_run_are_found(train, stopped, name, key, value):
    path = stopped / name
    path.write_text(json.dumps({**json.loads(path.read_text()), key: value}))
    with pytest.raises(TrainingError, match=r"was changed after it was written|format version"):
        train(DAN, stopped, resume=True)


@pytest.mark.parametrize("content", [b"", b"[]", b"null", b"\xff", b"[" * 100_000, b'{"a": 1}'])
@pytest.mark.parametrize("name", ["manifest.json", "checkpoints/step-10/state.json"])
def test_files_of_a_run_that_are_something_else_are_refused(train, stopped, name, content):
    (stopped / name).write_bytes(content)
    with pytest.raises(TrainingError):
        train(DAN, stopped, resume=True)


def test_one_flipped_bit_of_the_pairs_is_found_before_the_first_step(train, tmp_path, small_pairs):
    shutil.copytree(small_pairs, tmp_path / "pairs")
    flip(tmp_path / "pairs/part-00000.parquet", 5_000)
    with pytest.raises(InputError, match=r"part-00000.parquet is not the file that was written"):
        train(DAN, tmp_path / "run", pairs=tmp_path / "pairs")
    assert not (tmp_path / "run").exists()


def test_folders_that_are_no_checkpoints_are_left_alone(train, stopped):
    for name in ("step-foo", "step-", "step-007", "step--1"):
        (stopped / "checkpoints" / name).mkdir()
    (stopped / "checkpoints/step-99").write_text("a file")
    result, _ = train(DAN, stopped, resume=True)
    assert result.done
    assert (stopped / "checkpoints/step-foo").is_dir()


def test_what_a_killed_run_left_half_written_is_removed(train, stopped, tmp_path):
    run = stopped
    for name in (".model.part", "checkpoints/.step-12.part", "checkpoints/.step-10.old"):
        (run / name).mkdir()
        (run / name / "weights.safetensors").write_bytes(b"half")
    (run / ".metrics.jsonl.part").write_bytes(b"half")
    with (run / "metrics.jsonl").open("a") as file:
        file.write('{"step": 11, "gro')
    train(DAN, run, resume=True)
    assert not [path for path in tmp_path.rglob("*") if path.name.startswith(".")]
    assert all(json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines())


def test_two_commands_do_not_train_in_one_folder(train, stopped):
    program = (
        "import sys, pathlib; from rejoinder.io.files.claims import claim\n"
        "with claim(pathlib.Path(sys.argv[1])): print(flush=True); sys.stdin.read()"
    )
    command = [sys.executable, "-c", program, str(stopped)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as holder:
        holder.stdout.readline()
        with pytest.raises(BusyError, match=rf"process {holder.pid} on .*wait for it to end"):
            train(DAN, stopped, resume=True)
        holder.stdin.close()
    assert train(DAN, stopped, resume=True)[0].done


def test_a_batch_larger_than_the_data_is_refused(train, tmp_path):
    tree = {**DAN, "phases": [{"steps": 1, "batch_size": 5_000}], "training": {}}
    with pytest.raises(TrainingError, match="lower batch_size"):
        train(tree, tmp_path / "run")
