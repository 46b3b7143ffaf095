"""Databases of servers are read as exports: Synapse's SQLite here, PostgreSQL by a real server.

`tests/integration/libraries/test_databases.py` has the latter.
"""

import json
import sqlite3
from contextlib import closing

import pytest

from commands import call
from rejoinder.conversations.explore import explore
from rejoinder.corpus.extract import extract
from rejoinder.corpus.texts import Entry, entries_of
from rejoinder.errors import InputError
from rejoinder.exports import exports_of
from rejoinder.exports.databases import files_of
from rejoinder.exports.files import opened

TABLES = """
CREATE TABLE events (stream_ordering INTEGER PRIMARY KEY, event_id TEXT, room_id TEXT, type TEXT,
  sender TEXT, origin_server_ts BIGINT);
CREATE TABLE event_json (event_id TEXT, room_id TEXT, internal_metadata TEXT, json TEXT);
CREATE TABLE event_relations (event_id TEXT, relates_to_id TEXT, relation_type TEXT);
CREATE TABLE redactions (event_id TEXT, redacts TEXT);
CREATE TABLE room_stats_state (room_id TEXT, name TEXT);
INSERT INTO room_stats_state VALUES ('!a:x', 'Cooking');
"""


@pytest.fixture
def synapse(tmp_path):
    """A homeserver's file, and a function that adds a message."""
    path = tmp_path / "homeserver.db"
    with closing(sqlite3.connect(path)) as database, database:
        database.executescript(TABLES)

    def said(number, sender, body, *, room="!a:x", replaces=None, kind="m.room.message", **relates):
        event = f"${number}:x"
        content = {"msgtype": "m.text", "body": body}
        if relates:
            content["m.relates_to"] = relates
        if replaces:
            content["m.new_content"] = {"msgtype": "m.text", "body": body}
            content["m.relates_to"] = {"rel_type": "m.replace", "event_id": replaces}
        tree = {"type": kind, "sender": sender, "content": content,
                "origin_server_ts": 1_700_000_000_000 + 1000 * number}  # fmt: skip
        with closing(sqlite3.connect(path)) as database, database:
            row = (number, event, room, kind, sender, tree["origin_server_ts"])
            database.execute("INSERT INTO events VALUES (?, ?, ?, ?, ?, ?)", row)
            database.execute(
                "INSERT INTO event_json VALUES (?, ?, '{}', ?)", (event, room, json.dumps(tree))
            )
            if replaces:
                relation = (event, replaces, "m.replace")
                database.execute("INSERT INTO event_relations VALUES (?, ?, ?)", relation)
        return event

    return path, said


def messages(path) -> list[Entry]:
    return list(entries_of(path))


def test_synapse_gives_messages_in_their_last_state(synapse):
    path, said = synapse
    first = said(1, "@ann:x", "How long do eggs boil?")
    said(2, "@bob:x", "About eight minutes.", **{"m.in_reply_to": {"event_id": first}})
    said(3, "@ann:x", "How long do large eggs boil?", replaces=first)
    said(4, "@eve:x", "How long do eggs fly?", replaces=first)  # not its author
    gone = said(5, "@bob:x", "This was wrong.")
    said(6, "@bob:x", "Cooking is now open", kind="m.room.topic")
    with closing(sqlite3.connect(path)) as database, database:
        database.execute("INSERT INTO redactions VALUES ('$9:x', ?)", [gone])
    assert [one.name for one in exports_of(path)] == ["matrix"]
    found = messages(path)
    assert [one.text for one in found] == ["How long do large eggs boil?", "About eight minutes."]
    assert [one.about["author"] for one in found] == ["@ann:x", "@bob:x"]
    assert {one.about["source"] for one in found} == {"Cooking"}
    before = path.read_bytes()
    with opened(path) as files:
        json.loads(b"".join(files_of(path)["events.json"]()))
        assert files.names == ("events.json",)
    assert path.read_bytes() == before


def test_a_database_is_searched_and_what_is_new_is_read(synapse, tmp_path):
    path, said = synapse
    for number in range(1, 9):
        said(
            number, f"@{'ab'[number % 2]}:x", f"The recipe number {number} needs butter and flour."
        )
    index = tmp_path / "index"
    call("index", "create", path, "--out", index, "-m", "rejoinder-small")
    told = call("search", "butter", "--index", index, "--json").stdout
    assert "recipe number" in told
    with opened(path) as files, files.open("events.json") as file:
        assert len(json.load(file)) == 8


