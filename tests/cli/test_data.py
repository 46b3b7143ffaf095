"""`rejoinder data`: what it shows, lays out and refuses."""

import json

import pytest
from typer.testing import CliRunner

from rejoinder.cli.main import app
from rejoinder.errors import InputError


def call(*words: object) -> str:
    result = CliRunner().invoke(app, ["data", *map(str, words)], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.stdout


def test_the_list(tmp_path):
    table = call("list", "--data", tmp_path)
    assert "stsb" in table
    assert "none could be checked" in " ".join(table.split())
    whole = call("list", "stsb", "--data", tmp_path)
    assert "557a86abbd2b76ee6768d8b5103b659601a9d26b797898c7467812f303b21280" in whole
    assert "http://ixa2.si.ehu.es/stswiki/images/4/48/Stsbenchmark.tar.gz" in whole
    assert "sts-train.csv: 5,749 rows, not here" in whole
    tree = json.loads(call("list", "--json", "--data", tmp_path))
    assert len(tree["sets"]) == 31
    assert {one["here"]["state"] for one in tree["sets"]} == {"absent"}


def test_misuse(tmp_path):
    for words, message in (
        (("list", "stsx"), "is no data set and no group; did you mean 'sts"),
        (("add", "stsb", tmp_path / "none"), "is not there"),
        (("add", "stsb", tmp_path), "has no file of STSBenchmark"),
    ):
        with pytest.raises(InputError, match=message):
            call(*words, "--data", tmp_path / "data")


def test_what_can_not_be_fetched_is_said_with_status_2(tmp_path):
    words = ["data", "fetch", "cqa16", "--data", str(tmp_path)]
    result = CliRunner().invoke(app, words, catch_exceptions=False)
    assert result.exit_code == 2
    assert "rejoinder data add cqa16 FILE" in result.stderr


@pytest.mark.shared_data
def test_adding_and_listing(shared_data, tmp_path):
    archive = shared_data / "archives/Stsbenchmark.tar.gz"
    told = call("add", "stsb", archive, "--data", tmp_path)
    assert "is not the official archive" in told
    assert "sts-dev.csv: 1,500 rows, here" in call("list", "stsb", "--data", tmp_path)
    [again] = json.loads(call("add", "sts", archive, "--data", tmp_path, "--json"))
    assert again["id"] == "stsb"
    assert again["missing"] == []
