"""Tables for databases: what is in them, and that they appear whole or not at all."""

import datetime
import json
import sqlite3
import sys
from functools import partial

import duckdb
import numpy as np
import pyarrow.parquet as pq
import pytest

import commands
from export_samples import discord, write
from rejoinder.errors import InputError, MissingExtraError, StorageError
from rejoinder.index.indexing import Index
from rejoinder.interfaces.tables import TABLES, TableTarget, write_table

call, refused = (partial(run, "index", "export") for run in (commands.call, commands.refused))

INSTALLED = ["duckdb", "parquet", "pgvector", "sqlite-vec"]
KNOWN = ["author", "time", "source", "thread", "answers", "link", "title"]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A working folder with `plain/`, of 3 texts of which one is deleted, and `chat/`."""
    monkeypatch.chdir(tmp_path)
    plain = Index.create("plain", [("a", "How old are you?"), "x\ty\n\\N", ""], "rejoinder-small")
    plain.add(["Where do you live?"])
    plain.delete("2")
    Index.create("chat", write(discord.FILES, tmp_path / "export"), "rejoinder-small")
    return tmp_path


def read(path, target):
    """The columns of a table, and its rows with embeddings as lists."""
    if target == "duckdb":
        table = duckdb.connect(path, read_only=True).sql("FROM texts").to_arrow_table()
        return table.column_names, [tuple(row.values()) for row in table.to_pylist()]
    if target == "parquet":
        table = pq.read_table(path)
        return table.column_names, [tuple(row.values()) for row in table.to_pylist()]
    if target == "sqlite-vec":
        found = sqlite3.connect(path).execute("SELECT * FROM texts")
        names = [column[0] for column in found.description]
        return names, [
            tuple(np.frombuffer(x, "<f4").tolist() if isinstance(x, bytes) else x for x in row)
            for row in found
        ]
    lines = path.read_text("utf-8").split("\n")
    begin = lines.index("COPY texts FROM stdin;") + 1
    create = lines[begin - 2].partition("(")[2]
    rows = [line.split("\t") for line in lines[begin : lines.index("\\.")]]
    marks = {"\\N": None}
    return [part.split()[0] for part in create.split(", ")], [
        (marks.get(a, a), _unescaped(text), json.loads(vector), *(marks.get(x, x) for x in others))
        for a, text, vector, *others in rows
    ]


def _unescaped(text):
    for old, new in (("\\t", "\t"), ("\\n", "\n"), ("\\\\", "\\")):
        text = text.replace(old, new)
    return text


@pytest.mark.parametrize("target", INSTALLED)
def test_a_table_has_the_texts_that_are_left(folder, target):
    written = write_table("plain", "out", target)
    assert (written.path.name, written.texts) == ("out", 3)
    columns, rows = read(folder / "out", target)
    assert columns == ["id", "text", "embedding"]
    assert [row[:2] for row in rows] == [
        ("a", "How old are you?"), ("1", "x\ty\n\\N"), ("3", "Where do you live?"),
    ]  # fmt: skip
    expected = Index.open("plain").encoder.encode([row[1] for row in rows])
    np.testing.assert_array_equal(np.array([row[2] for row in rows], np.float32), expected)


@pytest.mark.parametrize("target", INSTALLED)
def test_messages_have_what_is_known_about_them(folder, target):
    write_table("chat", "out", target)
    columns, rows = read(folder / "out", target)
    assert columns == ["id", "text", "embedding", *KNOWN]
    by_id = {row[0]: dict(zip(columns, row, strict=True)) for row in rows}
    reply = by_id["103"]
    assert (reply["author"], reply["source"], reply["answers"]) == ("bob", "general", "102")
    assert reply["link"] is None
    moment = datetime.datetime(2024, 3, 1, 8, 3)
    if target in ("duckdb", "parquet"):
        assert reply["time"] == moment
    else:
        assert datetime.datetime.fromisoformat(reply["time"].rstrip("Z")) == moment


@pytest.mark.parametrize("target", INSTALLED)
def test_an_empty_index_and_halved_numbers_are_written(folder, target):
    Index.create("none", [], "rejoinder-small")
    assert write_table("none", "empty", target).texts == 0
    assert read(folder / "empty", target) == (["id", "text", "embedding"], [])
    Index.create("half", ["How old are you?"], "rejoinder-small", dtype="float16")
    write_table("half", "out", target)
    [[_, _, vector]] = read(folder / "out", target)[1]
    [part] = Index.open("half").encoded()
    assert vector == pytest.approx(part.embeddings[0].tolist(), abs=1e-8)


@pytest.mark.parametrize("target", ["parquet", "pgvector", "sqlite-vec"])
def test_the_same_index_gives_the_same_bytes(folder, target):
    first, second = (write_table("chat", name, target).path for name in ("first", "second"))
    assert first.read_bytes() == second.read_bytes()


@pytest.mark.parametrize("target", INSTALLED)
def test_a_table_appears_whole_or_not_at_all(folder, target):
    before = sorted(path.name for path in folder.iterdir())
    index = Index.open("plain")
    index.encoded = lambda: iter([next(Index.encoded(index)), None])
    with pytest.raises((AttributeError, duckdb.Error)):
        write_table(index, "out", target)
    assert sorted(path.name for path in folder.iterdir()) == before


@pytest.mark.parametrize("target", INSTALLED)
def test_a_file_is_replaced_only_if_that_is_said(folder, target):
    (folder / "out").write_text("mine")
    with pytest.raises(InputError, match="out exists; name another, or replace"):
        write_table("plain", "out", target)
    assert (folder / "out").read_text() == "mine"
    write_table("plain", "out", target, overwrite=True)
    assert len(read(folder / "out", target)[1]) == 3


def test_the_command_prints_the_query(folder):
    written = json.loads(call("plain", "--to", "duckdb", "--out", "x.duckdb", "--json").output)
    assert (written["out"], written["to"], written["texts"]) == ("x.duckdb", "duckdb", 3)
    vector = Index.open("plain").encoder.encode("What is your age?").tolist()
    found = duckdb.connect("x.duckdb", read_only=True).execute(written["query"], {"query": vector})
    assert found.fetchone()[0] == "a"
    assert written["query"] in call("plain", "--to", "duckdb", "--out", "y.duckdb").output
    call("plain", "--to", "parquet", "--out", "y.duckdb", "--overwrite")
    assert read(folder / "y.duckdb", "parquet")[0] == ["id", "text", "embedding"]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["plain", "--to", "duckdbb", "--out", "x"], "did you mean 'duckdb'?"),
        (["missing", "--to", "duckdb", "--out", "x"], "missing is not an index"),
        (["plain", "--to", "duckdb", "--out", "chat"], "chat is a folder"),
        (["plain", "--to", "duckdb", "--out", "plain"], "plain is read"),
    ],
)
def test_bad_input_is_one_sentence_and_writes_nothing(folder, words, message):
    before = sorted(path.name for path in folder.rglob("*"))
    assert message in refused(*words, error=InputError)
    assert sorted(path.name for path in folder.rglob("*")) == before


def test_a_damaged_index_is_refused(folder):
    file = next(folder.glob("plain/*/embeddings.bin"))
    file.write_bytes(bytes(reversed(file.read_bytes())))
    with pytest.raises(InputError, match=r"SHA-256"):
        write_table("plain", "out", "parquet")
    assert not (folder / "out").exists()


def test_a_full_disk_is_one_sentence(folder, monkeypatch):
    def fails(*_arguments, **_options):
        raise sqlite3.OperationalError("database or disk is full")

    monkeypatch.setattr("rejoinder.interfaces.tables.sqlite3.connect", fails)
    with pytest.raises(StorageError, match="no space is left"):
        write_table("plain", "out", "sqlite-vec")
    assert not (folder / "out").exists()


def test_a_database_that_is_not_installed_is_named_with_its_extra(folder, monkeypatch):
    monkeypatch.setitem(sys.modules, "lancedb", None)
    with pytest.raises(MissingExtraError, match=r"rejoinder\[lancedb\]"):
        write_table("plain", "out", "lancedb")


def test_a_database_of_ones_own_is_registered(folder):
    def write_ids(table, path):
        path.write_text(" ".join(name for part in table.parts() for name in part.ids))

    TABLES.register("ids", TableTarget(name="ids", write=write_ids, query="cat OUT"))
    try:
        assert write_table("plain", "ids.txt", "ids").query == "cat ids.txt"
    finally:
        TABLES.remove("ids")
    assert (folder / "ids.txt").read_text() == "a 1 3"
