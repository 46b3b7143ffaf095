"""`rejoinder leaks`, and `train --exclude-leaks`."""

import json
import tomllib
from importlib.resources import files as package_files
from pathlib import Path

import pytest
from typer.testing import CliRunner

from rejoinder.cli.main import app
from rejoinder.datasets.leaks import shipped
from rejoinder.errors import InputError, TrainingError
from rejoinder.training.config.loading import load_config

CONFIGS = sorted(Path(str(package_files("rejoinder") / "data/configs")).glob("*.toml"))
LEAKING = "A man is playing a guitar."
"""A sentence of the STS Benchmark."""


def invoke(*words, status=0):
    result = CliRunner().invoke(app, list(map(str, words)), catch_exceptions=False)
    assert result.exit_code == status, result.output
    return result.stdout


def joined(paths):
    return ",".join(map(str, paths))


@pytest.fixture
def files(tmp_path) -> list[Path]:
    leaking, clean = tmp_path / "leaking.txt", tmp_path / "clean.txt"
    leaking.write_text(f"{LEAKING.upper()}\nnobody said this one\n")
    clean.write_text("nobody said this one\n")
    return [leaking, clean]


def test_lists_are_joined_by_commas_or_the_option_is_repeated(files, tmp_path):
    for words in (("--train", joined(files)), ("--train", files[0], f"--train={files[1]}")):
        found = json.loads(invoke("leaks", *words, "--eval", "stsb", "--json"))
        assert {Path(leak["train"]) for leak in found} == set(files)
    with_comma = files[1].rename(tmp_path / "a,b.txt")
    [leak, *_] = json.loads(invoke("leaks", "--train", with_comma, "--eval", "stsb", "--json"))
    assert leak["train"] == str(with_comma)
    with pytest.raises(InputError, match="--train names no file"):
        invoke("leaks", "--train", ",")


def test_a_table_of_what_occurs_a_line_for_what_does_not(files, monkeypatch):
    monkeypatch.setattr("rejoinder.cli.output.form_of_output", lambda: "table")
    told = invoke("leaks", "--train", joined(files), "--eval", "stsb,snli-test", "--show", 1)
    assert "leaking.txt: 2 rows" in told
    assert f"stsb-train: {LEAKING.upper()}" in told
    assert "clean.txt has no sentence of stsb-dev, stsb-test, stsb-train, snli-test" in told


def test_a_pipe_gets_a_row_for_every_source_and_set(files):
    header, *rows = invoke("leaks", "--train", joined(files), "--eval", "stsb").splitlines()
    cells = [dict(zip(header.split("\t"), row.split("\t"), strict=True)) for row in rows]
    found = json.loads(invoke("leaks", "--train", joined(files), "--eval", "stsb", "--json"))
    assert len(cells) == 6
    for row, leak in zip(cells, found, strict=True):
        assert row == {name: str(leak[name]) for name in row}


def test_json_has_every_source_and_set(files):
    found = json.loads(invoke("leaks", "--train", joined(files), "--json"))
    assert len(found) == 2 * 28
    cells = {(Path(one["train"]).name, one["evaluation"]): one for one in found}
    one = cells["leaking.txt", "stsb-train"]
    assert (one["sentences"], one["of_sentences"], one["rows"], one["train_rows"]) == (
        1,
        10_510,
        1,
        2,
    )
    assert not any(one["sentences"] for (name, _), one in cells.items() if name == "clean.txt")


def test_a_folder_of_pairs(small_pairs):
    [found] = json.loads(invoke("leaks", "--train", small_pairs, "--eval", "stsb-dev", "--json"))
    manifest = json.loads((small_pairs / "manifest.json").read_text())
    assert found["train_rows"] == manifest["splits"]["train"]


def test_misuse(files, tmp_path):
    with pytest.raises(InputError, match=r"'sts-12' .*'sts12'"):
        invoke("leaks", "--train", joined(files), "--eval", "sts-12")
    with pytest.raises(InputError, match=r"nothing\.jsonl"):
        invoke("leaks", "--train", tmp_path / "nothing.jsonl")
    with pytest.raises(InputError, match=r"x .*too long"):
        invoke("leaks", "--train", "x" * 300)
    with pytest.raises(InputError, match=r"x .*too long"):
        invoke("leaks", "--train", joined(files), "--eval", "x" * 300)
    invoke("leaks", "--eval", "stsb", status=2)


@pytest.mark.parametrize("path", CONFIGS, ids=lambda path: path.stem)
def test_every_shipped_recipe_excludes_the_leaks_of_all_sets(path):
    assert tomllib.loads(path.read_text())["training"]["exclude_leaks"] is True
    assert {*load_config(path).training.excluded_sets, "stsb-train"} == shipped().keys()


@pytest.mark.parametrize(("flag", "sets"), [("--exclude-leaks", 27), ("--no-exclude-leaks", 0)])
def test_training_is_told_whether_to_exclude(small_pairs, tmp_path, flag, sets):
    config = tmp_path / "c.toml"
    config.write_text(
        'name = "tiny"\n[text]\nmin_count = 2\n[encoder]\nkind = "dan"\nwidth = 8\nlayers = []\n'
        f"[head]\nlayers = [8]\n[training]\nexclude_leaks = {str(not sets).lower()}\n"
        "[[phases]]\nsteps = 2\nbatch_size = 8\n"
    )
    run = tmp_path / "run"
    common = ("train", "--config", config, "--pairs", small_pairs, "--out", run)
    invoke(*common, flag)
    assert len(json.loads((run / "manifest.json").read_text())["leak_sets"]) == sets
    training = json.loads((run / "model" / "config.json").read_text())["training"]
    assert len(training["leak_sets"]) == sets
    # "Is it expensive?", a subject of CQA, is in ten pairs of the example
    assert training["leaks_by_set"].get("cqa2016-dev", 0) == (10 if sets else 0)
    assert training["leaks_dropped"] == (85 if sets else 0)
    invoke(*common, flag, "--resume")
    with pytest.raises(TrainingError, match="config"):
        invoke(*common, "--resume")
