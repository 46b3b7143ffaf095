"""A file of Parquet, which DuckDB, Polars, Spark and others read."""

from pathlib import Path

import pyarrow.parquet as pq

from rejoinder.interfaces.tables import Table, TableTarget
from rejoinder.interfaces.tables.arrow import reader


def write(table: Table, path: Path) -> None:
    """Writes the file, a row group at a time; see `TableTarget.write`."""
    batches = reader(table)
    # neither compression nor a dictionary makes numbers of embeddings smaller
    numbers = "embedding.list.element"
    names = [name for name in batches.schema.names if name != "embedding"]
    with pq.ParquetWriter(
        path,
        batches.schema,
        compression={**dict.fromkeys(names, "zstd"), numbers: "none"},
        use_dictionary=[name for name in names if name in table.known],
        write_statistics=names,
    ) as writer:
        for batch in batches:
            writer.write_batch(batch)


PARQUET = TableTarget(
    name="parquet",
    write=write,
    query="SELECT id, text, array_inner_product(embedding::FLOAT[DIM], $query::FLOAT[DIM]) AS "
    "score FROM read_parquet('OUT') ORDER BY score DESC LIMIT 10",
)
