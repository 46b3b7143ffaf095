"""New kinds, defined here and registered, go all the way without an edit of the package."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from config_reference import page
from rejoinder.cli.main import app
from rejoinder.encoders import ENCODERS, register_encoder
from rejoinder.errors import ConfigError, InputError
from rejoinder.evaluation import metrics, tasks
from rejoinder.evaluation.report import compare
from rejoinder.inference.encoder import SentenceEncoder
from rejoinder.training.config.loading import load_config, to_toml
from rejoinder.training.objectives import OBJECTIVES, register_objective
from runs import same_files

HERE = Path(__file__).parent
DOCS = HERE.parents[1] / "docs" / "extend"
TEXTS = ["How old are you?", "What is your age?", "", "I live in Oslo."]
CONFIG = """
name = "extended"
[text]
min_count = 2
[encoder]
kind = "gated"
dim = 12
[head]
layers = [12]
[optimizer]
dense = "adam"
table = "adagrad"
[training]
log_every = 10
evaluate_every = 10
[export]
dtype = "float32"
[[tasks]]
objective = "responses"
share = 0.5
[[tasks]]
objective = "margin"
share = 0.5
data = ["groups.jsonl"]
margin = 0.2
batch_size = 16
[[phases]]
steps = 30
batch_size = 64
learning_rate = 0.01
"""


@pytest.fixture(autouse=True)
def _registered(monkeypatch):
    """The new kinds are known within a test only."""
    monkeypatch.syspath_prepend(HERE)
    from ages import AGES, ERROR
    from gated import GATED
    from margin import MARGIN

    register_encoder(GATED)
    register_objective(MARGIN)
    metrics.register_metric(ERROR)
    tasks.register_family(AGES)
    yield
    ENCODERS.remove("gated")
    OBJECTIVES.remove("margin")
    metrics.METRICS.remove(ERROR.name)
    tasks.FAMILIES.remove("ages/cosine")


@pytest.fixture
def run_command(tmp_path):
    def call(*arguments):
        result = CliRunner().invoke(app, [str(argument) for argument in arguments])
        assert result.exit_code == 0, result.output
        return result

    (tmp_path / "config.toml").write_text(CONFIG, "utf-8")
    return call


def test_config_train_resume_export_load_encode_evaluate_compare(
    run_command, small_pairs, labelled, tmp_path
):
    train = ["train", "--config", tmp_path / "config.toml", "--pairs", small_pairs]
    train += ["--data", labelled, "--threads", "1"]
    whole, parts = tmp_path / "whole", tmp_path / "parts"
    run_command(*train, "--out", whole)
    run_command(*train, "--out", parts, "--stop-at", 15)
    assert not (parts / "model").exists()
    run_command(*train, "--out", parts, "--resume")
    assert same_files(whole / "model", parts / "model")

    logged = [json.loads(line) for line in (whole / "metrics.jsonl").read_text().splitlines()]
    assert any("loss margin" in line for line in logged)
    model = SentenceEncoder.load(whole / "model")
    embeddings = model.encode(TEXTS)
    assert embeddings.shape == (4, 12)
    np.testing.assert_allclose(np.linalg.norm(embeddings, axis=1), [1, 1, 0, 1], atol=1e-5)
    config = json.loads((whole / "model" / "config.json").read_text("utf-8"))
    assert config["encoder"] == {"kind": "gated", "dim": 12}
    assert config["heads"]["margin"]["layers"] == [12, 8]

    for name in ("whole", "untrained"):
        if name == "untrained":
            run_command(*train, "--out", tmp_path / name, "phases.0.steps=1")
        out = tmp_path / f"{name}.json"
        run_command("evaluate", tmp_path / name / "model", "--tasks", "ages", "--out", out)
    [result] = json.loads((tmp_path / "whole.json").read_text("utf-8"))["results"]
    assert (result["task"], result["n"]) == ("ages/cosine", 6)
    [comparison] = compare(tmp_path / "whole.json", tmp_path / "untrained.json").tasks
    assert comparison.score == "mean_error_share"
    assert comparison.first == result["scores"]["mean_error_share"]
    lower = "first" if comparison.difference < 0 else "second"
    assert replace(comparison, corrected=0.0).better == lower


def test_options_of_new_kinds_are_checked_and_documented(tmp_path):
    path = tmp_path / "config.toml"
    path.write_text(CONFIG, "utf-8")
    config = load_config(path)
    (tmp_path / "again.toml").write_text(to_toml(config), "utf-8")
    assert load_config(tmp_path / "again.toml") == config
    with pytest.raises(ConfigError) as refused:
        load_config(path, ["encoder.dim=0", "tasks.1.margin=3"])
    _, first, second = str(refused.value).splitlines()
    for line, facts in (
        (first, ("encoder.dim", "1", "0")),
        (second, ("tasks.1.margin ", "2", "3")),
    ):
        assert [fact for fact in facts if fact not in line] == []
    assert '`[encoder]`, `kind = "gated"`' in page()
    assert "Minimum difference of cosines." in page()


def test_names_are_given_once():
    with pytest.raises(InputError, match="encoder 'gated' is registered"):
        register_encoder(ENCODERS["gated"])
    with pytest.raises(InputError, match="objective 'margin' is registered"):
        register_objective(OBJECTIVES["margin"])
    with pytest.raises(InputError, match="'mean_error_share' is registered already"):
        metrics.register_metric(metrics.metric_of("mean_error_share"))
    with pytest.raises(InputError, match="'ages/cosine' of a task or group is registered already"):
        tasks.register_family(tasks.families_of(["ages/cosine"])[0][0])


@pytest.mark.parametrize(("document", "module"), [("encoder", "gated"), ("objective", "margin")])
def test_the_documentation_shows_this_code(document, module):
    code = (HERE / f"{module}.py").read_text("utf-8").split('"""\n\n', 1)[1]
    assert f"```python\n{code}```" in (DOCS / f"{document}.md").read_text("utf-8")
