"""Texts of a path: which are asked for an export, and what is read of each."""

import re
from collections import Counter
from importlib import import_module

import pytest
from hypothesis import given
from hypothesis import strategies as st

from export_samples import slack, write
from rejoinder.corpus.extract import extract
from rejoinder.corpus.texts import entries_of, looks_exported, may_be_export
from rejoinder.errors import InputError
from rejoinder.exports import FORMATS

SAMPLES = {name: import_module(f"export_samples.{name}") for name in FORMATS}
REAL = [(name, path) for name, sample in SAMPLES.items() for path in sample.REAL]


@pytest.mark.parametrize("name", [*FORMATS])
def test_every_format_is_asked(name, tmp_path):
    folder = write(SAMPLES[name].FILES, tmp_path)
    files = [path for path in folder.rglob("*") if path.is_file()]
    assert may_be_export(folder)
    assert len(files) > 1 or may_be_export(files[0])


def test_tables_of_trackers_are_asked(tmp_path):
    for name in ("jira.csv", "jira"):
        (tmp_path / name).write_text("Summary,Issue key,Reporter\nIt is broken,A-1,Ann\n")
        [entry] = entries_of(tmp_path / name)
        assert entry.text.startswith("It is broken")
    (tmp_path / "a.csv").write_text("Summary,Issue key,text\na,b,c\n")
    [entry] = entries_of(tmp_path / "a.csv", "text=text")
    assert entry.text == "c"


@pytest.mark.shared_data
@pytest.mark.parametrize(("name", "path"), REAL, ids=[path for _, path in REAL])
def test_real_exports_are_asked(name, path, shared_data):
    assert may_be_export(shared_data / "exports" / path)


@given(
    st.lists(st.from_regex(r"[A-Za-z]{3,9}[ ,][^\0\r\n\t:,;]{0,80}", fullmatch=True), min_size=1)
)
def test_lines_of_prose_are_not(lines):
    lines[0] = f"Dear {lines[0]}"
    assert not looks_exported("\n".join(lines).encode("utf-8", "replace"))


@pytest.mark.parametrize(
    "text", ["How old are you?", "Note: bring a coat", "From me to you", "", "7"]
)
def test_texts_are_read_without_the_formats(text, tmp_path, monkeypatch):
    monkeypatch.setattr("rejoinder.exports.format_of_export", None)
    (tmp_path / "a.txt").write_text(f"{text}\nwhat\n")
    assert [entry[:2] for entry in entries_of(tmp_path / "a.txt")] == [(None, text), (None, "what")]


def test_messages_of_an_export_are_read_and_others_counted(tmp_path):
    folder, reasons = write(slack.FILES, tmp_path), list[str]()
    kept = [
        one
        for one in slack.MESSAGES
        if one.text and not one.is_bot | one.is_system | one.is_private
    ]
    entries = list(entries_of(folder, on_left_out=reasons.append))
    assert [(entry.id, entry.text) for entry in entries] == [(one.id, one.text) for one in kept]
    assert Counter(reasons) == {"private": 1, "system": 1, "bot": 1, "empty": 1}
    assert [*entries[0].known.items()][:2] == [("id", kept[0].id), ("author", "Ann")]
    with pytest.raises(InputError, match="`columns`"):
        entries_of(folder, "text=a")


@pytest.mark.parametrize("name", [*FORMATS])
def test_an_export_whose_messages_are_all_left_out_is_refused(name, tmp_path):
    folder = write(SAMPLES[name].EMPTY, tmp_path)
    with pytest.raises(InputError, match=tmp_path.name):
        list(entries_of(folder))


def test_replies_of_pairs_are_read_once(small_dump, tmp_path):
    extract(small_dump, tmp_path / "pairs", rules="none")
    entries = list(entries_of(tmp_path / "pairs"))
    assert len({entry.text for entry in entries}) == len(entries) > 1
    assert not any(entry.known for entry in entries)


def test_json_lines_of_texts_need_no_parser_of_documents(tmp_path, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "ijson", None)
    (tmp_path / "a.jsonl").write_text('{"text": "one", "id": 1, "more": {"x": [{}]}}\n')
    assert [entry[:2] for entry in entries_of(tmp_path / "a.jsonl")] == [("1", "one")]


def test_a_folder_of_explore_names_its_index(tmp_path):
    (tmp_path / "index").mkdir()
    (tmp_path / "index" / "index.json").write_text("{}")
    with pytest.raises(InputError, match=re.escape(str(tmp_path / "index"))):
        entries_of(tmp_path)


def test_footers_are_shown_but_not_encoded(tmp_path):
    footer = "To leave this list write to leave@a.example"
    mails = [
        f"From a@a.example Mon Jan  5 10:0{n}:00 2015\nFrom: Ann <a@a.example>\nSubject: File {n}\n"
        f"Date: Mon, 5 Jan 2015 10:0{n}:00 +0000\nMessage-ID: <{n}@a>\n\n"
        f"Who has seen file {n}?\nI need it today.\n{footer}\n\n"
        for n in range(8)
    ]
    (tmp_path / "list.mbox").write_text("".join(mails))
    entries = list(entries_of(tmp_path / "list.mbox"))
    assert len(entries) == 8
    assert all("To leave this list" in entry.text for entry in entries)
    assert not any("To leave" in entry.encoded for entry in entries[5:])
