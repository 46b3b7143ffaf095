"""`rejoinder train`: what it prints, and what it keeps to itself."""

import json
import re

import pytest
from typer.testing import CliRunner

from rejoinder.cli.main import app
from rejoinder.training.config.loading import parse_config, to_toml
from runs import DAN

SHORT = {**DAN, "phases": [{"steps": 2, "batch_size": 16}], "training": {"evaluate_every": 2}}


@pytest.fixture
def command(small_pairs, tmp_path):
    config = tmp_path / "c.toml"
    config.write_text(to_toml(parse_config(SHORT, "test")))
    return ["train", "--config", str(config), "--pairs", str(small_pairs), "--out"]


def test_quiet_prints_only_what_is_asked_for(command, tmp_path):
    result = CliRunner().invoke(app, [*command, str(tmp_path / "quiet"), "--quiet", "--json"])
    assert result.exit_code == 0, result.output
    assert result.stderr == ""
    tree = json.loads(result.stdout)
    assert (tree["steps"], tree["model"]) == (2, str(tmp_path / "quiet" / "model"))
    result = CliRunner().invoke(app, [*command, str(tmp_path / "loud")])
    assert "step 2 on dev: P@1 0." in result.stderr
    assert re.search(r"2 steps in \d+\.\d seconds, from 4,041 pairs \(0 left out\)", result.stderr)
    assert result.stdout == ""


def test_options_are_whole_in_a_narrow_terminal(monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    text = CliRunner().invoke(app, ["train", "--help"]).stdout
    assert "--no-exclude-leaks " in text
    assert "…" not in text
