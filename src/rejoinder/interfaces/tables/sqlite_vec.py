"""A file of SQLite, whose embeddings the functions of sqlite-vec compare."""

import errno
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

from rejoinder.interfaces.tables import Table, TableTarget, known_columns


def write(table: Table, path: Path) -> None:
    """Writes the file, without sqlite-vec: its vectors are bytes of float32.

    See `TableTarget.write`. Times are text, such as 2024-03-01T08:06:00.000000.
    """
    names = ("id", "text", "embedding", *table.known)
    kinds = ["id TEXT PRIMARY KEY", "text TEXT NOT NULL", "embedding BLOB NOT NULL"]
    kinds += [f"{name} TEXT" for name in table.known]
    try:
        # the file gets its name when it is whole, so that SQLite need not protect it
        with closing(sqlite3.connect(path, isolation_level=None)) as database:
            database.execute("PRAGMA page_size = 16384")  # rows would not fill smaller pages
            database.execute("PRAGMA journal_mode = OFF")
            database.execute("PRAGMA synchronous = OFF")
            database.execute("BEGIN")
            database.execute(f"CREATE TABLE texts ({', '.join(kinds)})")
            marks = ", ".join("?" * len(names))
            database.executemany(f"INSERT INTO texts VALUES ({marks})", _rows(table))  # noqa: S608
            database.execute("COMMIT")
    except sqlite3.OperationalError as error:
        if "full" not in str(error):
            raise
        raise OSError(errno.ENOSPC, str(error)) from None


def _rows(table: Table) -> Iterator[tuple[object, ...]]:
    for part in table.parts():
        known = known_columns(part, table.known, as_time=str)
        vectors = (row.astype("<f4").tobytes() for row in part.embeddings)
        yield from zip(part.ids, part.texts, vectors, *known.values(), strict=True)


SQLITE_VEC = TableTarget(
    name="sqlite-vec",
    write=write,
    query="SELECT id, text, 1 - vec_distance_cosine(embedding, :query) AS score FROM texts "
    "ORDER BY score DESC LIMIT 10",
)
