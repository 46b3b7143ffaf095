"""A small reproduction from beginning to end, on real data; and an interrupted one continues."""

import json
from dataclasses import replace

import polars as pl
import pytest
import zstandard
from typer.testing import CliRunner

from rejoinder import export
from rejoinder.cli.main import app
from rejoinder.errors import InputError, ModelError
from rejoinder.training.config.loading import parse_config
from rejoinder_papers import budgets
from rejoinder_papers.budgets import BUDGETS, budget_of, multitask_config, response_config

pytestmark = pytest.mark.slow


def run(*arguments):
    return CliRunner().invoke(app, ["reproduce", *map(str, arguments)], catch_exceptions=True)


@pytest.fixture(scope="module")
def small(few_resamples):
    """The budget `smoke`, made smaller: 32 dimensions, for fits of 512 x 512 take a minute."""
    encoder = {
        **budgets._ENCODERS["dan"],
        "encoder": {"kind": "dan", "width": 32, "layers": []},
        "head": {"layers": [32, 32], "residual": True},
    }
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(budgets._ENCODERS, "dan", encoder)
        patch.setitem(BUDGETS, "smoke", replace(BUDGETS["smoke"], curve=(0.9,)))
        yield


@pytest.fixture(scope="module")
def data(shared_data, tmp_path_factory):
    """The real data with the first 2,000 rows of SNLI's train split."""
    folder = tmp_path_factory.mktemp("data")
    for path in shared_data.iterdir():
        if path.name != "nli":
            (folder / path.name).symlink_to(path.resolve())
    (folder / "nli").mkdir()
    for path in (shared_data / "nli").iterdir():
        if "train" not in path.name:
            (folder / "nli" / path.name).symlink_to(path.resolve())
    train = next((shared_data / "nli").glob("snli_1.0_train*.jsonl.zst"))
    rows = pl.read_ndjson(zstandard.open(train).read(), n_rows=2_000)
    rows.write_ndjson(folder / budgets.NLI[0])
    return folder


@pytest.fixture(scope="module")
def report(small, data, tmp_path_factory):
    out = tmp_path_factory.mktemp("reproduction") / "report"
    result = run("--data", data, "--out", out, "--budget", "smoke", "--threads", 1)
    assert result.exit_code == 0, result.output
    return out


@pytest.mark.shared_data
def test_every_table_and_figure_is_there(report):
    tables = (report / "tables.md").read_text("utf-8")
    for number in range(1, 7):
        assert f"### Table {number}:" in tables
    for row in (
        "| Transformer | 65.7 | 78.7 | 89.8 |",
        "| Reddit+SNLI | 0.814 | 0.885 | 0.756 | 0.646 | 0.782 | 0.891 | 0.764 | 0.585 |",
        "| Reddit+SNLI tuned (ours, dan) | 0.",
        "| Reddit+SNLI (ours, dan) | missing |",
        "cqa-b/2017 of Reddit",
    ):
        assert row in tables
    assert "nan" not in tables
    page = (report / "index.html").read_text("utf-8")
    assert page.count("<svg") == 2
    for name in ("figure7", "figure8"):
        assert "<svg" in (report / f"{name}.svg").read_text("utf-8")
    tree = json.loads((report / "results.json").read_text("utf-8"))
    assert list(tree["results"]) == ["Reddit", "Reddit tuned", "Reddit+SNLI", "Reddit+SNLI tuned"]
    assert list(tree["figure8"]) == ["0.9"]
    stages = tree["facts"]["stages"]
    assert stages["responses"]["steps"] == BUDGETS["smoke"].steps
    plain, tuned = (
        next(one for one in tree["results"][name] if one["task"] == "stsb/angular")["scores"]
        for name in ("Reddit", "Reddit tuned")
    )
    assert tuned["pearson"] > plain["pearson"]


