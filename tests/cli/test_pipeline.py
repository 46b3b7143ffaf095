"""The commands one after the other, as a person types them, and what they say to misuse."""

import io
import json
import shutil
import signal
import subprocess
import sys
import time
from contextlib import chdir, redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path

import pytest

from rejoinder.cli.main import app
from rejoinder.cli.output import status_of
from rejoinder.evaluation.results import read_results

CONFIG = """
name = "tiny"
[text]
min_count = 2
[encoder]
kind = "dan"
width = 12
layers = []
[head]
layers = [12]
[training]
log_every = 5
[[phases]]
steps = 10
batch_size = 64
"""


@dataclass(frozen=True)
class Ended:
    """What a command printed."""

    stdout: str
    stderr: str


def run(*words: object, cwd: Path, expect: int = 0) -> Ended:
    """Runs the command in this process, in the folder `cwd`; its exit status is checked."""
    out, err = io.StringIO(), io.StringIO()
    with chdir(cwd), redirect_stdout(out), redirect_stderr(err):
        status = status_of(lambda: app([*map(str, words)], "rejoinder"))
    assert status == expect, err.getvalue()
    return Ended(out.getvalue(), err.getvalue())


@pytest.fixture(scope="module")
def folder(tmp_path_factory, small_dump) -> Path:
    """A folder with pairs, a config and a run."""
    place = tmp_path_factory.mktemp("pipeline")
    (place / "c.toml").write_text(CONFIG)
    arguments = ("extract", small_dump, "--out", "pairs", "--split", "80,10,10", "--json")
    told = run(*arguments, cwd=place)
    assert json.loads(told.stdout)["counts"]["pairs"] > 3_000
    run("train", "--config", "c.toml", "--pairs", "pairs", "--out", "run", cwd=place)
    return place


def test_a_run_holds_what_it_should(folder):
    found = {path.name for path in (folder / "run").iterdir()}
    assert {"config.toml", "manifest.json", "vocabulary", "checkpoints", "metrics.jsonl",
            "model"} <= found  # fmt: skip
    model = {path.name for path in (folder / "run" / "model").iterdir()}
    assert model == {"config.json", "weights.safetensors", "vocabulary.txt", "MODEL_CARD.md"}


def test_counts_per_filter_are_shown(folder, small_dump):
    told = run("extract", small_dump, "--out", "again", cwd=folder)
    for word in ("deleted", "too_long", "not_alphabetic", "bad_start", "bot", "malformed", "pairs"):
        assert word in told.stdout
    assert "not JSON" in told.stderr


def test_evaluation_prints_and_writes(folder):
    told = run("evaluate", "run/model", "--tasks", "response", "--pairs", "pairs", "--out",
               "results.json", cwd=folder)  # fmt: skip
    assert "P@10" in told.stdout
    assert "trained on" in told.stderr
    [result] = read_results(folder / "results.json")
    assert result.task == "response/p@n"
    assert result.encoder["training"]["pairs"] > 3_000
    again = run("evaluate", "run/model", "--tasks", "response", "--pairs", "pairs", "--json",
                cwd=folder)  # fmt: skip
    assert json.loads(again.stdout)[0]["scores"] == result.scores


def test_a_function_of_ones_own_is_scored(folder):
    (folder / "mine.py").write_text(
        "import numpy as np\n"
        "def encode(texts):\n"
        "    return np.array([[len(t), t.count('e') + 1] for t in texts], np.float32)\n"
    )
    words = ("evaluate", "py:mine:encode", "--tasks", "response", "--pairs", "pairs")
    told = subprocess.run(
        [sys.executable, "-m", "rejoinder", *words], cwd=folder, capture_output=True, text=True
    )
    assert told.returncode == 0, told.stderr
    assert "encode was used for both sides" in told.stderr


def test_several_seeds_show_their_spread(folder):
    told = run("train", "--config", "c.toml", "--pairs", "pairs", "--out", "seeds", "--seed",
               "1,2", cwd=folder)  # fmt: skip
    assert all(word in told.stdout for word in ("seed 1", "seed 2", "mean", "sd", "P@1"))
    assert (folder / "seeds" / "seed-2" / "model" / "config.json").exists()


def test_stopping_says_how_to_go_on(folder):
    common = ("train", "--config", "c.toml", "--pairs", "pairs", "--out", "stopped")
    told = run(*common, "--stop-at", "4", cwd=folder)
    assert "stopped at step 4" in told.stderr
    assert "--resume" in told.stderr
    told = run(*common, "--resume", "--json", cwd=folder)
    assert json.loads(told.stdout)["steps"] == 10


