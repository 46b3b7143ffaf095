"""A file of DuckDB with the table `texts`."""

from pathlib import Path

import duckdb

from rejoinder.interfaces.tables import Table, TableTarget
from rejoinder.interfaces.tables.arrow import reader


def write(table: Table, path: Path) -> None:
    """Writes the file; see `TableTarget.write`."""
    # it would keep what it writes, up to four fifths of all memory
    with duckdb.connect(str(path), config={"memory_limit": "256MB"}) as database:
        database.register("batches", reader(table))
        database.execute("CREATE TABLE texts AS SELECT * FROM batches")


DUCKDB = TableTarget(
    name="duckdb",
    write=write,
    query="SELECT id, text, array_inner_product(embedding, $query::FLOAT[DIM]) AS score "
    "FROM texts ORDER BY score DESC LIMIT 10",
)
