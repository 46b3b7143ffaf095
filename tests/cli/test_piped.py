"""Exports and texts on standard input and from pipes, read as if they were files."""

import gzip
import json
import os
import shutil
import tarfile
import threading
from pathlib import Path

import pytest

from export_samples import (
    discord,
    jira,
    maildir,
    mbox,
    slack,
    stackexchange,
    telegram,
    whatsapp,
    write,
)

ALONE = {
    "discord": discord.FILES["Team - general [5].json"],
    "jira": jira.FILES["search.csv"],
    "mbox": next(iter(mbox.FILES.values())),
    "slack": slack.FILES["help/2024-03-01.json"],
    "stackexchange": stackexchange.FILES["ports.example.org/Posts.xml"],
    "telegram": next(iter(telegram.FILES.values())),
    "whatsapp": next(iter(whatsapp.FILES.values())),
}
"""Files that are exports without others."""


@pytest.fixture
def call(call, monkeypatch, tmp_path):
    """The same in a new folder, with another one for temporary files."""
    (tmp_path / "temporary").mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "temporary"))
    monkeypatch.chdir(tmp_path)
    yield call
    assert not [*(tmp_path / "temporary").iterdir()]


def known_texts(call, index):
    """Authors and texts of an index."""
    _, out, _ = call(
        "search", "port", "--index", index, "--top-k", 99, "--mode", "semantic", "--json"
    )
    return sorted((hit["author"] or "", hit["text"]) for hit in json.loads(out))


def archives(folder: Path) -> dict[str, bytes]:
    export = write(slack.FILES, folder / "export")
    made = {"zip": shutil.make_archive(str(folder / "a"), "zip", export)}
    for kind in ("", ":gz"):
        with tarfile.open(folder / f"a{kind}.tar", f"w{kind}") as archive:
            archive.add(export, "export")
        made[f"tar{kind}"] = str(folder / f"a{kind}.tar")
    return {kind: Path(path).read_bytes() for kind, path in made.items()}


@pytest.mark.parametrize("name", ALONE)
def test_a_file_is_known_by_its_content(call, tmp_path, name):
    write({"given": ALONE[name]}, tmp_path)
    content = (tmp_path / "given").read_bytes()
    status, out, err = call("index", "-", "--out", "piped", "--json", stdin=content)
    assert (status, json.loads(out)["texts"] > 0) == (0, True), err
    compressed = gzip.compress(content)
    assert call("index", "-", "--out", "again", "--json", stdin=compressed)[0] == 0
    assert known_texts(call, "piped") == known_texts(call, "again") != []
    status, found, err = call("search", "port", "--top-k", 99, "--json", stdin=content)
    assert sorted((hit["author"] or "", hit["text"]) for hit in json.loads(found)) == known_texts(
        call, "piped"
    )
    rules = ("--rules", "none", "--pair", "adjacent", "--within", "9000h")
    assert call("extract", "-", "--out", "pairs", "--format", name, *rules, stdin=content)[0] == 0


def test_archives_are_read(call, tmp_path):
    made = archives(tmp_path)
    assert call("index", "export", "--out", "index")[0] == 0
    expected = known_texts(call, "index")
    for kind, content in made.items():
        assert call("index", "-", "--out", kind, stdin=content)[0] == 0
        assert known_texts(call, kind) == expected
        status, _, err = call(
            "extract", "-", "--out", f"{kind}-pairs", "--rules", "none", stdin=content
        )
        assert (status, err) == (0, f"wrote {kind}-pairs\n")
    assert call("encode", "export", "--out", "whole.npy")[0] == 0
    assert call("encode", "-", "--out", "piped.npy", stdin=made["zip"])[0] == 0
    assert Path("whole.npy").read_bytes() == Path("piped.npy").read_bytes()


def test_lines_tables_and_ids_are_read(call):
    assert call("index", "-", "--out", "index", stdin=b"Hi.\nHow old are you?\n")[2] == (
        "index: 2 texts\n"
    )
    rows = b'{"id": "x", "text": "What time is it?"}\n'
    assert call("index", "add", "index", "-", stdin=rows)[0] == 0
    assert call("index", "delete", "index", "-", stdin=b"1\nx\n")[0] == 0
    assert call("search", "age", "--index", "index")[1].splitlines()[1].endswith("How old are you?")
    pairs = b'{"q": "How are you?", "a": "Fine, and you?"}\n'
    words = ("--columns", "message=q,reply=a", "--rules", "none", "--out", "pairs", "--json")
    status, out, _ = call("extract", "-", *words, stdin=pairs)
    assert (status, json.loads(out)["counts"]["pairs"]) == (0, 1)


