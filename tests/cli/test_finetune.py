"""`rejoinder finetune`: what it prints, and its status."""

import json

import pytest

from rejoinder.corpus.extract import extract
from rejoinder.models.find import find_model
from rejoinder.models.folder import read_model


def write(rows, folder):
    (folder / "faq.jsonl").write_text("\n".join(map(json.dumps, rows)))
    extract(
        folder / "faq.jsonl",
        folder / "pairs",
        columns="message=q,reply=a",
        rules="none",
        split=(60.0, 20.0, 20.0),
    )
    return folder / "pairs"


@pytest.mark.slow
def test_the_scores_before_and_after_are_shown(call, tmp_path):
    rows = [
        {"q": f"Help, my {thing} is broken since {n}", "a": f"Turn its {part} by {n * 7 % 100}"}
        for n in range(40)
        for thing, part in (("glorpf", "frobz"), ("jemmin", "wugga"), ("tramble", "quonk"))
        for _ in range(3)
    ]
    pairs = write(rows, tmp_path)
    command = ("finetune", "--pairs", pairs, "--model", "rejoinder-small", "--threads", "1")
    status, out, err = call(*command, "--out", tmp_path / "mine")
    assert status == 0, err
    shown = [line.split("\t") for line in out.splitlines()]
    assert [row[0].split(" of ")[0] for row in shown[1:]] == ["P@1", "P@10", "recall@10"]
    assert float(shown[1][2]) >= float(shown[1][1])
    assert "new words" in err
    status, out, _ = call("info", tmp_path / "mine", "--json")
    assert (status, json.loads(out)["name"]) == (0, "mine")
    status, _, err = call(*command, "--out", tmp_path / "mine")
    assert (status, "--overwrite" in err) == (2, True)
    status, out, _ = call(*command, "--out", tmp_path / "mine", "--overwrite", "--json")
    assert (status, json.loads(out)["folder"]) == (0, str(tmp_path / "mine"))


@pytest.mark.slow
def test_a_model_that_got_worse_ends_with_status_1(call, tmp_path, monkeypatch):
    nouns = read_model(find_model("rejoinder-small")).features.vocabulary.words[2_000:2_400]
    rows = [{"q": f"Where is my {noun}?", "a": f"Your {noun} is on the table"} for noun in nouns]
    pairs = write(rows, tmp_path)
    monkeypatch.setattr("rejoinder.api.finetuning._RATE", 0.3)
    monkeypatch.setattr("rejoinder.api.finetuning.SHARES", (1.0,))
    command = ("finetune", "--pairs", pairs, "--out", tmp_path / "mine", "--threads", "1")
    status, _, err = call(*command, "-m", "rejoinder-small")
    assert (status, "--force" in err) == (1, True)
    assert not (tmp_path / "mine").exists()
    assert call(*command, "-m", "rejoinder-small", "--force")[0] == 0
    assert (tmp_path / "mine" / "config.json").exists()
