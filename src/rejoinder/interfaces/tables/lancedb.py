"""A folder of LanceDB with the table `texts`."""

from pathlib import Path

import lancedb

from rejoinder.interfaces.tables import Table, TableTarget
from rejoinder.interfaces.tables.arrow import reader


def write(table: Table, path: Path) -> None:
    """Writes the folder; see `TableTarget.write`."""
    batches = reader(table)
    lancedb.connect(path).create_table("texts", batches, schema=batches.schema)


LANCEDB = TableTarget(
    name="lancedb",
    write=write,
    is_folder=True,
    query='lancedb.connect("OUT").open_table("texts").search(query).distance_type("dot")'
    ".limit(10).to_list()",
)
