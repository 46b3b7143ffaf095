"""The card of a trained model, with its results and those of a baseline."""

import json
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from rejoinder.api.card import write_card
from rejoinder.api.evaluation import evaluate
from rejoinder.api.training import train
from rejoinder.cli.main import app
from rejoinder.errors import InputError, ModelError, TrainingError
from rejoinder.models.card import FILE
from rejoinder.models.find import find_model
from rejoinder.models.folder import read_model
from rejoinder.training.config.loading import parse_config
from runs import DAN

huggingface_hub = pytest.importorskip("huggingface_hub")

SHORT = {"phases": [{"steps": 4, "batch_size": 16, "learning_rate": 0.01}]}


@pytest.fixture(scope="module")
def work(small_pairs, tmp_path_factory):
    """A run, its results and those of baselines on the dev split of the pairs."""
    folder = tmp_path_factory.mktemp("work")
    run = train(parse_config({**DAN, **SHORT}, "test"), out=folder / "run", pairs=small_pairs)
    shutil.copytree(run.model, folder / "alone")
    for name, encoder in (("own", str(run.model)), ("bow", "baseline:bow")):
        options = {"pairs": small_pairs, "split": "dev", "out": folder / f"{name}.json"}
        evaluate(encoder, "response", **options)
    return folder


@pytest.mark.slow
def test_a_card_has_results_beside_baselines_and_the_time_of_training(work, tmp_path):
    out = tmp_path / "card.md"
    before = (work / "run" / "model" / FILE).read_bytes()
    options = {"results": [work / "own.json"], "baselines": [work / "bow.json"], "out": out}
    assert write_card(work / "run" / "model", **options) == out
    assert (work / "run" / "model" / FILE).read_bytes() == before
    text = out.read_text("utf-8")
    [row] = [line for line in text.split("\n") if line.startswith("| response/p@n dev, P@1 |")]
    own, bow = (
        json.loads((work / "own.json").read_text()),
        json.loads((work / "bow.json").read_text()),
    )
    scores = [f"{tree['results'][0]['scores']['P@1']:.4f}" for tree in (own, bow)]
    assert [cell.split()[0] for cell in row.split("|")[2:4]] == scores
    assert row.count(" to ") == 2  # intervals
    assert "| trained on | " in text
    assert "| minutes of training | 0." in text
    results = huggingface_hub.ModelCard(text).data.eval_results
    assert {result.metric_type for result in results} == {"P@1", "P@3", "P@10"}
    assert {result.task_type for result in results} == {"text-ranking"}
    again = tmp_path / "again.md"
    assert write_card(work / "run" / "model", **{**options, "out": again}).read_text() == text


def test_a_model_without_its_run_has_the_card_that_it_was_written_with(work, tmp_path):
    model = shutil.copytree(work / "alone", tmp_path / "model")
    (model / FILE).write_text("changed")
    assert write_card(model) == model / FILE
    assert (model / FILE).read_bytes() == (work / "alone" / FILE).read_bytes()
    write_card(model, run=work / "run")
    assert "| minutes of training | " in (model / FILE).read_text("utf-8")
    read_model(model)  # the card is not checked


def test_results_of_another_encoder_are_refused(work, tmp_path):
    with pytest.raises(InputError, match="baseline:bow"):
        write_card(work / "alone", results=[work / "bow.json"])
    with pytest.raises(InputError, match=r"`baseline` .* `results`"):
        write_card(work / "alone", baselines=[work / "bow.json"])
    with pytest.raises(InputError, match="can't be read as results"):
        write_card(work / "alone", results=[tmp_path / "none.json"])
    with pytest.raises(ModelError, match="is not a model folder"):
        write_card(tmp_path)
    with pytest.raises(TrainingError, match="is not a run"):
        write_card(work / "alone", run=tmp_path)


def test_the_command_writes_the_card_and_names_it(work, tmp_path):
    words = ["card", str(work / "alone"), "--results", str(work / "own.json")]
    result = CliRunner().invoke(app, [*words, "--out", str(tmp_path / "card.md")])
    assert (result.exit_code, result.stdout) == (0, "")
    assert result.stderr == f"wrote {tmp_path / 'card.md'}\n"
    words += ["--baseline", str(work / "bow.json"), "--out", str(tmp_path / "two.md"), "--json"]
    result = CliRunner().invoke(app, words)
    assert json.loads(result.stdout) == {"out": str(tmp_path / "two.md")}
    assert "| baseline:bow |" in (tmp_path / "two.md").read_text("utf-8")


def test_a_card_without_results_needs_no_extra(work, tmp_path):
    code = "import sys; sys.modules['polars'] = sys.modules['torch'] = None; "
    code += f"from rejoinder.api.card import write_card; write_card({str(work / 'alone')!r})"
    subprocess.run([sys.executable, "-c", code], check=True, cwd=tmp_path)


def test_info_shows_the_terms_and_what_they_follow_from(work):
    result = CliRunner().invoke(app, ["info", str(work / "alone")])
    assert "licence\tnot-stated\n" in result.stdout
    assert "data_licences\tthe licences of 5 of 5 sources and files are not known" in result.stdout


def test_the_commands_of_the_page_run(work, small_pairs, tmp_path, monkeypatch):
    page = (Path(__file__).resolve().parents[2] / "docs" / "train.md").read_text("utf-8")
    section = page.partition("## The model card")[2]
    monkeypatch.chdir(tmp_path)
    Path("pairs").symlink_to(small_pairs)
    shutil.copytree(work / "run", tmp_path / "runs" / "dan")
    commands = re.findall(r"```sh\n(.*?)```", section, re.DOTALL)[0].splitlines()
    for command in commands:
        result = CliRunner().invoke(app, shlex.split(command)[1:])
        assert result.exit_code == 0, (command, result.output)
    card = (tmp_path / "runs" / "dan" / "model" / FILE).read_text("utf-8")
    assert "| response/p@n test, P@1 |" in card
    assert huggingface_hub.ModelCard(card).data.license_name == "not-stated"


def test_only_the_card_of_an_installed_model_loads_it_by_name(tmp_path):
    installed, copied = tmp_path / "installed.md", tmp_path / "copied.md"
    write_card("rejoinder-small", out=installed)
    write_card(shutil.copytree(find_model("rejoinder-small"), tmp_path / "copy"), out=copied)
    assert 'SentenceEncoder("rejoinder-small")' in installed.read_text("utf-8")
    assert 'SentenceEncoder("path/to/this/folder")' in copied.read_text("utf-8")
