"""A file of SQL that makes the table `texts` in PostgreSQL with pgvector.

A file needs neither a server nor its password while it is written. `psql` runs it where the
database is, as it does with what `pg_dump` writes, in one transaction.
"""

from collections.abc import Iterator
from pathlib import Path

from rejoinder.interfaces.tables import Table, TableTarget, known_columns

_ESCAPED = str.maketrans({"\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t", "\0": "\ufffd"})
"""Characters of a field of COPY. PostgreSQL can't store NUL."""


def write(table: Table, path: Path) -> None:
    """Writes the file; see `TableTarget.write`."""
    kinds = ["id text PRIMARY KEY", "text text NOT NULL", f"embedding vector({table.dim}) NOT NULL"]
    kinds += [f"{name} {'timestamptz' if name == 'time' else 'text'}" for name in table.known]
    with path.open("w", encoding="utf-8", newline="\n") as file:
        file.write(
            "SET client_encoding = 'UTF8';\nBEGIN;\nCREATE EXTENSION IF NOT EXISTS vector;\n"
        )
        file.write(f"CREATE TABLE texts ({', '.join(kinds)});\nCOPY texts FROM stdin;\n")
        file.writelines(_lines(table))
        file.write("\\.\nCOMMIT;\n")


def _lines(table: Table) -> Iterator[str]:
    vector = f"[{','.join(['%.9g'] * table.dim)}]"  # nine digits identify a float32
    for part in table.parts():
        known = known_columns(part, table.known, as_time="{}Z".format)
        vectors = (vector % tuple(row.tolist()) for row in part.embeddings)
        for row in zip(part.ids, part.texts, vectors, *known.values(), strict=True):
            fields = ("\\N" if value is None else str(value).translate(_ESCAPED) for value in row)
            yield "\t".join(fields) + "\n"


PGVECTOR = TableTarget(
    name="pgvector",
    write=write,
    query="SELECT id, text, -(embedding <#> :query) AS score FROM texts "
    "ORDER BY embedding <#> :query LIMIT 10",
)
