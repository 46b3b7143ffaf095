"""`rejoinder adapt`, and what the other commands make of what it writes, on made-up pairs."""

import json
import os
import subprocess
import sys
from functools import partial

import numpy as np
import pytest

import commands
from commands import call
from rejoinder.errors import RejoinderError
from rejoinder.evaluation.results import read_results
from rejoinder.inference.encoder import SentenceEncoder
from rejoinder.models.adaptation import Adaptation, FitSettings, read_adaptation
from rejoinder.models.folder import write_model
from sts_files import write_benchmark
from tiny_models import WORDS, dan_model

refused = partial(commands.refused, error=RejoinderError)

MODULE = """
import numpy as np


def bag(sentences):
    rows = np.zeros((len(sentences), 7), np.float32)
    for row, text in enumerate(sentences):
        for word in text.split():
            rows[row, len(word) % 7] += 1
    return rows
"""
SIZES = {"train": 200, "dev": 80, "test": 40}


@pytest.fixture(autouse=True)
def place(tmp_path, monkeypatch):
    """A working folder with a small benchmark, a model, and a module with an encoder."""
    write_benchmark(tmp_path / "sts", SIZES, monkeypatch)
    write_model(tmp_path / "model", dan_model())
    (tmp_path / "made_up_encoder.py").write_text(MODULE, "utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def adapt(encoder="model", out="adapted", *more):
    return call("adapt", encoder, "--sts", "sts", "--out", out, *more)


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def test_a_model_becomes_an_adapted_model(place):
    told = json.loads(adapt("model", "adapted", "--json", "--learning-rate", "0.003").stdout)
    facts = told["adaptation"]
    assert facts["dev_pearson_after"] > facts["dev_pearson_before"]
    assert (facts["pairs"], facts["dev_pairs"], facts["data"]["name"]) == (200, 80, "stsb")
    assert names(place / "adapted") == sorted([*names(place / "model"), "adaptation.safetensors"])
    plain, adapted = SentenceEncoder.load("model"), SentenceEncoder.load("adapted")
    assert adapted.describe()["adaptation"] == facts
    assert plain.describe()["adaptation"] is None
    assert np.abs(adapted.encode(WORDS) - plain.encode(WORDS)).max() > 1e-3
    assert adapted.rank("hello you", WORDS) == plain.rank("hello you", WORDS)
    said = call("info", "adapted", "--tsv").stdout
    assert "adaptation\ton stsb train, 200 pairs; Pearson on dev 0." in said
    assert json.loads(call("info", "adapted", "--json").stdout)["adaptation"] == facts


def test_evaluation_gives_what_adapt_says_and_counts_shared_pairs(place):
    facts = json.loads(adapt("model", "adapted", "--json").stdout)["adaptation"]
    (place / "sts/sts-test.csv").write_bytes(
        b"\n".join((place / "sts/sts-train.csv").read_bytes().upper().split(b"\n")[:40])
    )
    dev, test = json.loads(
        call("evaluate", "adapted", "--tasks", "stsb/angular", "--data", "sts", "--json").stdout
    )
    assert any(note.startswith("40 of 40 pairs are among") for note in test["notes"])
    assert test["encoder"]["adaptation"]["sha256"] == facts["sha256"]
    assert dev["scores"]["pearson"] == pytest.approx(facts["dev_pearson_after"], abs=1e-6)
    notes = call("evaluate", "adapted", "--tasks", "stsb/angular", "--data", "sts").stderr
    assert "40 of 40 pairs are among those that the encoder was adapted on" in " ".join(
        notes.split()
    )


def test_any_encoder_is_adapted_and_evaluated(place):
    name = "py:made_up_encoder:bag"
    told = adapt(name, "bag")
    assert "Pearson before" in told.stdout
    assert names(place / "bag") == ["adaptation.safetensors"]
    words = ("evaluate", name, "--tasks", "stsb/cosine", "--data", "sts", "--out", "r.json")
    call(*words, "--adaptation", "bag")
    result = read_results(place / "r.json")[0]
    assert result.encoder["adaptation"]["data"]["name"] == "stsb"
    assert result.run["adaptation"] == "bag"
    assert "another encoder" in refused(*words)
    call(*words, "--adaptation", "bag/adaptation.safetensors")
    assert " 0 differ" in call("evaluate", "--repeat", "r.json").stderr


def test_nothing_is_lost_or_half_written(place):
    before = names(place)
    (place / "full").mkdir()
    (place / "full/mine").write_text("x")
    assert "--overwrite" in refused("adapt", "model", "--sts", "sts", "--out", "full")
    assert names(place / "full") == ["mine"]
    adapt("model", "full", "--overwrite")
    assert "mine" not in names(place / "full")
    row = (place / "sts/sts-dev.csv").read_text("utf-8")
    (place / "sts/sts-dev.csv").write_text(row.replace("\t5\t5\t", "\t5\t5.5\t"), "utf-8")
    said = refused("adapt", "model", "--sts", "sts", "--out", "new")
    assert "sts-dev.csv line 6: found '5.5'" in said
    assert names(place) == sorted([*before, "full"])


def test_a_model_is_adapted_once(place):
    adapt("model", "adapted")
    said = refused("adapt", "adapted", "--sts", "sts", "--out", "again")
    assert "tiny is adapted already" in said


def test_bad_input_is_one_line(place):
    Adaptation(np.eye(9, dtype=np.float32), {}).write(place / "nine.safetensors")
    task = ("--tasks", "stsb/cosine", "--data", "sts")
    said = refused("evaluate", "model", *task, "--adaptation", "nine.safetensors")
    assert "fitted for 9 dimensions; the encoder's have 5" in said
    said = refused("evaluate", "py:made_up_encoder:bag", *task, "--adaptation", "nine.safetensors")
    assert "fitted for 9 dimensions; the encoder's have 7" in said
    assert "nowhere is missing" in refused("evaluate", "model", *task, "--adaptation", "nowhere")
    assert "is not there" in refused("adapt", "model", "--sts", "model", "--out", "new")
    assert "is not a model folder" in refused("adapt", "sts", "--sts", "sts", "--out", "new")
    words = ("adapt", "model", "--sts", "sts", "--out", "new", "--penalty", "-1")
    assert "penalty is -1" in refused(*words)
    assert not (place / "new").exists()


def test_the_options_are_those_of_the_library(place):
    adapt("model", "adapted")
    settings = read_adaptation(place / "adapted").facts["settings"]
    assert settings == vars(FitSettings())
    adapt("model", "other", "--seed", "3", "--penalty", "0.5", "--learning-rate", "0.01")
    settings = read_adaptation(place / "other").facts["settings"]
    assert (settings["seed"], settings["penalty"], settings["learning_rate"]) == (3, 0.5, 0.01)


def test_help_shows_examples():
    text = call("adapt", "--help").stdout
    assert text.count("rejoinder adapt ") >= 2


def test_using_an_adapted_model_loads_nothing_heavy(place):
    adapt("model", "adapted")
    script = (
        "import sys\n"
        "from rejoinder import SentenceEncoder\n"
        "SentenceEncoder.load('adapted').encode(['hello'])\n"
        "print(sorted({'torch', 'duckdb', 'sklearn', 'scipy.optimize'} & set(sys.modules)))\n"
    )
    run = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, env=dict(os.environ)
    )
    assert (run.stdout, run.stderr) == ("[]\n", "")
