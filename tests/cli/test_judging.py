"""Evaluate, compare, repeat and report by their commands, on made-up files."""

import json
import shutil

import numpy as np
import polars as pl
import pytest

from commands import call, refused
from rejoinder.errors import StorageError
from rejoinder.evaluation.report import compare as run_compare
from rejoinder.evaluation.results import read_results
from rejoinder.evaluation.run import score_tasks
from rejoinder.evaluation.tasks import Context
from sts_files import write_year

WORDS = ["red", "green", "blue", "old", "young", "tall", "short", "warm", "cold", "quick"]


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    """STS12 and STS14, made up: pairs that share as many words as their gold says."""
    root = tmp_path_factory.mktemp("data")
    generator = np.random.default_rng(0)

    def rows(_subset):
        for _ in range(60):
            words = generator.permutation(WORDS)
            shared = int(generator.integers(0, 6))
            score = min(abs(round(shared + generator.normal(0, 0.3), 2)), 5.0)
            yield " ".join(words[:5]), " ".join(words[5 - shared : 10 - shared]), score

    for year in (12, 14):
        write_year(root, rows, year)
    return root


def json_of(*words):
    return json.loads(call(*words, "--json").stdout)


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


def test_quiet_prints_results_alone(data, results, tmp_path):
    words = ("evaluate", "baseline:bow", "--tasks", "sts12", "--data", data)
    loud = call(*words, "--out", tmp_path / "r.json")
    again = call(*words, "--out", tmp_path / "r.json")
    quiet = call(*words, "--out", tmp_path / "r.json", "--quiet")
    assert "in " in again.stderr
    assert not quiet.stderr
    assert quiet.stdout == again.stdout == loud.stdout
    assert not call("compare", results / "bow.json", results / "random.json", "-q").stderr


def test_a_repetition_finds_nothing_new(results):
    told = call("evaluate", "--repeat", results / "bow.json")
    assert "0 differ" in told.output
    assert "are the same" in told.output


def test_the_worst_items_are_shown(data, results):
    words = ("evaluate", "baseline:bow", "--tasks", "sts12", "--data", data, "--worst", "3")
    assert call(*words).output.count(" | ") >= 3
    kept = json_of(*words, "--out", results / "bow.json")[0]["worst"]
    fresh = json_of(*words)[0]["worst"]
    assert [row["item"] for row in kept] == [row["item"] for row in fresh]
    assert {row["text"] for row in kept} == {""}


def scores_of(path):
    tree = json.loads(path.read_text())
    return {(row["task"], json.dumps(row["settings"])): row["scores"] for row in tree["results"]}


@pytest.fixture(scope="module")
def reviews(tmp_path_factory):
    """CR, made up: 60 sentences a class that share half of their words."""
    folder = tmp_path_factory.mktemp("reviews") / "downstream/CR"
    folder.mkdir(parents=True)
    generator = np.random.default_rng(0)
    for name, words in (("custrev.pos", WORDS[:7]), ("custrev.neg", WORDS[3:])):
        rows = [" ".join(generator.choice(words, 3)) for _ in range(60)]
        (folder / name).write_text("\n".join(rows) + "\n")
    return folder.parents[1]


@pytest.mark.slow
def test_other_settings_are_scored_and_kept_beside(reviews, tmp_path):
    pytest.importorskip("sklearn")
    words = ("evaluate", "baseline:random", "--tasks", "cr", "--data", reviews)
    first, second = ("--kfold", "2"), ("--mode", "compat", "--kfold", "3", "--seed", "7")
    for settings in (first, second, first):
        call(*words, *settings, "--out", tmp_path / "both.json")
    call(*words, *second, "--out", tmp_path / "fresh.json")
    both, fresh = scores_of(tmp_path / "both.json"), scores_of(tmp_path / "fresh.json")
    assert len(both) == 2
    assert fresh.items() <= both.items()
    told = json_of("evaluate", "--repeat", tmp_path / "both.json")
    assert all(told.pop("speeds"))
    assert told == {"same": sum(map(len, both.values())), "differ": []}
    [compared] = json_of("compare", tmp_path / "both.json", tmp_path / "fresh.json")
    assert compared["settings"] == "classifier scikit-learn, mode compat, kfold 3, seed 7"
    assert compared["difference"] == 0


def test_missing_rows_are_said(reviews):
    pytest.importorskip("sklearn")
    words = ("evaluate", "baseline:random", "--tasks", "cr", "--data", reviews, "--kfold", "2")
    told = call(*words)
    assert "all of cr has 120 rows, and 3,775 were published" in told.stderr
    said = refused(*words[:-1], "61")
    assert "cr/senteval, encoder baseline:random: kfold is 61" in said
    assert "Use at most 60 folds" in said