@pytest.mark.shared_data
def test_it_continues_where_it_stopped(report, data):
    before = (report / "tables.md").read_bytes()
    models = report / "work/runs/multitask-90/model/config.json"
    kept = models.stat().st_mtime_ns
    (report / "work/results/Reddit.json").unlink()
    (report / "index.html").unlink()
    result = run("--data", data, "--out", report, "--budget", "smoke", "--quiet", "--json")
    assert result.exit_code == 0, result.output
    assert json.loads(result.stdout) == json.loads((report / "results.json").read_text("utf-8"))
    assert not result.stderr
    assert models.stat().st_mtime_ns == kept
    assert (report / "index.html").is_file()
    after = (report / "tables.md").read_bytes()
    assert after.split(b"### What it took")[0] == before.split(b"### What it took")[0]
    other = run("--data", data, "--out", report, "--budget", "quick")
    assert isinstance(other.exception, InputError)
    assert "holds a reproduction with other options" in str(other.exception)


@pytest.mark.slow
@pytest.mark.shared_data
def test_a_model_trained_elsewhere_has_rows_of_its_own(report, data, tmp_path):
    model = report / "work/runs/multitask/model"
    export(model, tmp_path / "model", dtype="int8", name="elsewhere")
    options = ("--data", data, "--out", report, "--budget", "smoke", "--quiet")
    result = run(*options, "--also", tmp_path / "model")
    assert result.exit_code == 0, result.output
    assert "`elsewhere`: trained elsewhere" in result.stdout
    sections = result.stdout.split("### ")
    for number, rows in ((1, 1), (2, 1), (3, 2), (4, 2), (6, 1)):
        section = next(one for one in sections if one.startswith(f"Table {number}:"))
        assert section.count("| elsewhere") == rows
    tree = json.loads((report / "results.json").read_text("utf-8"))
    scores = {
        name: next(one for one in tree["results"][name] if one["task"] == "stsb/angular")["scores"]
        for name in ("Reddit+SNLI", "elsewhere", "elsewhere tuned")
    }
    assert scores["elsewhere"]["pearson"] == pytest.approx(
        scores["Reddit+SNLI"]["pearson"], abs=0.01
    )
    assert scores["elsewhere tuned"]["pearson"] > scores["elsewhere"]["pearson"]
    twice = run(*options, "--also", tmp_path / "model", "--also", tmp_path / "model")
    assert isinstance(twice.exception, InputError)
    assert "there is another model 'elsewhere'" in str(twice.exception)
    missing = run(*options, "--also", tmp_path / "none")
    assert isinstance(missing.exception, ModelError)


def test_an_output_that_is_read_is_refused_and_kept(tmp_path):
    (tmp_path / "config.json").write_text("{}")
    result = run("--data", tmp_path, "--out", tmp_path, "--budget", "smoke")
    assert isinstance(result.exception, InputError)
    assert "not empty" in str(result.exception)
    assert [path.name for path in tmp_path.iterdir()] == ["config.json"]


@pytest.mark.parametrize("encoder", ["dan", "transformer"])
@pytest.mark.parametrize("budget", BUDGETS)
def test_every_config_can_be_read(encoder, budget):
    tree = response_config(encoder, budget_of(budget), 1)
    assert parse_config(tree, "responses").steps == BUDGETS[budget].steps
    both = parse_config(multitask_config(tree, budget_of(budget), "m", "nli.jsonl"), "both")
    assert [task.share for task in both.mixture] == (
        [0.95, 0.05] if budget == "full" else [0.5, 0.5]
    )
    assert both.training.init_from == "m"
    part = parse_config(multitask_config(tree, budget_of(budget), "m", "n", 0.3), "part")
    assert part.mixture[1].data[0].share == 0.3


def test_what_is_not_known_is_named():
    with pytest.raises(InputError, match=r"`budget` 'quik'.*'quick'"):
        budget_of("quik")
    with pytest.raises(InputError, match="`encoder` 'lstm'"):
        response_config("lstm", BUDGETS["smoke"], 1)


@pytest.mark.parametrize("encoder", ["dan", "transformer"])
def test_inference_is_learned_at_gentler_rates_than_responses(encoder):
    first = response_config(encoder, budget_of("standard"), seed=1)
    second = multitask_config(first, budget_of("standard"), "model", "nli.jsonl")
    [before], [after] = first["phases"], second["phases"]
    assert after["learning_rate"] == pytest.approx(before["learning_rate"] / 3)
    rates = [phase.get("table_learning_rate") for phase in (before, after)]
    if encoder == "transformer":  # has no table
        assert rates == [None, None]
    else:
        assert rates[1] == pytest.approx(rates[0] / 10)
