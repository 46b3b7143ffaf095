"""Several workers, as real processes that talk over gloo: gradients, files, signals, deaths."""

import functools
import json
import multiprocessing
import operator
import os
import signal
import socket
from collections import Counter
from pathlib import Path

import pytest
from safetensors.torch import load_file

import run_worker
from rejoinder.errors import InputError
from rejoinder.training.config.loading import load_config
from rejoinder.training.data.stream import Part
from rejoinder.training.loop import checkpoint
from rejoinder.training.workers import (
    Workers,
    joined_workers,
)
from runs import BILSTM, DAN, MULTITASK, TRANSFORMER


def tree_of(base, objective=None, training=None, **more):
    """A config without dropout, whose draws depend on how a batch is divided."""
    dropout = {"encoder": {**base["encoder"], "dropout": 0.0}} if base is TRANSFORMER else {}
    return {
        **base,
        **dropout,
        "objective": {**base["objective"], "word_dropout": 0.0, **(objective or {})},
        "training": {**base["training"], "id_cache_gb": 0.1, **(training or {})},
        "phases": [{"steps": 20, "batch_size": 61, "learning_rate": 0.01}],
        **more,
    }


@pytest.fixture(scope="module")
def processes():
    """Where processes come from: a server that has imported torch, and forks."""
    with pytest.MonkeyPatch.context() as patch:
        paths = [str(Path(run_worker.__file__).parent), os.environ.get("PYTHONPATH", "")]
        patch.setenv("PYTHONPATH", os.pathsep.join(filter(None, paths)))
        patch.setenv("TORCH_CPP_LOG_LEVEL", "ERROR")
        patch.setenv("OMP_NUM_THREADS", "1")
        context = multiprocessing.get_context("forkserver")
        context.set_forkserver_preload(["run_worker"])
        yield context


@pytest.fixture
def start(processes, small_pairs, labelled, tmp_path):
    """Starts workers; returns their exit statuses, outcomes and standard errors."""

    def call(count, tree, run="run", **asked):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        asked = {
            "config": tree,
            "pairs": str(small_pairs),
            "labelled": str(labelled),
            "run": str(tmp_path / run),
            **asked,
        }
        rooms = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port), "WORLD_SIZE": str(count)}
        files = [
            (tmp_path / f"{port}-{rank}.json", tmp_path / f"{port}-{rank}.txt")
            for rank in range(count)
        ]
        started = [
            processes.Process(
                target=run_worker.run_worker,
                args=(asked, {**rooms, "RANK": str(rank)}, str(result), str(errors)),
            )
            for rank, (result, errors) in enumerate(files)
        ]
        for process in started:
            process.start()
        for process in started:
            process.join(120)
            process.kill()
        return (
            [process.exitcode for process in started],
            [json.loads(result.read_text()) if result.exists() else None for result, _ in files],
            [errors.read_text() for _, errors in files],
        )

    return call


def gradients_of(start, tmp_path, tree, counts):
    found = []
    for count in counts:
        stored = tmp_path / f"{count}.safetensors"
        statuses, _, errors = start(
            count, tree, run=f"of-{count}", gradients=str(stored), stop_at=1
        )
        assert statuses == [0] * count, errors
        found.append(load_file(stored))
    return found


# float32 keeps 24 bits, and sums over 61 rows in another order differ in the last few of them:
# 2e-5 of the largest gradient of a tensor is about 2**8 such roundings, and far below what a lost
# or doubled row (1/61 of a gradient) would change
TOLERANCE = 2e-5


@pytest.mark.parametrize("base", [DAN, TRANSFORMER, BILSTM], ids=["dan", "transformer", "bilstm"])
def test_the_gradient_is_that_of_one_process_on_the_whole_batch(start, tmp_path, base):
    # of a classifier; ranking has fewer negatives in the part of a worker
    task = {"objective": "entailment", "share": 1.0, "data": ["nli.jsonl"]}
    plain = {"objective": {}, "entailment": {"hidden": 10}, "tasks": [task]}
    training = {"log_every": 5, "evaluate_every": 10}
    (one,) = gradients_of(start, tmp_path, {**tree_of(base), **plain, "training": training}, (1,))
    # a batch in parts has the gradient of the whole (test_gradients)
    tree = {**tree_of(base), **plain, "training": {**training, "mini_batch_size": 7}}
    (two,) = gradients_of(start, tmp_path, tree, (2,))
    assert one.keys() == two.keys()
    for key, gradient in one.items():
        assert gradient.any(), key
        limit = TOLERANCE * gradient.abs().max()
        assert (gradient - two[key]).abs().max() <= limit, key


