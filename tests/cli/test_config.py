"""`rejoinder config`: what it shows is a config, what it checks is told whole."""

import json
import tomllib

import pytest
from typer.testing import CliRunner

from rejoinder.cli.main import app
from rejoinder.errors import ConfigError, InputError
from rejoinder.training.config.loading import load_config, parse_config, shipped_names


def config(*words: str):
    return CliRunner().invoke(app, ["config", *words])


@pytest.mark.parametrize("name", shipped_names())
def test_show_prints_the_whole_config(name):
    shown = config("show", name)
    assert shown.exit_code == 0
    tree = tomllib.loads(shown.stdout)
    assert parse_config(tree, "shown") == load_config(name)
    assert tree["training"]["seed"] == 0
    assert json.loads(config("show", name, "--json").stdout) == tree


def test_show_applies_overrides_and_leaves_out_keys_without_effect():
    tree = tomllib.loads(config("show", "demo", "training.seed=7", "name=mine").stdout)
    assert (tree["training"]["seed"], tree["name"]) == (7, "mine")
    assert "activation" not in tree["encoder"]  # it acts between layers, and there are none
    assert isinstance(config("show", "dmo").exception, InputError)


def test_check_tells_all_faults_of_all_files(tmp_path):
    bad, absent = tmp_path / "bad.toml", tmp_path / "absent.toml"
    bad.write_text("sead = 1\n[[phases]]\nsteps = 0\n")
    result = config("check", "demo", str(bad), str(absent))
    assert (result.stdout, result.stderr) == ("", "demo: no faults\n")
    assert isinstance(result.exception, ConfigError)
    for fault in ("unknown key 'sead'", "phases.0.steps", "absent.toml can't be read"):
        assert fault in str(result.exception)
    faults = json.loads(config("check", "demo", str(bad), str(absent), "--json").stdout)
    assert [len(faults[str(file)]) for file in ("demo", bad, absent)] == [0, 2, 1]
    assert config("check", "demo", "--quiet").output == ""


def test_list_has_a_line_for_each_config():
    header, *lines = config("list").stdout.splitlines()
    assert header == "name\tencoder\tpurpose"
    assert [line.split("\t")[0] for line in lines] == [*shipped_names()]
    rows = json.loads(config("list", "--json").stdout)
    [demo] = [row for row in rows if row["name"] == "demo"]
    assert demo["encoder"] == "dan"
    assert all(row["purpose"] for row in rows)
