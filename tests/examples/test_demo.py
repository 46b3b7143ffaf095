"""`make demo`: with a dump of one's own or without, in any order."""

import runpy
from pathlib import Path

from rejoinder.models.folder import write_model
from tiny_models import dan_model

DEMO = Path(__file__).resolve().parents[2] / "examples" / "demo.py"


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
    monkeypatch.setattr("rejoinder.models.shipped.FOLDER", tmp_path / "none")
    show_neighbours(tmp_path / "new", small_pairs)
    shown = capsys.readouterr().out
    assert "How old are you?" in shown
    assert "rejoinder-base" not in shown