MISUSE = [
    (("extract", "nothing.zst", "--out", "x"), "nothing.zst is not a file"),
    (("extract", "c.toml", "--out", "pairs"), "not empty"),
    (("extract", "c.toml", "--out", "x", "--rules", "papper"), "did you mean 'paper'"),
    (("extract", "c.toml", "--out", "x", "--engine", "sparkle"), "--engine"),
    (("train", "--config", "c.toml", "--pairs", "run", "--out", "x"), "rejoinder extract wrote"),
    (("train", "--config", "c.toml", "--pairs", "pairs", "--out", "run"), "not empty"),
    (
        ("train", "--config", "c.toml", "--pairs", "pairs", "--out", "x", "traning.seed=1"),
        "did you mean 'training'",
    ),
    (("train", "--config", "c.toml", "--pairs", "pairs", "--out", "x", "--resume"), "no run"),
    (("train", "--config", "c.toml", "--pairs", "pairs", "--out", "x", "--device", "tpu"), "auto"),
    (
        (
            "train",
            "--config",
            "c.toml",
            "--pairs",
            "pairs",
            "--out",
            "x",
            "phases.0.batch_size=9999",
        ),
        "lower batch_size",
    ),
    (
        ("train", "--config", "c.toml", "--pairs", "pairs", "--out", "x", "--seed=1,-1"),
        "training.seed",
    ),
    (
        ("train", "--config", "c.toml", "--out", "x", "--seed", "1", "--seed", "2"),
        "--seed is given several times; write --seed 1,2 instead",
    ),
    (("train", "--config", "c.toml", "--out", "x", "--seed", "1,b"), "--seed '1,b': write whole"),
    (
        ("train", "--config", "c.toml", "--out", "x", "--exclude-leaks", "--no-exclude-leaks"),
        "--exclude-leaks and --no-exclude-leaks contradict",
    ),
    (("evaluate", "pairs", "--tasks", "response", "--pairs", "pairs"), "not a model folder"),
    (("evaluate", "run/model", "--tasks", "respnse"), "did you mean 'response'"),
    (("evaluate", "run/model", "--tasks", "stsb", "--data", "."), "is not there"),
    (("evaluate", "py:nothing:at_all", "--tasks", "stsb", "--data", "."), "nothing:at_all"),
]


@pytest.mark.parametrize(("words", "message"), MISUSE, ids=lambda value: str(value)[:40])
def test_misuse_is_one_line_and_status_two(folder, words, message):
    told = run(*words, cwd=folder, expect=2)
    assert message in told.stderr
    assert told.stderr.strip().count("\n") == 0
    assert "Traceback" not in told.stderr
    assert not (folder / "x").exists()


LIMITED = (
    "import resource, sys; size = int(sys.argv.pop(1)); "
    "resource.setrlimit(resource.RLIMIT_FSIZE, (size, size)); "
    "from rejoinder.cli.main import run; run()"
)


@pytest.mark.slow
@pytest.mark.parametrize("size", [300, 1_000, 40_000])
def test_a_disk_that_fills_while_training_is_one_sentence(folder, size):
    words = ("train", "--config", "c.toml", "--pairs", "pairs", "--out", "full", "--overwrite")
    told = subprocess.run(
        [sys.executable, "-c", LIMITED, str(size), *words, "training.log_every=1"],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    assert told.returncode == 2
    assert "Traceback" not in told.stderr
    assert "can't be written: a file would exceed the size limit" in told.stderr
    assert not (folder / "full").exists()


def test_several_seeds_resume_as_one(folder):
    common = ("train", "--config", "c.toml", "--pairs", "pairs", "--seed", "1,2")
    run(*common, "--out", "whole", cwd=folder)
    run(*common, "--out", "parts", "--stop-at", "4", cwd=folder)
    shutil.rmtree(folder / "parts" / "seed-2")  # as if stopped before it began
    told = run(*common, "--out", "parts", "--resume", "--json", cwd=folder)
    assert {seed: result["steps"] for seed, result in json.loads(told.stdout).items()} == {
        "1": 10,
        "2": 10,
    }
    for seed in ("seed-1", "seed-2"):
        one, two = (folder / name / seed / "model" for name in ("whole", "parts"))
        assert {path.name: path.read_bytes() for path in one.iterdir()} == {
            path.name: path.read_bytes() for path in two.iterdir()
        }
    common = ("train", "--pairs", "pairs", "--out", "parts", "--resume")
    told = run(*common, cwd=folder, expect=2)
    assert "with the same seeds: --seed 1,2" in told.stderr
    told = run(*common[:-1], cwd=folder, expect=2)
    assert "--config is missing" in told.stderr


@pytest.mark.slow
@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_while_training_leaves_a_checkpoint_and_its_status(folder, number, status):
    out = f"stopped-{status}"
    words = ("train", "--config", "c.toml", "--pairs", "pairs", "--out", out)
    command = [sys.executable, "-c", "from rejoinder.cli.main import run; run()", *words]
    command.append("phases.0.steps=100000")
    with subprocess.Popen(command, cwd=folder, stderr=subprocess.PIPE, text=True) as process:
        metrics = folder / out / "metrics.jsonl"
        while process.poll() is None and not (metrics.exists() and metrics.stat().st_size):
            time.sleep(0.05)
        process.send_signal(number)
        _, told = process.communicate()
    assert process.returncode == status, told
    assert "continue with the same command and --resume" in told
    assert "Traceback" not in told
    assert list((folder / out / "checkpoints").glob("step-*"))
    assert not (folder / out / "model").exists()
