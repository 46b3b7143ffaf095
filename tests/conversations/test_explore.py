"""Conversations are prepared once, and again when they or what is wanted of them changed."""

import json
import os
import re
import shutil

import pytest

from export_samples import slack, write
from rejoinder.conversations.explore import explore, read_facts
from rejoinder.conversations.reading import Changes
from rejoinder.conversations.suggest import Suggestions
from rejoinder.corpus.extract import extract
from rejoinder.errors import ForeignTextWarning, InputError
from rejoinder.index.indexing import Index


@pytest.fixture
def export(tmp_path):
    return write(slack.FILES, tmp_path / "team")


def state(folder):
    return {path: path.stat().st_mtime_ns for path in folder.rglob("*") if path.is_file()}


def test_an_export_is_prepared_next_to_it_and_then_opened(export):
    first = explore(export, model="rejoinder-small")
    assert first.fresh
    assert first.folder == export.with_name("team.explore")
    assert len(Index(first.index)) == 4
    with pytest.raises(InputError, match=re.escape(f"name {first.index}.")):
        Index(first.folder)
    assert first.left_out == {"bot": 1, "system": 1, "private": 1, "empty": 1}
    before = state(first.folder)
    again = explore(export, model="rejoinder-small")
    assert (again.fresh, again.index) == (False, first.index)
    assert state(first.folder) == before


def test_what_was_read_is_said_in_a_line(tmp_path):
    logs = tmp_path / "logs"
    logs.mkdir()
    (logs / "help_2024-01-01.log").write_text("[10:00] <ann> Hello\n[10:01] <bob> ann: Hi\n")
    (logs / "help_2024-01-02.log").write_text("[10:00] <ann> How are you?\n")
    (logs / "notes.md").write_text("Not a log.\n")
    line = "IRC, 3 files, 3 messages of 2 people, 1 file not read: notes.md"
    assert read_facts(explore(logs, model="rejoinder-small").folder).read == line
    lines = tmp_path / "lines.txt"
    lines.write_text("How are you?\n")
    assert read_facts(explore(lines, model="rejoinder-small").folder).read == ""


def test_what_changed_is_prepared_again(export, tmp_path):
    out = tmp_path / "out"
    explore(export, out=out, model="rejoinder-small")
    for file in export.rglob("*.json"):  # newer, but the same
        os.utime(file, (1, 1))
    assert not explore(export, out=out, model="rejoinder-small").fresh
    assert not explore(export, out=out, model="rejoinder-small").fresh
    assert explore(export, out=out, model="rejoinder-base").fresh
    shutil.rmtree(export / "board")
    (export / "help/2024-03-02.json").write_text("[]")
    changed = explore(export, out=out, model="rejoinder-base")
    assert (changed.changes, len(Index(changed.index))) == (Changes(0, 0, 1), 4)
    changed = explore(export, out=out, model="rejoinder-base", forget_gone=True)
    assert (changed.changes, len(Index(changed.index))) == (Changes(0, 0, 1), 3)
    (out / "explore.json").write_text("{}")
    assert explore(export, out=out, model="rejoinder-base").fresh
    (out / "explore.json").unlink()
    with pytest.raises(InputError, match="other files"):
        explore(export, out=out, model="rejoinder-base")


def test_an_index_is_explored_where_it_is(export, tmp_path):
    made = Index.create(tmp_path / "index", export, "rejoinder-small")
    ready = explore(tmp_path / "index")
    assert (ready.folder, ready.index) == (tmp_path / "index.explore", tmp_path / "index")
    assert ready.fresh
    assert not (ready.folder / "index").exists()
    assert not explore(tmp_path / "index").fresh
    made.delete(made.search("Yes, since today", 1)[0][0].id)
    assert explore(tmp_path / "index").fresh
    with pytest.raises(InputError, match="finetune"):
        explore(tmp_path / "index", finetune=True)


def test_too_few_replies_to_finetune_are_refused(export):
    pytest.importorskip("torch")
    for day in range(3, 9):
        first = f"17092{day}0000.0001"
        asked = {"type": "message", "user": "U1", "ts": first, "thread_ts": first}
        reply = {**asked, "user": "U2", "ts": f"17092{day}0009.0001"}
        asked["text"], reply["text"] = "Where do we meet this evening?", f"At bakery number {day}"
        (export / f"help/2024-03-0{day}.json").write_text(json.dumps([asked, reply]))
    with pytest.raises(InputError, match="20 are needed"):
        explore(export, model="rejoinder-small", finetune=True)
    assert not export.with_name("team.explore").exists()


def test_lines_and_tables_are_explored_too(tmp_path):
    table = tmp_path / "faq.csv"
    table.write_text("q,n\nHow old are you?,7\nWhere do you live?,8\n")
    ready = explore(table, model="rejoinder-small", columns="text=q,id=n")
    assert Index(ready.index).get("8") == "Where do you live?"
    ready = explore(table, model="rejoinder-small", columns="text=q")
    assert len(Index(ready.index)) == 2


def test_both_sides_of_pairs_are_explored(export, tmp_path):
    extract(export, tmp_path / "pairs", rules="none")
    ready = explore(tmp_path / "pairs", model="rejoinder-small")
    index = Index(ready.index)
    [hit] = index.search("Yes, since today", 1)[0]
    assert index.get(hit.about["answers"]).startswith("Does #billing work")


def test_what_is_found_is_kept(export):
    for day in range(3, 8):
        question = {"type": "message", "user": f"U{day}", "ts": f"17092{day}0000.0001", "text":
                    "How do I open the billing page?"}  # fmt: skip
        (export / f"help/2024-03-0{day}.json").write_text(json.dumps([question]))
    ready = explore(export, model="rejoinder-small")
    [asked] = json.loads((ready.folder / "asked.json").read_bytes())
    assert (asked["text"], asked["count"]) == ("How do I open the billing page?", 5)
    assert asked["authors"] == 5


def test_what_is_missing_is_said(tmp_path):
    with pytest.raises(InputError, match="does not exist"):
        explore(tmp_path / "nothing.zip")
    assert list(tmp_path.iterdir()) == []


def chat(folder, *texts):
    folder.mkdir()
    lines = [
        f"[1/5/24, 10:0{minute}:00] {author}: {text}\n"
        for minute in range(6)
        for author, text in zip(("Ann", "Bob"), texts, strict=True)
    ]
    (folder / "_chat.txt").write_text("".join(lines), "utf-8")
    return folder


@pytest.mark.slow
@pytest.mark.usefixtures("multilingual")
def test_the_model_is_one_that_knows_the_language(tmp_path):
    german = chat(tmp_path / "de", "Wann ist das Treffen und wo?", "Um drei.")
    english = chat(tmp_path / "en", "When is the meeting?", "At three.")
    with pytest.warns(ForeignTextWarning, match="German"):
        first = explore(german)
    assert Index(first.index).manifest.model.source == "rejoinder-multi"
    assert not explore(german).fresh
    assert Index(explore(english).index).manifest.model.source == "rejoinder-base"
    assert not explore(english).fresh
    assert explore(german, model="rejoinder-multi").fresh
    assert not explore(german, model="rejoinder-multi").fresh
    with pytest.warns(ForeignTextWarning, match="German"):
        assert Suggestions.open(german).encoder.describe()["name"] == "rejoinder-multi"
