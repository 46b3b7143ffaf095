"""`rejoinder data licences`, and the commands of its page."""

import json
import re
import shlex
from pathlib import Path

from typer.testing import CliRunner

from rejoinder.cli.main import app
from rejoinder.datasets.catalogue import all_rows
from rejoinder.errors import InputError

PAGE = Path(__file__).resolve().parents[2] / "docs" / "data.md"


def licences(*words):
    return CliRunner().invoke(app, ["data", "licences", *map(str, words)])


def test_all_known_data_are_listed():
    header, *lines = licences().stdout.splitlines()
    assert header.split("\t")[:4] == ["name", "rows", "licence", "open"]
    assert len(lines) == len(all_rows())
    rows = {row["name"]: row for row in json.loads(licences("--json").stdout)}
    assert rows["sgd"]["open"] == "yes"
    assert rows["friends"]["licence"] == "none stated (repository: MIT)"


def test_the_data_of_a_config_are_listed_with_their_rows(small_pairs):
    result = licences("dan-multitask-modern", "--pairs", small_pairs)
    lines = result.stdout.splitlines()[1:]
    assert lines[0].split("\t")[2:5] == ["not stated", "no", "source"]
    assert int(lines[0].split("\t")[1]) > 100
    assert any(line.startswith("captions/coco_val2014_karpathy") for line in lines)
    assert re.search(rf"^  \d+ of {len(lines)} are not openly licensed$", result.stderr, re.M)
    assert licences("dan-multitask-modern", "--pairs", small_pairs, "--quiet").stderr == ""
    assert licences("demo").stdout.splitlines()[1].startswith("the pairs\t\tnot stated")


def test_pairs_without_a_config_are_refused(small_pairs):
    assert isinstance(licences("--pairs", small_pairs).exception, InputError)


def test_the_commands_of_the_page_run(small_pairs, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    Path("pairs").symlink_to(small_pairs)
    section = PAGE.read_text("utf-8").partition("## Licences of training data")[2]
    [block] = re.findall(r"```sh\n(.*?)```", section, re.DOTALL)
    commands = [shlex.split(line, comments=True) for line in block.splitlines()]
    assert len(commands) >= 3
    for command in commands:
        result = CliRunner().invoke(app, command[1:])
        assert result.exit_code == 0, (command, result.output)
        assert result.stdout
