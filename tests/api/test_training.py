"""Training from Python: one call, the same bytes, and nothing of the caller's torch changed."""

import json

import pytest
import torch

from rejoinder.api.training import train, train_seeds
from rejoinder.errors import ConfigError, InputError, TrainingError
from rejoinder.training.config.loading import parse_config, to_toml
from rejoinder.training.data import examples
from runs import DAN, MULTITASK, TRANSFORMER, Listener, write_labelled

SHORT = {"phases": [{"steps": 4, "batch_size": 16, "learning_rate": 0.01}]}
CONFIG = parse_config({**DAN, **SHORT}, "test")


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
    with pytest.raises(TrainingError, match="parts stopped at step 2 and has no model yet"):
        parts.load_encoder()
    parts = train(None, **common, resume=True)
    assert weights(parts) == weights(whole)


def test_runs_of_several_seeds(small_pairs, tmp_path):
    common = {"out": tmp_path / "runs", "pairs": small_pairs, "evaluate": lambda _encoder: {"x": 1}}
    [first] = train_seeds(CONFIG, [1], **common).values()
    with pytest.raises(InputError, match=r"runs exists and is not empty"):
        train_seeds(CONFIG, [1, 2], **common)
    with pytest.raises(InputError, match=r"runs holds runs of several seeds; .* --seed 1\."):
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
    with pytest.raises(InputError, match="--config is missing"):
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

        def counted(path, *columns, read=read):
            calls.append(path.name)
            return read(path, *columns)

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
