"""Commands without --model, by name, and the list of the models that come with the package."""

import json

import pytest
from typer.testing import CliRunner

from rejoinder.cli.main import app
from rejoinder.models.folder import write_model
from tiny_models import dan_model


def call(*words):
    return CliRunner().invoke(app, [str(word) for word in words])


@pytest.fixture
def here(tmp_path, monkeypatch):
    folder = tmp_path / "here"
    folder.mkdir()
    (folder / "lines.txt").write_text("hello you\nhow old are you\n")
    monkeypatch.chdir(folder)
    return folder


COMMANDS = (
    ("encode", "hello you"),
    ("similarity", "How old are you?", "What is your age?"),
    ("search", "hello", "--corpus", "lines.txt"),
    ("rank", "hello", "--responses", "lines.txt"),
    ("info",),
)


@pytest.mark.parametrize("words", COMMANDS, ids=lambda words: words[0])
def test_a_command_without_a_model_uses_the_default(shipped, here, words):
    default = call(*words, "--json")
    assert default.exit_code == 0, default.output
    option = () if words[0] == "info" else ("-m",)
    assert default.stdout == call(*words, *option, "rejoinder-base", "--json").stdout
    assert default.stdout != call(*words, *option, "rejoinder-small", "--json").stdout
    write_model(here / "rejoinder-base", dan_model(seed=1))
    assert call(*words, "--json").stdout == default.stdout


@pytest.mark.parametrize("words", COMMANDS, ids=lambda words: words[0])
def test_without_any_model_that_is_one_sentence(here, monkeypatch, words):
    monkeypatch.setattr("rejoinder.models.find.FOLDER", here / "none")
    error = call(*words).exception
    assert str(error) == (
        "no model named 'rejoinder-base' is installed (installed: none). Give the "
        "path of an existing model folder, such as RUN/model."
    )


def test_the_list_of_models(shipped):
    card = shipped / "rejoinder-small" / "MODEL_CARD.md"
    card.write_text("---\nlicense: cc-by-4.0\n---\n", "utf-8")
    base, small = json.loads(call("models", "--json").stdout)
    assert (base["name"], base["default"], base["licence"]) == (
        "rejoinder-base",
        True,
        "not-stated",
    )
    assert (small["name"], small["default"], small["dim"]) == ("rejoinder-small", False, 5)
    assert (small["kind"], small["licence"]) == ("dan", "cc-by-4.0")
    assert small["folder"] == str(shipped / "rejoinder-small")
    info = json.loads(call("info", "rejoinder-small", "--json").stdout)
    assert all(info[key] == small[key] for key in ("name", "dim", "bytes", "licence", "folder"))
    assert call("models", "--tsv").stdout.startswith("name\tdefault\tkind\tdim\tbytes\tlicence\t")


def test_a_list_of_no_models(tmp_path, monkeypatch):
    monkeypatch.setattr("rejoinder.models.find.FOLDER", tmp_path)
    result = call("models", "--json")
    assert (result.exit_code, result.stdout) == (0, "[]\n")
    assert "this installation has no models" in result.stderr
    assert call("models", "-q").stderr == ""