def test_a_mail_alone_is_a_message(call, tmp_path):
    for name in ("cur/1709287200.M1P2.host:2,S", ".Sent/cur/1709294400.M5P6.host:2,S"):
        mail = str(maildir.FILES[name]).replace("Return-Path", "Date: today\nReturn-Path")
        (tmp_path / "mail.txt").write_text(mail)
        for given in ("-", "mail.txt"):
            words = ("index", given, "--out", "index", "--overwrite")
            assert call(*words, stdin=mail.encode())[0] == 0
            [(author, text)] = known_texts(call, "index")
            assert author in ("Ann", "bob@example.org")
            assert text in ("Where is the invoice?", "It is attached.")
    status, _, err = call("extract", "mail.txt", "--out", "pairs")
    assert (status, err.count("\n")) == (2, 1)
    assert "of 1 messages (Maildir (mail))" in err


def test_a_table_is_read_by_its_column_of_texts(call):
    rows = b'id,text\n7,"Hi, Ann."\n8,How old are you?\n'
    assert call("index", "-", "--out", "named", stdin=rows)[2] == "named: 2 texts\n"
    other = rows.replace(b"text", b"body") + b"9,See you.\n"
    columns = ("--columns", "text=body,id=id")
    assert call("index", "-", "--out", "given", *columns, stdin=other)[2] == "given: 3 texts\n"
    status, _, err = call("index", "-", "--out", "lines", stdin=other)
    assert (status, err.splitlines()[1:]) == (0, ["lines: 4 texts"])
    assert "--columns text=body" in err
    assert call("encode", "-", stdin=other)[2].splitlines()[0] == err.splitlines()[0]
    pairs = ("--columns", "message=id,reply=body", "--rules", "none", "--out", "pairs", "--json")
    status, out, _ = call("extract", "-", *pairs, stdin=other)
    assert (status, json.loads(out)["counts"]["pairs"]) == (0, 3)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="the system has no named pipes")
def test_a_pipe_with_a_name_is_read(call, tmp_path):
    content = archives(tmp_path)["zip"]
    os.mkfifo("pipe")
    writer = threading.Thread(target=Path("pipe").write_bytes, args=(content,))
    writer.start()
    assert call("index", "pipe", "--out", "index")[0] == 0
    writer.join()
    assert "Bob B." in [author for author, _ in known_texts(call, "index")]


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="the system has no named pipes")
@pytest.mark.parametrize(
    "words",
    [
        ("search", "--corpus", "FILE", "How old is she?"),
        ("search", "--corpus", "lines.txt", "--queries", "FILE"),
        ("rank", "How old are you?", "--responses", "FILE"),
        ("encode", "FILE", "--tsv"),
        ("cluster", "FILE", "--json"),
        ("dedupe", "FILE", "--json"),
        ("suggest", "Hello", "--from", "FILE"),
        ("find-personal", "FILE"),
    ],
    ids=lambda words: words[0],
)
def test_commands_read_a_pipe_as_they_read_a_file(call, words):
    lines = Path("lines.txt")
    lines.write_text("How old are you?\nI am 20 years old.\nWhere is the station?\n")
    os.mkfifo("pipe")
    writer = threading.Thread(target=Path("pipe").write_bytes, args=(lines.read_bytes(),))
    writer.start()
    status, out, _ = call(*(word.replace("FILE", "pipe") for word in words))
    writer.join()
    told = call(*(word.replace("FILE", "lines.txt") for word in words))[1]
    assert (status, out.replace("pipe", "lines.txt")) == (0, told)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="the system has no named pipes")
def test_explore_asks_for_a_file_rather_than_a_pipe(call):
    os.mkfifo("pipe")
    status, _, err = call("explore", "pipe")
    assert (status, err.count("\n")) == (2, 1)
    assert "pipe" in err


@pytest.mark.parametrize("command", ["index", "extract"])
def test_bad_input_is_one_sentence_without_the_temporary_file(call, tmp_path, command):
    content = archives(tmp_path)["zip"]
    for given, said in ((content[:-50], "damaged"), (b"", "empty"), (b"\xfe\x00\x01" * 99, "")):
        status, out, err = call(command, "-", "--out", "new", stdin=given)
        assert (status, out, err.count("\n")) == (2, "", 1)
        assert err.startswith("rejoinder: ")
        assert "standard input" in err
        assert said in err
        assert str(tmp_path) not in err
    assert not (tmp_path / "new").exists()


def test_standard_input_is_named_once(call):
    status, _, err = call("extract", "-", "-", "--out", "new", stdin=b"{}")
    assert (status, err.count("\n")) == (2, 1)
