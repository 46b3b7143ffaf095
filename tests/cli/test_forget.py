"""`rejoinder forget` and `rejoinder find-personal`: what they print, and what they leave."""

import json
from pathlib import Path

import pytest

from export_samples import slack, write


@pytest.fixture
def export(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return write(slack.FILES, tmp_path / "team")


@pytest.fixture
def index(call, export):
    assert call("index", export, "--out", "index", "-m", "rejoinder-small")[0] == 0
    return "index"


def found(call, index):
    return int(json.loads(call("index", "show", index, "--json")[1])["texts"])


def test_messages_of_an_author_are_counted_and_then_removed(call, index):
    status, out, err = call("forget", index, "--author", "bob b.", "--dry-run")
    assert (status, out, found(call, index)) == (0, "would be removed: messages 1\n", 4)
    assert "1 remaining messages name the author" in err
    status, out, _ = call("forget", index, "--author", "Bob B.", "--json")
    told = json.loads(out)
    assert (status, told["messages"], told["mentions"], found(call, index)) == (0, 1, 1, 3)
    status, out, _ = call("forget", index, "--match", "Bob B[.]", "--quiet")
    assert (status, out, found(call, index)) == (0, "removed: messages 1, links to them 1\n", 2)
    assert call("forget", index, "--match", "Bob B[.]")[:2] == (0, "removed: nothing\n")


@pytest.mark.parametrize(
    "words",
    [
        ["index"],
        ["index", "--author", "a", "--match", "b"],
        ["index", "--author", "Ben"],
        ["index", "--match", "("],
        ["index", "--match", "."],
        ["nowhere", "--match", "a"],
        ["team", "--match", "a"],
    ],
)
def test_what_can_not_be_forgotten_is_one_sentence(call, index, words):
    status, out, err = call("forget", *words)
    assert (status, out, len(err.strip().splitlines())) == (2, "", 1)
    assert found(call, index) == 4


def test_personal_data_is_listed_by_kind_and_message(call, export):
    with Path("more.jsonl").open("w") as file:
        for text in ("Mail bob@example.org", "Call +44 20 7946 0958, or ann@example.org", "Hi"):
            file.write(json.dumps({"text": text, "id": f"m{len(text)}"}) + "\n")
    status, out, err = call("find-personal", "more.jsonl")
    assert (status, out.splitlines()) == (
        0,
        ["kind\tid\tfound", "email\tm20\tbob@example.org", "email\tm41\tann@example.org",
         "phone\tm41\t+44 20 7946 0958"],
    )  # fmt: skip
    assert "2 email, 1 phone" in err
    rows = json.loads(call("find-personal", "more.jsonl", "--json")[1])
    assert rows[0] == {"kind": "email", "id": "m20", "found": "bob@example.org"}
    assert json.loads(call("find-personal", export, "--json")[1]) == []
    assert call("find-personal", "nowhere")[0] == 2