def test_pairs_are_extracted_and_a_database_is_no_output(synapse, tmp_path):
    path, said = synapse
    for number in range(1, 9):
        asked = said(2 * number, "@ann:x", f"Where does the recipe number {number} lie?")
        said(2 * number + 1, "@bob:x", f"On the table number {number}, below the book.",
             **{"m.in_reply_to": {"event_id": asked}})  # fmt: skip
    assert extract(path, tmp_path / "pairs", split=(100, 0, 0)).counts.pairs == 8
    with pytest.raises(InputError, match="is a database, which can't be written"):
        extract(path, "postgresql://reader@localhost/zulip")


NAMED = "table=said,text=text_data,id=key,author=by,time=at,answers=quoted,source=subject"


@pytest.fixture
def chats(tmp_path):
    """A database of chats whose newer rows stay in its log, and the path of its file."""
    path = tmp_path / "msgstore.db"
    with closing(sqlite3.connect(path)) as database:
        database.executescript("""
            PRAGMA journal_mode=WAL;
            CREATE TABLE chat (id INTEGER, subject TEXT);
            CREATE TABLE [a "message"] (key INTEGER, text_data TEXT, by TEXT, at INTEGER,
              quoted INTEGER, chat INTEGER);
            CREATE VIEW said AS
              SELECT m.*, c.subject FROM [a "message"] m JOIN chat c ON c.id = m.chat;
            INSERT INTO chat VALUES (1, 'Family');
            INSERT INTO [a "message"] VALUES
              (1, 'Where is the key?', 'Ann', 1700000000000, NULL, 1),
              (2, NULL, 'Ann', 1700000001000, NULL, 1),
              (3, 'Below the mat.', 'Bob', 1700000060000, 1, 1);
        """)
        yield database, path


def test_columns_of_a_table_name_what_is_read(chats):
    _, path = chats
    [first, second] = entries_of(path, NAMED)
    assert first == Entry(
        "1", "Where is the key?", {"author": "Ann", "time": 1_700_000_000.0, "source": "Family"}
    )
    assert (second.id, second.about["answers"]) == ("3", "1")
    plain = [one.text for one in entries_of(path, 'table=a "message",text=text_data')]
    assert plain == [first.text, second.text]
    for wrong, told in (
        ("text=text_data", 'tables .a "message", chat, said'),
        ("table=other,text=text_data", "chat, said"),
        ("table=said,text=body", "'text_data'"),
        ("table=said,text=text_data,author=who", "'who'"),
    ):
        with pytest.raises(InputError, match=told):
            list(entries_of(path, wrong))


def test_what_is_new_in_the_log_is_explored(chats, tmp_path):
    database, path = chats
    options = {"out": tmp_path / "explored", "columns": NAMED, "model": "rejoinder-small"}
    assert explore(path, **options).fresh
    assert not explore(path, **options).fresh
    before = path.read_bytes()
    with database:
        database.execute(
            "INSERT INTO [a \"message\"] VALUES (4, 'Thank you!', 'Ann', 1700000070000, 3, 1)"
        )
    assert path.read_bytes() == before
    assert explore(path, **options).changes.new == 1


def test_other_databases_and_damaged_ones_are_one_sentence(tmp_path):
    other = tmp_path / "msgstore.db"
    with closing(sqlite3.connect(other)) as database, database:
        database.execute("CREATE TABLE message (_id INTEGER, text_data TEXT)")
    with pytest.raises(InputError, match=r"its tables are message.*CSV"):
        exports_of(other)
    damaged = tmp_path / "damaged.db"
    damaged.write_bytes(other.read_bytes()[:600])
    with pytest.raises(InputError, match="can't be read"):
        exports_of(damaged)


def test_a_password_in_an_address_is_refused():
    from pathlib import Path

    with pytest.raises(InputError, match="PGPASSWORD") as refused:
        files_of(Path("postgresql://reader:hunter2@localhost/zulip"))
    assert "hunter2" not in str(refused.value)
    with pytest.raises(InputError, match="can't be read"):
        files_of(Path("postgresql://reader@localhost:1/zulip"))
