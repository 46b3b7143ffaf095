"""`rejoinder suggest`, run as a user does."""

import json
import re
import runpy
import shlex
from pathlib import Path

import pytest

from rejoinder.corpus.extract import extract

ROOT = Path(__file__).parents[2]
DESK = ROOT / "examples/support_desk.py"
ASKED = "my parcel is not here"


@pytest.fixture(scope="module")
def pairs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("pairs")
    runpy.run_path(str(DESK))["main"](folder / "support.csv")
    columns = "message=question,reply=answer"
    extract(folder / "support.csv", folder / "pairs", columns=columns, split=(80, 10, 10))
    return folder / "pairs"


@pytest.fixture
def suggest(call):
    def run(*words, **more):
        return call("suggest", *words, "--model", "rejoinder-small", **more)

    return run


def test_json_has_suggestions_and_how_good_they_are(suggest, pairs):
    status, tree, _ = suggest(ASKED, "--from", pairs, "--confidence", 0.1, "--json")
    found = json.loads(tree)
    assert (status, found["fitted"]["threshold"]) == (0, 0.1)
    assert 0 <= found["fitted"]["coverage"] <= 1
    [one] = found["messages"]
    assert one["message"] == ASKED
    assert 1 <= len(one["suggestions"]) <= 3
    assert {"reply", "confidence", "answered", "similarity", "alike", "id"} <= {
        *one["suggestions"][0]
    }


def test_lines_have_a_row_for_each_suggestion(suggest, pairs, tmp_path):
    (tmp_path / "new.txt").write_text(f"{ASKED}\nWhen do you open?\n")
    given = ["--from", pairs, "--top-k", 2]
    _, lines, notes = suggest("--messages", tmp_path / "new.txt", *given)
    header, *rows = lines.splitlines()
    assert header.split("\t")[:4] == ["message", "rank", "confidence", "reply"]
    assert [row.split("\t")[:2] for row in rows] == [
        [ASKED, "1"], [ASKED, "2"], ["When do you open?", "1"], ["When do you open?", "2"],
    ]  # fmt: skip
    assert "held-out" in notes
    _, again, _ = suggest("--messages", "-", *given, stdin=f"{ASKED}\n".encode())
    assert again.splitlines() == [header, *rows[:2]]


def test_no_good_answer_is_said(suggest, pairs):
    given = [ASKED, "--from", pairs, "--confidence", 1]
    _, _, notes = suggest(*given)
    assert "no good answer" in notes
    _, _, nothing = suggest(*given, "--quiet")
    assert nothing == ""
    _, shown, _ = suggest(*given, terminal=True)
    assert "no good answer" in shown
    _, shown, _ = suggest(ASKED, "--from", pairs, "--confidence", 0.01, terminal=True)
    assert "no good answer" not in shown
    assert "confidence" in shown


def test_canned_answers(suggest, pairs, tmp_path):
    canned = tmp_path / "canned.txt"
    canned.write_text(
        "We open at nine.\nYour parcel 12 arrives tomorrow, Ann, sorry for the wait.\n"
    )
    status, lines, notes = suggest(ASKED, "--from", canned)
    assert (status, len(lines.splitlines())) == (0, 3)
    assert lines.split("\t")[2] == "score"
    assert "no messages that these answered" in notes
    _, lines, _ = suggest(ASKED, "--from", pairs, "--answers", canned)
    assert "Your parcel" in lines.splitlines()[1]


@pytest.mark.parametrize(
    ("words", "named"),
    [
        ((ASKED,), "--from"),
        (("--from", "pairs"), "a message"),
        ((ASKED, "--from", "absent"), "absent"),
        ((ASKED, "--from", "a.txt", "--where", "author=ann"), "where"),
        ((ASKED, "--from", "a.txt", "--where", "author"), "KEY=VALUE"),
        ((ASKED, "--from", "a.txt", "--confidence", "2"), "confidence"),
        ((ASKED, "--from", "a.txt", "--answers", "a.txt"), "replies"),
    ],
)
def test_what_is_not_understood(suggest, tmp_path, monkeypatch, words, named):
    monkeypatch.chdir(tmp_path)
    Path("a.txt").write_text("Yes.\nNo.\n")
    status, _, errors = suggest(*words)
    assert status == 2
    assert named in errors


def test_the_guide_runs(call, tmp_path, monkeypatch, capsys):
    page = (ROOT / "docs/guides/replies.md").read_text("utf-8")
    monkeypatch.chdir(tmp_path)
    [commands] = re.findall(r"```sh\n(.*?)```", page, re.DOTALL)
    first, *others = commands.strip().split("\n")
    assert first.startswith("python examples/support_desk.py")
    runpy.run_path(str(DESK))["main"](tmp_path / "support.csv")
    for command in others:
        status, shown, errors = call(*shlex.split(command, comments=True)[1:])
        assert (status, bool(shown)) == (0, True), errors
    [code] = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    exec(compile(code, "replies.md", "exec"), {})  # noqa: S102 -- it is our own
    assert capsys.readouterr().out.startswith("True ")
