"""`rejoinder data`: what it shows, lays out and refuses."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from rejoinder.cli.data import list_sets
from rejoinder.cli.main import app
from rejoinder.errors import InputError, StorageError


def call(*words: object) -> str:
    result = CliRunner().invoke(app, ["data", *map(str, words)], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.stdout


def test_the_list(tmp_path):
    words = ["data", "list", "--data", str(tmp_path)]
    piped = CliRunner().invoke(app, words, catch_exceptions=False)
    header, *rows = [line.split("\t") for line in piped.stdout.splitlines()]
    assert header == ["id", "rows", "here", "what", "licence", "citation"]
    assert {tuple(row[:3]) for row in rows} >= {("stsb", "8628", "absent")}
    assert len(rows) == 41
    assert "addresses" in piped.stderr
    whole = call("list", "stsb", "--data", tmp_path)
    assert "557a86abbd2b76ee6768d8b5103b659601a9d26b797898c7467812f303b21280" in whole
    assert "http://ixa2.si.ehu.es/stswiki/images/4/48/Stsbenchmark.tar.gz" in whole
    assert "sts-train.csv: 5,749 rows, not here" in whole
    tree = json.loads(call("list", "--json", "--data", tmp_path))
    assert len(tree["sets"]) == 41
    assert {one["here"]["state"] for one in tree["sets"]} == {"absent"}


@pytest.mark.slow
@pytest.mark.shared_data
def test_the_list_needs_no_extra(shared_data):
    script = (
        "import sys; sys.modules.update(dict.fromkeys(['polars', 'scipy', 'httpx', 'pydantic']))\n"
        "from rejoinder.cli.main import app\n"
        "app(['data', 'list', '--quiet', '--data', sys.argv[1]])"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, shared_data], capture_output=True, text=True, check=False
    )
    assert "\nstsb\t8628\tcomplete\t" in done.stdout, done.stderr


def test_misuse(tmp_path):
    for words, message in (
        (("list", "stsx"), "'stsx' is not .* did you mean 'sts"),
        (("add", "stsb", tmp_path / "none"), "none does not exist"),
        (("add", "stsb", tmp_path), "has no file of STSBenchmark"),
    ):
        with pytest.raises(InputError, match=message):
            call(*words, "--data", tmp_path / "data")


@pytest.mark.parametrize("names", [("stsb,mr",), ("stsb", "mr"), ("stsb, mr",)])
def test_several_names_are_words_or_joined_by_commas(tmp_path, names):
    told = json.loads(call("list", *names, "--json", "--data", tmp_path))
    assert [dataset["id"] for dataset in told["sets"]] == ["stsb", "mr"]


def test_quiet_prints_the_table_alone(tmp_path):
    words = ["data", "list", "--quiet", "--data", str(tmp_path)]
    result = CliRunner().invoke(app, words, catch_exceptions=False)
    assert result.stdout.startswith("id\trows")
    assert result.stderr == ""


def test_what_can_not_be_fetched_is_said_with_status_2(tmp_path):
    words = ["data", "fetch", "cqa16", "--data", str(tmp_path)]
    result = CliRunner().invoke(app, words, catch_exceptions=False)
    assert result.exit_code == 2
    assert "rejoinder data add cqa16 FILE" in result.stderr


def test_the_list_fits_a_terminal_of_80_columns(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    monkeypatch.setenv("TERM", "dumb")  # 80 columns, no colours
    list_sets(None, tmp_path)
    told = capsys.readouterr().out
    assert "coordinationinversion" in told
    assert max(map(len, told.splitlines())) <= 80


def mpqa(folder: Path) -> Path:
    folder.mkdir()
    (folder / "mpqa.pos").write_text("good\n")
    (folder / "mpqa.neg").write_text("bad\n")
    return folder


def test_another_number_of_rows_is_said_by_add_and_list(tmp_path):
    source, data = mpqa(tmp_path / "in"), tmp_path / "data"
    told = call("add", "mpqa", source, "--data", data)
    assert f"mpqa: 2 files below {data}" in told
    assert re.search("MPQA has 2 rows here; .* 10,606", told)
    assert re.search("MPQA has 2 rows here; .* 10,606", call("list", "mpqa", "--data", data))
    sick = data / "downstream/SICK/SICK_train.txt"
    sick.parent.mkdir()
    sick.write_text("pair_ID\n1\ta\tb\t3\tNEUTRAL\n")
    words = ["data", "list", "--data", str(data)]
    listed = CliRunner().invoke(app, words, catch_exceptions=False)
    assert "sick\t9927\tdamaged" in listed.stdout
    assert f"{sick} line 1" in listed.stderr
    header = "pair_ID\tsentence_A\tsentence_B\trelatedness_score\tentailment_judgment\n"
    sick.write_text(header + "1\ta\tb\t3\tNEUTRAL\n")
    said = f"{sick} has 1 rows; the published file has 4,500."
    assert said in CliRunner().invoke(app, words, catch_exceptions=False).stderr


@pytest.mark.skipif(sys.platform != "linux", reason="the paths are those of Linux")
@pytest.mark.parametrize("data", ["/proc/none", "/dev/null", "x" * 300])
def test_a_folder_that_can_t_be_written_is_said_before_the_work(tmp_path, data):
    with pytest.raises(StorageError, match=f"^{data}"):
        call("add", "mpqa", mpqa(tmp_path / "in"), "--data", data)


@pytest.mark.shared_data
def test_adding_and_listing(shared_data, tmp_path):
    archive = shared_data / "archives/Stsbenchmark.tar.gz"
    assert "stsb: 5 files" in call("add", "stsb", archive, "--data", tmp_path)
    assert "sts-dev.csv: 1,500 rows, here" in call("list", "stsb", "--data", tmp_path)
    [again] = json.loads(call("add", "sts", archive, "--data", tmp_path, "--json"))
    assert again["id"] == "stsb"
    assert again["missing"] == []
