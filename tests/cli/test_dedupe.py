"""`rejoinder dedupe` prints groups, writes what is kept, and changes the threshold of that."""

import json

import pytest
from rich.text import Text

from export_samples import slack, write
from rejoinder.scoring.scorer import shipped_scorer

QUESTIONS = """How do I reset my password?
how can I reset my password
Is the office open on Sunday?
I like pizza.
How do I reset my password
"""


@pytest.fixture
def questions(tmp_path):
    path = tmp_path / "questions.txt"
    path.write_text(QUESTIONS)
    return path


def test_groups_are_printed_in_each_form(call, questions):
    status, tree, _ = call("dedupe", questions, "--threshold", 0.85, "--json")
    found = json.loads(tree)
    assert (status, found["texts"], found["kept"], found["dropped"]) == (0, 5, 3, 2)
    [group] = found["groups"]
    assert group["size"] == 3
    assert {group["id"], *(one["id"] for one in group["dropped"])} == {"1", "2", "5"}
    status, rows, notes = call("dedupe", questions, "--threshold", 0.85, "--tsv")
    cells = [row.split("\t") for row in rows.splitlines()]
    assert cells[0] == ["group", "size", "cosine", "id", "text"]
    assert sorted(row[3] for row in cells[1:]) == ["1", "2", "5"]
    assert "0.85" in notes
    status, text, _ = call("dedupe", questions, "--threshold", 0.85, terminal=True)
    first = Text.from_ansi(text.splitlines()[0]).plain
    assert first.split(maxsplit=1) == ["3", group["text"]]


def test_what_is_written_takes_another_threshold(call, questions, tmp_path):
    out = tmp_path / "out"
    assert call("dedupe", questions, "--threshold", 0.85, "--out", out)[0] == 0
    assert len((out / "kept.jsonl").read_text().splitlines()) == 3
    assert call("dedupe", questions, "--out", out)[0] == 2, "an existing folder stays"
    found = json.loads(call("dedupe", out, "--threshold", 0.99, "--json")[1])
    assert found["threshold"] == 0.99
    assert found["kept"] >= 4
    assert call("dedupe", out, "--threshold", 0.99, "--out", tmp_path / "other")[0] == 0
    assert len((tmp_path / "other" / "kept.jsonl").read_text().splitlines()) == found["kept"]
    for words in (["--threshold", 0.6], ["--model", "rejoinder-small"], ["--out", out]):
        assert call("dedupe", out, *words)[0] == 2


def test_standard_input_columns_and_conditions(call, questions, tmp_path):
    status, tree, _ = call("dedupe", "-", "--json", stdin=QUESTIONS.encode())
    assert (status, json.loads(tree)["texts"]) == (0, 5)
    (tmp_path / "a.csv").write_text("n,subject\n7,Hello there\n8,hello there\n")
    status, tree, _ = call("dedupe", tmp_path / "a.csv", "--columns", "text=subject,id=n", "--json")
    assert [one["id"] for one in json.loads(tree)["groups"][0]["dropped"]] == ["8"]
    folder = write(slack.FILES, tmp_path / "export")
    status, tree, notes = call("dedupe", folder, "--where", "author=ann", "--json")
    assert (status, json.loads(tree)["texts"]) == (0, 2)
    assert "left out" in notes


def test_examples_are_measured(call, questions, tmp_path):
    rows = [
        {"sentence1": "Where do you live?", "sentence2": "Where do you live now?", "label": 1},
        {"sentence1": "Where do you live?", "sentence2": "Do you like pizza?", "label": 0},
    ]
    (tmp_path / "pairs.jsonl").write_text("\n".join(map(json.dumps, rows)))
    status, tree, _ = call("dedupe", questions, "--examples", tmp_path / "pairs.jsonl", "--json")
    found = json.loads(tree)
    assert (status, found["basis"], found["f1"]) == (0, "examples", 1)


OPENING = """Is the office open on Sunday?
Is the office closed on Sunday?
is the office open this Sunday
"""


def test_a_scorer_confirms_what_is_near(call, tmp_path):
    (tmp_path / "texts.txt").write_text(OPENING)
    words = ("dedupe", tmp_path / "texts.txt", "--threshold", 0.7, "--json")
    assert json.loads(call(*words)[1])["dropped"] == 2
    found = json.loads(call(*words, "--scorer", "--out", tmp_path / "out")[1])
    assert (found["dropped"], found["least_score"]) == (1, 4)
    [group] = found["groups"]
    assert {group["id"], group["dropped"][0]["id"]} == {"1", "3"}
    again = json.loads(call("dedupe", tmp_path / "out", "--threshold", 0.65, "--json")[1])
    assert (again["dropped"], again["least_score"]) == (1, 4)
    found = json.loads(call(*words, "--scorer-from", shipped_scorer(), "--least-score", 1)[1])
    assert found["dropped"] == 2
    for wrong in (["--least-score", 3], ["--scorer", "--least-score", 0],
                  ["--scorer", "--model", "rejoinder-small"]):  # fmt: skip
        assert call(*words, *wrong)[0] == 2


@pytest.mark.parametrize(
    "words",
    [
        ["--threshold", 0.2], ["--threshold", 0.9, "--false-positives", 0.1], ["--overwrite"],
        ["--where", "author=zoe"], ["--columns", "nothing"],
    ],
)  # fmt: skip
def test_what_is_not_valid_is_refused(call, questions, words):
    status, _, message = call("dedupe", questions, *words)
    assert (status, message.count("\n")) == (2, 1)
