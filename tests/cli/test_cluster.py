"""`rejoinder cluster` as a shell runs it."""

import json

import pytest

TEXTS = [
    f"{text} {number}"
    for number in range(12)
    for text in ("The printer is jammed on floor", "My bread dough does not rise at degrees")
]


@pytest.fixture
def call(call, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "texts.txt").write_text("\n".join([*TEXTS, "Thanks!"]) + "\n", "utf-8")
    return call


def test_topics_are_printed_and_written(call, tmp_path):
    words = ("cluster", "texts.txt", "--topics", 2, "--out", "topics")
    status, out, err = call(*words, "--json")
    assert (status, err) == (0, "wrote topics: 2 topics of 25 messages\n")
    printed = json.loads(out)
    assert (printed["messages"], printed["none"], len(printed["topics"])) == (25, 1, 2)
    assert sorted(topic["words"][0] for topic in printed["topics"]) == ["bread", "printer"]
    assert call(*words)[0] == 2  # the folder is there
    status, out, _ = call(*words, "--overwrite", "--quiet")
    assert out.splitlines()[0].split("\t")[:3] == ["topic", "name", "messages"]
    assert len(out.splitlines()) == 3


def test_a_terminal_shows_a_table(call):
    status, out, _ = call("cluster", "texts.txt", "--topics", 2, terminal=True)
    assert status == 0
    assert "25 messages, 2 topics; messages without a topic: 1 (4%)" in out


def test_texts_are_added(call, tmp_path):
    assert call("cluster", "texts.txt", "--topics", 2, "--out", "topics")[0] == 0
    more = tmp_path / "more.csv"
    more.write_text("id,text\nx,The printer is jammed on floor 40\n", "utf-8")
    status, out, _ = call("cluster", "more.csv", "--out", "topics", "--add", "--json")
    assert (status, json.loads(out)["messages"]) == (0, 26)
    assert sorted(topic["size"] for topic in json.loads(out)["topics"]) == [12, 13]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("texts.txt", "--add"), "--out"),
        (("texts.txt", "--overwrite"), "--out"),
        (("texts.txt", "--out", "none", "--add"), "none has no topics"),
        (("texts.txt", "--out", "none", "--add", "--topics", 3), "--topics"),
        (("missing.txt",), "missing.txt"),
        (("texts.txt", "--columns", "text=body"), "--columns"),
        (("-", "--add"), "--out"),
    ],
)
def test_what_can_not_be_done_is_one_sentence(call, words, said):
    status, out, err = call("cluster", *words)
    assert (status, out) == (2, "")
    assert said in err
