"""`rejoinder export` and `rejoinder.export`, on a made-up benchmark and made-up pairs."""

import json
from functools import partial

import pytest

import commands
import rejoinder
from rejoinder.errors import DataMissingError
from rejoinder.models.folder import write_model
from runs import same_files
from sts_files import write_benchmark
from tiny_models import WORDS, dan_model

call, refused = partial(commands.call, "export"), partial(commands.refused, "export")


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """A working folder with a model and a dev split of the benchmark."""
    write_benchmark(tmp_path / "sts", {"dev": 40}, monkeypatch)
    write_model(tmp_path / "model", dan_model(layers=(), head=(4, 6), buckets=0, unknown_buckets=8))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_sizes_and_scores_are_shown_before_and_after(folder, small_pairs):
    shown = call("model", "--dtype", "int8", "--out", "small", "--data", "sts",
                 "--pairs", small_pairs, "--json")  # fmt: skip
    told = json.loads(shown.stdout)
    before, after, changes = (told[key] for key in ("before", "after", "changes"))
    assert (before["dtype"], after["dtype"]) == ("float32", "int8")
    assert after["rows"] == before["rows"] == len(WORDS) + 8
    assert after["bytes"] == sum(path.stat().st_size for path in (folder / "small").iterdir())
    assert set(changes) == set(before["scores"]) > {"STS-B Pearson"}
    for name, change in changes.items():
        assert change == after["scores"][name] - before["scores"][name]
    assert abs(changes["STS-B Pearson"]) < 0.02
    assert told["dropped"] == []


def test_a_table_is_printed_and_what_is_left_out_is_said(folder):
    said = call("model", "--dim", 3, "--any-dim", "--out", "small", "--tsv", "--data", "sts")
    header, before, after, change = [line.split("\t") for line in said.stdout.strip().split("\n")]
    assert header == ["model", "MB", "rows", "dim", "dtype", "STS-B Pearson"]
    assert (before[0], after[0], after[3]) == ("model", "small", "3")
    assert float(change[-1]) == pytest.approx(float(after[-1]) - float(before[-1]), abs=1e-5)
    assert "the head of responses was left out" in said.stderr
    plain = call("model", "--dtype", "float16", "--out", "half")
    assert "--data FOLDER and --pairs FOLDER show what" in plain.stderr
    assert call("model", "--dtype", "int8", "--out", "quiet", "-q").stderr == ""


def test_the_library_gives_the_bytes_of_the_command(folder):
    call("model", "--dtype", "int8", "--max-words", 20, "--unknown-buckets", 4, "--saturation", 3,
         "--name", "few", "--out", "one")  # fmt: skip
    exported = rejoinder.export(
        "model", "two", dtype="int8", max_words=20, unknown_buckets=4, saturation=3.0, name="few"
    )
    assert same_files(folder / "one", folder / "two")
    assert exported.encoder.describe()["name"] == "few"
    assert (exported.after.rows, exported.dropped, exported.changes) == (24, (), {})
    facts = exported.encoder.describe()["export"]
    assert facts["from"]["sha256"] == rejoinder.SentenceEncoder.load("model").describe()["sha256"]


def test_nothing_is_lost_or_half_written(folder):
    before = sorted(path.name for path in folder.iterdir())
    assert "no option is given" in refused("model", "--out", "small")
    assert "--any-dim" in refused("model", "--dim", 3, "--out", "small")
    assert "model is read" in refused("model", "--dtype", "int8", "--out", "model", "--overwrite")
    with pytest.raises(DataMissingError, match="is not there"):
        rejoinder.export("model", "small", dtype="int8", data="model")
    assert sorted(path.name for path in folder.iterdir()) == before
    call("model", "--dtype", "int8", "--out", "small")
    assert "--overwrite" in refused("model", "--dtype", "int8", "--out", "small")
