"""Reads databases of self-hosted servers as if they were exports of the program.

PostgreSQL databases of Mattermost, Zulip and Discourse, by address, and the SQLite file of Synapse.
The program is recognised by its tables. The database itself writes the JSON that the export's
reader expects, row by row, and is opened read-only.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from rejoinder.errors import InputError, require
from rejoinder.io.files.storage import is_database
from rejoinder.io.formats.texts import SQLITE_TABLES, sqlite_rows

_SECONDS = 10
"""Seconds to wait for a server that does not answer."""
_ROWS = 500
"""Rows fetched from a server at a time."""
_SHOWN = 8
Query = Callable[[str], Iterator[str]]
"""Yields the only column of a query's rows."""


@dataclass(frozen=True)
class _File:
    """A file of an export: its rows, separated by commas, with the text around them."""

    begin: str
    rows: str
    end: str

    def content(self, query: Query) -> Iterator[bytes]:
        yield self.begin.encode()
        separator = ""
        for row in query(self.rows):
            yield (separator + row).encode()
            separator = ",\n"
        yield self.end.encode()


@dataclass(frozen=True)
class _Program:
    tables: frozenset[str]
    files: Mapping[str, _File]


_LISTED = """SELECT '"{0}":' || coalesce(json_agg(r), '[]')::text FROM (SELECT {1} FROM {0}) r"""
"""A query of one row: the rows of a table as a list with its name."""
_MATTERMOST = """
SELECT to_json(id)::text || ':' || row_to_json(r)::text FROM (
  SELECT p.id, p.rootid AS root_id, u.username AS user_id, p.createat AS create_at,
    p.editat AS edit_at, p.message, p.type, p.props::json AS props, c.type AS channel_type,
    CASE WHEN c.type IN ('D', 'G') THEN (
      SELECT string_agg(m.username, ', ' ORDER BY m.username)
      FROM channelmembers cm JOIN users m ON m.id = cm.userid WHERE cm.channelid = c.id)
    WHEN (SELECT count(*) FROM teams) > 1 THEN t.name || '/' || c.name ELSE c.name END AS channel_id
  FROM posts p JOIN channels c ON c.id = p.channelid JOIN users u ON u.id = p.userid
  LEFT JOIN teams t ON t.id = c.teamid
  WHERE p.deleteat = 0 ORDER BY p.createat, p.id) r"""
_ZULIP = """
SELECT row_to_json(r)::text FROM (
  SELECT id, sender_id AS sender, recipient_id AS recipient, subject, content,
    extract(epoch FROM date_sent) AS date_sent, last_edit_time, edit_history
  FROM zerver_message ORDER BY id) r"""
_DISCOURSE = """
SELECT row_to_json(r)::text FROM (
  SELECT t.id, t.title, t.category_id, t.archetype, (
    SELECT json_agg(q ORDER BY q.post_number) FROM (
      SELECT p.post_number, p.topic_id, p.user_id, u.username, p.cooked, p.raw, p.created_at,
        p.reply_to_post_number, p.deleted_at, p.user_deleted, p.hidden, p.post_type, p.version,
        p.action_code
      FROM posts p LEFT JOIN users u ON u.id = p.user_id WHERE p.topic_id = t.id) q) AS posts
  FROM topics t WHERE t.deleted_at IS NULL AND EXISTS (SELECT FROM posts WHERE topic_id = t.id)
  ORDER BY t.id) r"""
