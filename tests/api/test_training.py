"""Training from Python: one call, the same bytes, and nothing of the caller's torch changed."""

import json
import os
import shutil
import subprocess
import sys

import pytest
import torch

from rejoinder.api.training import train, train_seeds
from rejoinder.errors import ConfigError, InputError, TrainingError
from rejoinder.training.config.loading import parse_config, to_toml
from rejoinder.training.data import examples
from runs import DAN, MULTITASK, TRANSFORMER, Listener, write_labelled

SHORT = {"phases": [{"steps": 4, "batch_size": 16, "learning_rate": 0.01}]}
CONFIG = parse_config({**DAN, **SHORT}, "test")

IDLE = """
import os, sys, time
{first}
import rejoinder
assert "GOMP_SPINCOUNT" not in os.environ

def idle(_encoder):
    import torch
    torch.set_num_threads(2)
    numbers, spent = torch.zeros(1 << 18), 0.0
    for _ in range(20):
        numbers.add_(1)
        before = time.process_time()
        time.sleep(0.02)  # in which a second thread may spin
        spent += time.process_time() - before
    return {{"spent": spent}}

run = rejoinder.train(sys.argv[1], out=sys.argv[2], pairs=sys.argv[3], evaluate=idle)
print(run.scores["spent"])
"""


def weights(run):
    return (run.model / "weights.safetensors").read_bytes()


def test_a_run_is_one_call_and_the_same_when_stopped_and_resumed(small_pairs, tmp_path):
    file, told = tmp_path / "c.toml", []
    file.write_text(to_toml(CONFIG))
    listener = Listener()
    whole = train(
        file,
        out=tmp_path / "whole",
        pairs=small_pairs,
        overrides=["training.log_every=2"],
        reporter=listener,
        progress=lambda done, total: told.append((done, total)),
    )
    assert (whole.folder, whole.done, whole.steps, whole.warning) == (
        tmp_path / "whole", True, 4, "",
    )  # fmt: skip
    assert list(whole.scores) == ["P@1", "P@3", "P@10"]
    assert [step for step, _ in listener.metrics] == [2, 4]
    assert told[-1] == (whole.pairs, whole.pairs)
    assert whole.load_encoder().encode(["How old are you?"]).shape == (1, whole.load_encoder().dim)

    common = {"out": str(tmp_path / "parts"), "pairs": str(small_pairs)}
    parts = train(CONFIG, **common, stop_at=2)
    with pytest.raises(TrainingError, match=r"parts .*step 2"):
        parts.load_encoder()
    parts = train(None, **common, resume=True)
    assert weights(parts) == weights(whole)


def test_runs_of_several_seeds(small_pairs, tmp_path):
    common = {"out": tmp_path / "runs", "pairs": small_pairs, "evaluate": lambda _encoder: {"x": 1}}
    [first] = train_seeds(CONFIG, [1], **common).values()
    with pytest.raises(InputError, match=r"runs exists and is not empty"):
        train_seeds(CONFIG, [1, 2], **common)
    with pytest.raises(InputError, match=r"runs .*seeds.*`seed=1`\."):
        train(CONFIG, out=tmp_path / "runs", pairs=small_pairs, resume=True)
    runs = train_seeds(CONFIG, [1, 2, 1], **common, resume=True)
    assert list(runs) == [1, 2]
    assert weights(runs[1]) == weights(first) != weights(runs[2])
    assert runs[2].scores == {"x": 1}
    single = train(CONFIG, out=tmp_path / "one", pairs=small_pairs, overrides=["training.seed=2"])
    assert weights(single) == weights(runs[2])


def test_runs_of_several_seeds_are_prepared_once_and_alike(small_pairs, tmp_path):
    learned = parse_config({**DAN, **SHORT, "training": {"row_init": "cooccurrence"}}, "test")
    common = {"pairs": small_pairs, "evaluate": lambda _encoder: {"x": 1}}
    told = []
    runs = train_seeds(
        learned, [1, 2], out=tmp_path / "runs", progress=lambda *done: told.append(done), **common
    )
    once = len(told)
    single = train(learned, out=tmp_path / "one", overrides=["training.seed=2"], **common)
    assert weights(single) == weights(runs[2]) != weights(runs[1])
    train_seeds(
        learned, [3], out=tmp_path / "more", progress=lambda *done: told.append(done), **common
    )
    assert len(told) == 2 * once > 0


def test_misuse(small_pairs, tmp_path):
    common = {"out": tmp_path / "run", "pairs": small_pairs}
    for options, error, message in (
        ({"resume": True, "overwrite": True}, InputError, "leave one out"),
        ({"resume": True}, InputError, "run holds no run to resume"),
        ({"minutes": -1}, InputError, "must be above 0; got None and -1"),
        ({"overrides": ["training.seed=-1"]}, ConfigError, r"training\.seed"),
    ):
        with pytest.raises(error, match=message):
            train(CONFIG, **common, **options)
    with pytest.raises(InputError, match="`config` is missing"):
        train(None, **common)
    assert [*tmp_path.iterdir()] == []