def test_other_data_is_scored_anew(data, tmp_path):
    place, other = tmp_path / "r.json", tmp_path / "other"
    words = ("evaluate", "baseline:bow", "--tasks", "sts12", "--out", place, "--data")
    call(*words, data)
    shutil.copytree(data, other)
    gold = other / "downstream/STS/STS12-en-test/STS.gs.MSRpar.txt"
    gold.write_text("\n".join(gold.read_text().splitlines()[::-1]) + "\n")
    call(*words, other)
    first, second = json.loads(place.read_text())["results"]
    assert first["scores"] != second["scores"]
    assert (first["run"]["data"], second["run"]["data"]) == (str(data), str(other))
    assert "0 differ" in call("evaluate", "--repeat", place).output


def test_a_score_edited_by_hand_is_refused(results, data, tmp_path):
    shutil.copytree(results, tmp_path / "copy")
    place = tmp_path / "copy" / "bow.json"
    tree = json.loads(place.read_text())
    tree["results"][1]["scores"]["pearson_weighted_mean"] = 0.99
    place.write_text(json.dumps(tree))
    for words in (
        ("compare", place, results / "bow.json"),
        ("report", place, "--out", tmp_path / "report"),
        ("evaluate", "--repeat", place),
        ("evaluate", "baseline:bow", "--tasks", "sts12", "--data", data, "--out", place),
    ):
        assert "results[1] was changed after it was written" in refused(*words)
    assert not (tmp_path / "report").exists()


def test_options_that_a_repetition_would_not_look_at_are_refused(results):
    said = refused("evaluate", "--repeat", results / "bow.json", "--kfold", "3")
    assert "leave out --kfold" in said
    assert "leave out a model" in refused("evaluate", "x", "--repeat", results / "bow.json")


def test_an_output_that_can_t_be_written_is_refused_before_the_work(data, results, tmp_path):
    (tmp_path / "file").write_text("")
    place = tmp_path / "file" / "r"
    for words in (
        ("evaluate", "py:no:such", "--tasks", "sts12", "--data", data, "--out", f"{place}.json"),
        ("report", results / "nothing.json", "--out", place),
    ):
        refused(*words, error=StorageError)
    cached = Sealed()
    with pytest.raises(StorageError):
        score_tasks(cached, ["sts12"], Context(data), cache=place)
    assert not cached.asked


class Sealed:
    """An encoder that tells its hash, and counts how often it was asked."""

    asked = 0

    def describe(self):
        return {"name": "sealed", "sha256": "1" * 64}

    def encode(self, sentences):
        self.asked += 1
        return np.ones((len(sentences), 2))


@pytest.mark.parametrize("width", [120, 80, 60])
def test_no_word_and_no_number_is_split(width, results, capsys, monkeypatch):
    from rejoinder.cli.evaluate import _show, _show_table

    monkeypatch.setenv("COLUMNS", str(width))
    bow, chance = results / "bow.json", results / "random.json"
    found = read_results(bow)
    _show_table(found)
    _show("bow.json against random.json", run_compare(bow, chance).tasks)
    shown = capsys.readouterr().out
    assert max(map(len, shown.splitlines())) <= width
    words = shown.split()
    for one in found:
        assert f"{one.scores[one.main]:.4f}" in words
        assert one.task in words
    assert ("interval" in words) or width < 120
    assert "No room for" in shown or width == 120
    assert "…" not in shown


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
    cut = tmp_path / "bow.json"
    shutil.copy(results / "bow.json", cut)
    (tmp_path / "bow.predictions").mkdir()
    for source in (results / "bow.predictions").glob("*.parquet"):
        pl.read_parquet(source).head(10).write_parquet(tmp_path / "bow.predictions" / source.name)
    assert "is not the file" in refused("compare", cut, results / "bow.json")


def test_a_board_is_a_page_of_its_results(results, tmp_path):
    out = tmp_path / "board"
    told = json_of("board", results / "bow.json", results / "random.json", "--out", out)
    assert told["files"] == [str(out / "index.html")]
    assert "baseline:bow" in (out / "index.html").read_text("utf-8")
    assert "two encoders" in refused("board", results / "bow.json", "--out", tmp_path / "one")


def test_a_report_has_tables_and_plots(results, tmp_path):
    pytest.importorskip("matplotlib")
    out = tmp_path / "report"
    call("report", results / "bow.json", results / "random.json", "--out", out)
    markdown = (out / "tables.md").read_text()
    assert "| baseline:bow |" in markdown
    assert "| InferSent | 0.592 |" in markdown
    page = (out / "index.html").read_text()
    assert page.count("<svg") == 1
    assert "Char-phrase" in page
    again = tmp_path / "again"
    call("report", results / "bow.json", results / "random.json", "--out", again)
    assert (again / "bars.svg").read_bytes() == (out / "bars.svg").read_bytes()
