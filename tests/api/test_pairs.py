"""Pairs and graded pairs in memory: rows, and tables of every library that hands over Arrow."""

import json

import polars as pl
import pytest

from rejoinder.api.evaluation import evaluate
from rejoinder.api.finetuning import finetune
from rejoinder.api.pairs import folder_of_pairs
from rejoinder.api.training import train
from rejoinder.corpus.writer import open_pairs
from rejoinder.errors import DataMissingError, InputError
from rejoinder.training.config.loading import parse_config
from runs import DAN

ROWS = [(f"how do I reset the {n % 40} router", f"hold the button of {n}") for n in range(400)]
GRADED = [
    ("Two dogs run.", "2 dogs are running.", 4.8),
    ("Two dogs run.", "A man plays the guitar.", 0),
    ("How old are you?", "What is your age?", 4.5),
    ("How old are you?", "Where do you live?", 1),
]
SCORE = ("sentence1", "sentence2", "score")


def forms(rows, columns):
    """The same rows in everything that may hold them."""
    frame = pl.DataFrame(rows, columns, orient="row", strict=False)
    mixed = frame.with_columns(more=1).select("more", *reversed(columns))
    return [iter(rows), frame, mixed, frame.to_dicts(), frame.to_pandas(), frame.to_arrow()]


def test_every_form_of_pairs_gives_the_same_splits():
    hashes = set()
    for form in forms(ROWS, ("message", "reply")):
        with folder_of_pairs(form, (80, 10, 10)) as folder:
            pairs = open_pairs(folder)
            hashes.add(pairs.sha256)
            splits = [
                pairs.frame(split, ["input", "response"]) for split in ("train", "dev", "test")
            ]
        assert not folder.exists()
    assert len(hashes) == 1
    assert sorted(row for frame in splits for row in frame.rows()) == sorted(ROWS)
    assert all(len(frame) > 0 for frame in splits)
    messages = [set(frame["input"]) for frame in splits]
    assert sum(map(len, messages)) == len(set.union(*messages))  # no message is in two splits


def test_a_model_is_trained_on_rows_as_on_their_folder(tmp_path):
    phases = [{"steps": 4, "batch_size": 16, "learning_rate": 0.01}]
    config = parse_config({**DAN, "phases": phases}, "test")
    common = {"evaluate": lambda _encoder: {"x": 1}}
    rows = train(config, pairs=ROWS, out=tmp_path / "rows", **common)
    with folder_of_pairs(ROWS, (95, 2.5, 2.5)) as folder:
        files = train(config, pairs=folder, out=tmp_path / "files", **common)
    weights = [(run.model / "weights.safetensors").read_bytes() for run in (rows, files)]
    assert weights[0] == weights[1]
    again = train(config, pairs=ROWS, out=tmp_path / "rows", resume=True, **common)
    assert again.done
    with pytest.raises(InputError, match=r"30 pairs are dev, and 20 are needed.*more"):
        finetune(ROWS[:30], out=tmp_path / "tuned", model="rejoinder-small")


def test_replies_in_memory_are_ranked_all():
    [result] = evaluate("rejoinder-small", "response", pairs=ROWS)
    assert (result.split, result.n, dict(result.run)) == ("test", len(ROWS), {})


def test_graded_pairs_are_scored_like_their_file(tmp_path):
    file = tmp_path / "graded.jsonl"
    file.write_text("\n".join(json.dumps(dict(zip(SCORE, row, strict=True))) for row in GRADED))
    [expected] = evaluate("rejoinder-small", "graded", data=file)
    assert expected.scores["pearson"] > 0.9
    assert repr(expected).startswith("graded/cosine on all, 4 items\n")
    for form in forms(GRADED, SCORE):
        [result] = evaluate("rejoinder-small", data=form, out=tmp_path / "results.json")
        assert result.scores == expected.scores
        assert not result.run  # it can't be repeated
    assert evaluate("rejoinder-small", data=GRADED, out=tmp_path / "results.json").reused == 1


@pytest.mark.parametrize(
    ("rows", "facts"),
    [
        ([], "empty"),
        ([("a", "b", 3)], r"row 0 .*3 values.*message, reply"),
        ([("a", "b"), ("a", None)], r"row 1 .*reply.*None"),
        ([{"message": "a"}], r"row 0 .*reply.*None"),
        (["ab"], r"row 0 .*'ab'.*message, reply"),
        (7, "int"),
        (pl.DataFrame({"message": ["a"], "answer": ["b"]}), "no column 'reply'.*'answer'"),
        (pl.DataFrame({"message": ["a"], "reply": [1]}), "reply.*Int64"),
        (pl.DataFrame({"message": ["a", None], "reply": ["b", "c"]}), "row 1 .*no message"),
    ],
)
def test_unusable_pairs_are_refused(tmp_path, rows, facts):
    with pytest.raises(InputError, match=facts):
        finetune(rows, out=tmp_path / "tuned", model="rejoinder-small")
    assert not (tmp_path / "tuned").exists()


@pytest.mark.parametrize("score", [5.1, -1, "x", float("nan")])
def test_a_score_is_from_0_to_5(score):
    with pytest.raises(InputError, match=r"row 1 .*(0 to 5|number)"):
        evaluate("rejoinder-small", data=[GRADED[0], ("a", "b", score)])


def test_graded_pairs_are_no_data_of_other_tasks():
    with pytest.raises(DataMissingError, match="stsb"):
        evaluate("rejoinder-small", "stsb", data=GRADED)
    with pytest.raises(DataMissingError, match="graded"):
        evaluate("rejoinder-small")