def test_several_tasks_train_and_a_run_repeats_to_the_bit(start, tmp_path):
    tasks = [
        {"objective": "responses", "share": 0.7},
        {"objective": "entailment", "share": 0.3, "data": ["nli.jsonl"], "batch_size": 8},
    ]
    training = {"row_init": "random", "nested_dims": []}
    tree = tree_of(MULTITASK, training=training, tasks=tasks)
    models = []
    for run, stops in (("whole", (None,)), ("parts", (9, None))):
        for stop in stops:
            resume = stop is None and len(stops) > 1
            statuses, told, errors = start(2, tree, run=run, stop_at=stop, resume=resume)
            assert statuses == [0, 0], errors
        assert [each["done"] for each in told] == [True, True]
        assert [each["scores"] for each in told] == [{"p_at_1": 0.5}, {}]  # one evaluates
        models.append((tmp_path / run / "model/weights.safetensors").read_bytes())
        assert not (tmp_path / run / "ids").exists()
    assert models[0] == models[1]
    state = checkpoint.load(
        tmp_path / "parts/checkpoints/step-20", load_config(tmp_path / "parts/config.toml")
    ).state
    assert set(state.positions) == {"responses/responses", "entailment/nli.jsonl"}
    lines = [json.loads(line) for line in (tmp_path / "whole/metrics.jsonl").open()]
    steps = [line for line in lines if line["group"] == "train"]
    assert Counter(line["step"] for line in steps) == {5: 1, 10: 1, 15: 1, 20: 1}  # one writes


def test_workers_may_change_and_the_log_says_so(start, tmp_path):
    tree = tree_of(DAN)
    assert start(2, tree, stop_at=7)[0] == [0, 0]
    assert start(1, tree, stop_at=12, resume=True)[0] == [0]
    assert start(3, tree, resume=True)[0] == [0, 0, 0]
    lines = [json.loads(line) for line in (tmp_path / "run/metrics.jsonl").open()]
    assert [line for line in lines if line["group"] == "workers"] == [
        {"step": 7, "group": "workers", "before": 2, "now": 1},
        {"step": 12, "group": "workers", "before": 1, "now": 3},
    ]


@pytest.mark.parametrize("dead", [pytest.param(0, marks=pytest.mark.slow), 1])
def test_a_dead_worker_ends_the_run_with_one_sentence(start, tmp_path, dead):
    tree = tree_of(DAN, training={"checkpoint_every": 5})
    statuses, _, errors = start(2, tree, ends=dead, at=8)
    assert statuses[dead] == -signal.SIGKILL
    assert statuses[1 - dead] == 2
    sentence = "".join(errors)
    assert sentence.count("rejoinder: a worker of the run ended before step 9 was done;") == 1
    assert sentence.count("\n") == 1
    left = checkpoint.latest(tmp_path / "run")
    assert left.name == ("step-8" if dead else "step-5")  # worker 0 saves what it has
    assert start(2, tree, resume=True)[0] == [0, 0]
    assert start(2, tree, run="whole")[0] == [0, 0]
    models = [tmp_path / run / "model/weights.safetensors" for run in ("run", "whole")]
    assert models[0].read_bytes() == models[1].read_bytes()


def test_a_signal_to_one_stops_all(start, tmp_path):
    statuses, told, errors = start(2, tree_of(DAN), signalled=5)
    assert statuses == [0, 0], errors
    assert [each["steps"] for each in told] == [6, 6]
    assert checkpoint.latest(tmp_path / "run").name == "step-6"


def test_a_gradient_that_is_not_finite_stops_all_and_one_explains(start, tmp_path):
    statuses, _, errors = start(2, tree_of(DAN), bad=1, at=3)
    assert statuses == [2, 2]
    assert errors[0].startswith("rejoinder: the loss of batch 4 is nan;")
    assert errors[1] == ""


def test_an_error_of_one_is_the_error_of_all(start, tmp_path):
    statuses, _, errors = start(2, tree_of(DAN), resume=True)
    assert statuses == [2, 2]
    assert "".join(errors).count("\n") == 1
    assert "finds no run at" in errors[0]


def test_batches_too_small_for_the_workers_are_refused(start):
    phases = [{"steps": 5, "batch_size": 3, "learning_rate": 0.01}]
    statuses, _, errors = start(2, tree_of(DAN) | {"phases": phases})
    assert statuses == [2, 2]
    assert "allowed: from 4 rows" in errors[0]


def test_parts_cover_a_batch():
    rows = list(range(11))
    parts = [rows[Part(index, 4).of(11)] for index in range(4)]
    assert functools.reduce(operator.add, parts) == rows
    assert {len(part) for part in parts} == {2, 3}


def test_an_environment_that_makes_no_sense_is_refused(monkeypatch):
    monkeypatch.setenv("WORLD_SIZE", "2")
    with pytest.raises(InputError, match="RANK is ''; torchrun sets it"), joined_workers("cpu"):
        pass
    monkeypatch.setenv("RANK", "5")
    with pytest.raises(InputError, match="RANK is 5"), joined_workers("cpu"):
        pass


def test_one_worker_is_alone():
    with joined_workers("cpu") as workers, workers.agreed():
        assert workers == Workers()
        assert workers.leads
        assert workers.collect("x") == ["x"]