_SYNAPSE = """
SELECT json_set(j.json, '$.event_id', e.event_id, '$.room_id', coalesce(s.name, e.room_id),
  '$.unsigned', json_object('m.relations', json_object('m.replace', json_object('content', json((
    SELECT json_extract(k.json, '$.content') FROM event_relations r
    JOIN events f ON f.event_id = r.event_id JOIN event_json k ON k.event_id = r.event_id
    WHERE r.relates_to_id = e.event_id AND r.relation_type = 'm.replace' AND f.sender = e.sender
    ORDER BY f.stream_ordering DESC LIMIT 1))))))
FROM events e JOIN event_json j ON j.event_id = e.event_id
LEFT JOIN room_stats_state s ON s.room_id = e.room_id
WHERE e.type = 'm.room.message'
  AND NOT EXISTS (SELECT 1 FROM redactions d WHERE d.redacts = e.event_id)
ORDER BY e.stream_ordering"""
_PEOPLE = " UNION ALL ".join(
    (
        _LISTED.format("zerver_userprofile", "id, full_name, is_bot"),
        _LISTED.format("zerver_stream", "id, name, invite_only"),
        _LISTED.format("zerver_recipient", "id, type, type_id"),
    )
)
_POSTGRESQL = (
    _Program(
        frozenset({"posts", "channels", "users", "teams", "channelmembers"}),
        {"mattermost.json": _File('{"posts":{', _MATTERMOST, "}}")},
    ),
    _Program(
        frozenset({"zerver_message", "zerver_userprofile", "zerver_stream", "zerver_recipient"}),
        {
            "realm.json": _File("{", _PEOPLE, "}"),
            "messages-000001.json": _File('{"zerver_message":[', _ZULIP, "]}"),
        },
    ),
    _Program(
        frozenset({"posts", "topics", "users", "categories"}),
        {
            "categories.json": _File(
                '{"category_list":{', _LISTED.format("categories", "id, name"), "}}"
            ),
            "topics.json": _File("[", _DISCOURSE, "]"),
        },
    ),
)
_SQLITE = (
    _Program(
        frozenset({"events", "event_json", "event_relations", "redactions", "room_stats_state"}),
        {"events.json": _File("[", _SYNAPSE, "]")},
    ),
)
_TABLES = """
SELECT table_schema || '.' || table_name FROM information_schema.tables
WHERE table_schema NOT IN ('pg_catalog', 'information_schema') ORDER BY 1"""


def files_of(path: Path) -> dict[str, Callable[[], Iterator[bytes]]]:
    """Returns the files of an export by name; their content is read from a database on demand.

    Args:
        path: The address of a PostgreSQL database, or an SQLite file.

    Raises:
        InputError: it does not answer, or its tables match no known program.
        MissingExtraError: psycopg is not installed.
    """
    if not is_database(path):

        def query(text: str) -> Iterator[str]:
            return (value for (value,) in sqlite_rows(path, text))

        tables = set(query(SQLITE_TABLES))
        _, program = _program(path, _SQLITE, {"": tables})
    else:
        require("postgresql", "psycopg")
        schemas: dict[str, set[str]] = {}
        for name in _postgresql(path, None, _TABLES):
            schema, _, table = name.partition(".")
            schemas.setdefault(schema, set()).add(table)
        schema, program = _program(path, _POSTGRESQL, schemas)
        query = partial(_postgresql, path, schema)
    return {name: partial(file.content, query) for name, file in program.files.items()}


def _program(
    path: Path, programs: Sequence[_Program], schemas: Mapping[str, set[str]]
) -> tuple[str, _Program]:
    """Returns the first program whose tables exist, and their schema."""
    for schema, tables in schemas.items():
        for program in programs:
            if program.tables <= tables:
                return schema, program
    tables = set().union(*schemas.values())
    names = ", ".join(sorted(tables)[:_SHOWN]) or "none that may be read"
    raise InputError(
        f"{path} is not a database of Mattermost, Zulip, Discourse (PostgreSQL) or Synapse "
        f"(SQLite); its tables are {names}. To read another SQLite database, name a table: "
        "`columns='table=TABLE,text=COLUMN'`. Otherwise, write the messages to a CSV file."
    )


def _postgresql(path: Path, schema: str | None, query: str) -> Iterator[str]:
    import psycopg
    from psycopg import sql

    try:
        with psycopg.connect(_connection(path), connect_timeout=_SECONDS) as server:
            server.read_only = True
            if schema is not None:
                server.execute(sql.SQL("SET search_path TO {}").format(sql.Identifier(schema)))
            with server.cursor(name="rejoinder") as cursor:
                cursor.itersize = _ROWS
                for (row,) in cursor.execute(query):
                    yield row
    except psycopg.Error as error:
        reason = " ".join(str(error).split())
        raise InputError(f"the database {path} can't be read: {reason}.") from None


def _connection(path: Path) -> str:
    """Returns the original address of a path; it must not contain a password.

    Raises:
        InputError: it has a password, which others could see and which would be stored.
    """
    address = str(path).partition(":")[2].lstrip("/")
    login, at, _ = address.partition("@")
    if at and "/" not in login and login.partition(":")[2]:
        raise InputError(
            "the address of the database has a password, which other users of this machine can "
            "see; leave it out, and set PGPASSWORD or write it to ~/.pgpass."
        )
    # a path keeps one slash of the three in `postgresql:///zulip`, which means this machine
    return f"postgresql://{'' if '/' in address.partition('?')[0] else '/'}{address}"
