"""`make demo`: with a dump of one's own or without, in any order."""

import runpy
from pathlib import Path
from zipfile import ZipFile

import pytest

from rejoinder import Suggestions
from rejoinder.conversations.explore import MADE_UP
from rejoinder.corpus.extract import extract
from rejoinder.models.folder import write_model
from tiny_models import dan_model

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
DEMO = EXAMPLES / "demo.py"


@pytest.fixture(autouse=True)
def _script(monkeypatch):
    """A script finds the scripts next to it."""
    monkeypatch.syspath_prepend(EXAMPLES)


def test_a_dump_of_ones_own_leaves_the_model_of_the_readme_alone():
    output_folder = runpy.run_path(str(DEMO))["output_folder"]
    own, yours = output_folder(None), output_folder("dump.zst")
    assert own == Path("demo")
    for inside in ("run", "pairs", "results.json"):
        assert own / inside not in (yours, *yours.parents)


def test_the_model_of_the_package_stands_beside_the_new_one(
    shipped, small_pairs, tmp_path, monkeypatch, capsys
):
    show_neighbours = runpy.run_path(str(DEMO))["show_neighbours"]
    write_model(tmp_path / "new", dan_model())
    show_neighbours(tmp_path / "new", small_pairs)
    assert "(rejoinder-base)" in capsys.readouterr().out  # no column is cut off
    monkeypatch.setattr("rejoinder.models.find.FOLDER", tmp_path / "none")
    show_neighbours(tmp_path / "new", small_pairs)
    shown = capsys.readouterr().out
    assert "How old are you?" in shown
    assert "rejoinder-base" not in shown


def test_the_made_up_export_holds_the_made_up_conversations(tmp_path):
    write_export = runpy.run_path(str(EXAMPLES / "slack_export.py"))["write_export"]
    write_export(tmp_path / "slack.zip")
    manifest = extract(tmp_path / "slack.zip", tmp_path / "pairs", split=(80.0, 10.0, 10.0))
    [export] = manifest.exports
    assert (export.format, export.malformed) == ("slack", 0)
    assert export.messages > 9_000
    assert export.linked > 6_000
    assert min(manifest.splits.values()) > 300
    past = Suggestions.open(tmp_path / "pairs")
    found = past.suggest("How do I get a new password?")
    assert found.is_good
    assert "login page" in found.suggestions[0].reply
    assert past.fitted.outcome.coverage > 0.2
    write_export(tmp_path / "again.zip")
    assert (tmp_path / "again.zip").read_bytes() == (tmp_path / "slack.zip").read_bytes()
    with ZipFile(tmp_path / "slack.zip") as written, ZipFile(MADE_UP) as shipped:
        assert written.namelist() == shipped.namelist()
        assert all(written.read(name) == shipped.read(name) for name in written.namelist())