def test_the_caller_keeps_its_threads_and_random_numbers(small_pairs, tmp_path):
    config = parse_config({**TRANSFORMER, **SHORT}, "test")
    torch.manual_seed(7)
    before, threads = torch.get_rng_state(), torch.get_num_threads()
    train(config, out=tmp_path / "run", pairs=small_pairs, threads=threads + 1)
    assert torch.equal(torch.get_rng_state(), before)
    assert torch.get_num_threads() == threads


def test_a_labelled_file_is_read_once_for_all_its_tasks(small_pairs, tmp_path, monkeypatch):
    calls = []
    for name in ("read_inference", "read_groups"):
        read = getattr(examples, name)

        def counted(path, *columns, read=read, **fields):
            calls.append(path.name)
            return read(path, *columns, **fields)

        monkeypatch.setattr(examples, name, counted)
    config = parse_config({**MULTITASK, **SHORT}, "test")
    common = {"out": tmp_path / "run", "pairs": small_pairs, "data": write_labelled(tmp_path)}
    train(config, **common, stop_at=2)
    expected = ["nli.jsonl", "groups.jsonl", "duplicates.jsonl"]
    assert calls == expected
    calls.clear()
    run = train(None, **common, resume=True)
    assert calls == expected
    facts = json.loads((run.model / "config.json").read_text())["training"]["labelled"]
    assert set(facts["groups.jsonl"]["rows"]) == {"paraphrase", "again"}


def bytes_below(folder):
    return {str(path): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def test_a_run_is_replaced_once_the_new_one_has_a_model(small_pairs, tmp_path):
    common = {"out": tmp_path / "run", "pairs": small_pairs}
    old = train(CONFIG, **common)
    before = bytes_below(old.folder)
    other = {**common, "overrides": ["training.seed=2"]}
    for failing in ({"device": "no-such-device"}, {"overrides": ["phases.0.batch_size=0"]}):
        with pytest.raises((InputError, ConfigError, TrainingError)):
            train(CONFIG, **{**other, **failing}, overwrite=True)
        assert bytes_below(tmp_path) == before

    stopped = train(CONFIG, **other, overwrite=True, stop_at=2)
    assert stopped.folder == tmp_path / ".run.unfinished"
    assert bytes_below(old.folder) == before
    for begin_again in ({}, {"out": tmp_path / "run"}):
        with pytest.raises(InputError, match=r"\.run\.unfinished.*resume=True"):
            train(CONFIG, **{**other, **begin_again})
    new = train(None, **common, resume=True)
    whole = train(CONFIG, **{**other, "out": tmp_path / "whole"})
    assert (new.folder, new.model) == (tmp_path / "run", tmp_path / "run" / "model")
    assert weights(new) == weights(whole)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["run", "whole"]


def test_seeds_are_replaced_one_by_one(small_pairs, tmp_path):
    common = {"out": tmp_path / "runs", "pairs": small_pairs, "evaluate": lambda _encoder: {"x": 1}}
    old = train_seeds(CONFIG, [1, 2], **common)
    new = train_seeds(CONFIG, [2, 3], **common, overrides=["phases.0.steps=2"], overwrite=True)
    assert [run.steps for run in new.values()] == [2, 2]
    assert weights(old[1]) != weights(new[2])
    names = sorted(path.name for path in (tmp_path / "runs").iterdir())
    assert names == ["seed-1", "seed-2", "seed-3"]


@pytest.mark.parametrize("way", ["same", "inside", "link"])
def test_a_run_does_not_replace_what_it_reads(small_pairs, tmp_path, way):
    out = tmp_path / "out"
    pairs = out / "pairs" if way == "inside" else out
    shutil.copytree(small_pairs, pairs)
    if way == "link":
        out = tmp_path / "link"
        out.symlink_to(pairs)
    before = bytes_below(tmp_path)
    with pytest.raises(InputError, match=rf"{pairs} .*{out} "):
        train(CONFIG, out=out, pairs=pairs, overwrite=True)
    assert bytes_below(tmp_path) == before


@pytest.mark.slow
@pytest.mark.parametrize("first", ["", "import torch"])
def test_idle_threads_sleep_whoever_imported_torch(small_pairs, tmp_path, first):
    file = tmp_path / "c.toml"
    file.write_text(to_toml(CONFIG))
    code = [sys.executable, "-c", IDLE.format(first=first), file, tmp_path / "run", small_pairs]
    waits = ("GOMP_SPINCOUNT", "OMP_WAIT_POLICY")
    bare = {name: value for name, value in os.environ.items() if name not in waits}
    done = subprocess.run(code, capture_output=True, text=True, check=True, env=bare)
    assert float(done.stdout) < 0.03  # 0.001, and 0.12 where they spin
