"""Evaluate, compare, repeat and report by their commands, on made-up files."""

import json

import numpy as np
import polars as pl
import pytest
from typer.testing import CliRunner

from rejoinder.cli.main import app
from rejoinder.datasets.sts_years import SUBSETS
from rejoinder.errors import InputError

WORDS = ["red", "green", "blue", "old", "young", "tall", "short", "warm", "cold", "quick"]


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    """STS12 and STS14, made up: pairs that share as many words as their gold says."""
    root = tmp_path_factory.mktemp("data")
    generator = np.random.default_rng(0)
    for year in (12, 14):
        folder = root / f"downstream/STS/STS{year}-en-test"
        folder.mkdir(parents=True)
        for subset in SUBSETS[year]:
            pairs, gold = [], []
            for _ in range(60):
                words = generator.permutation(WORDS)
                shared = int(generator.integers(0, 6))
                pairs.append(f"{' '.join(words[:5])}\t{' '.join(words[5 - shared : 10 - shared])}")
                gold.append(f"{shared + generator.normal(0, 0.3):.2f}".replace("-", ""))
            gold = [str(min(float(score), 5.0)) for score in gold]
            (folder / f"STS.input.{subset}.txt").write_text("\n".join(pairs) + "\n")
            (folder / f"STS.gs.{subset}.txt").write_text("\n".join(gold) + "\n")
    return root


def json_of(*words):
    return json.loads(call(*words, "--json").output)


def refused(*words):
    """The message of the error that a command ends with."""
    result = CliRunner().invoke(app, [str(word) for word in words])
    assert isinstance(result.exception, InputError), result.output
    return str(result.exception)


def call(*words, expect=0):
    result = CliRunner().invoke(app, [str(word) for word in words])
    assert result.exit_code == expect, result.output
    return result


@pytest.fixture(scope="module")
def results(data, tmp_path_factory):
    folder = tmp_path_factory.mktemp("results")
    for name in ("bow", "random"):
        place = folder / f"{name}.json"
        call(
            "evaluate", f"baseline:{name}", "--tasks", "sts12,sts14", "--data", data, "--out", place
        )
    return folder


def test_what_is_done_is_not_done_again(results, data):
    place = results / "bow.json"
    before = json.loads(place.read_text())
    call("evaluate", "baseline:bow", "--tasks", "sts12", "--data", data, "--out", place)
    assert json.loads(place.read_text()) == before
    words = ("evaluate", "baseline:tfidf", "--tasks", "sts12", "--data", data, "--out", place)
    assert "another encoder" in refused(*words)


def test_missing_data_is_named_and_the_status_says_so(data):
    words = ["evaluate", "baseline:bow", "--tasks", "sts12,sts13", "--data", data]
    told = call(*words, expect=2)
    assert "sts13/cosine missing: STS13 (any form) is not there" in told.output
    assert "sts12/cosine" in told.output
    call(*words, "--skip-missing")


def test_a_repetition_finds_nothing_new(results):
    told = call("evaluate", "--repeat", results / "bow.json")
    assert "0 differ" in told.output
    assert "are the same" in told.output


def test_the_worst_items_are_shown(data):
    told = call("evaluate", "baseline:bow", "--tasks", "sts12", "--data", data, "--worst", "3")
    assert told.output.count(" | ") >= 3


def test_a_large_difference_is_separable(results):
    told = json_of("compare", results / "bow.json", results / "random.json")
    assert [one["task"] for one in told] == ["sts12/cosine", "sts14/cosine"]
    assert all(one["separable"] and one["difference"] > 0.2 for one in told)
    low, high = told[0]["interval"]
    assert low < told[0]["difference"] < high
    itself = json_of("compare", results / "bow.json", results / "bow.json")
    assert not any(one["separable"] for one in itself)
    told = call("compare", results / "bow.json", results / "bow.json").stdout
    head, *rows = [line.split("\t") for line in told.splitlines()]
    assert all(dict(zip(head, row, strict=True))["separable"] == "no" for row in rows)


def test_other_items_are_not_compared(results, tmp_path):
    tree = json.loads((results / "bow.json").read_text())
    (tmp_path / "cut.predictions").mkdir()
    for one in tree["results"]:
        source = results / one["predictions"]["file"]
        name = f"cut.predictions/{source.name}"
        pl.read_parquet(source).head(10).write_parquet(tmp_path / name)
        one["predictions"]["file"] = name
    (tmp_path / "cut.json").write_text(json.dumps(tree))
    assert "is not the file" in refused("compare", tmp_path / "cut.json", results / "bow.json")


def test_a_report_has_tables_and_plots(results, tmp_path):
    pytest.importorskip("matplotlib")
    out = tmp_path / "report"
    call("report", results / "bow.json", results / "random.json", "--out", out)
    markdown = (out / "tables.md").read_text()
    assert "baseline:bow (ours)" in markdown
    assert "| InferSent | 0.592 |" in markdown
    assert r"\begin{tabular}" in (out / "tables.tex").read_text()
    assert (out / "tables.csv").read_text().startswith('"All tasks')
    page = (out / "index.html").read_text()
    assert page.count("<svg") == 1
    assert "Char-phrase" in page
    again = tmp_path / "again"
    call("report", results / "bow.json", results / "random.json", "--out", again)
    assert (again / "bars.svg").read_bytes() == (out / "bars.svg").read_bytes()
