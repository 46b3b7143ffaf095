"""The texts of an index as batches of Arrow, which DuckDB, LanceDB and Parquet take."""

from typing import Any

from rejoinder.errors import require
from rejoinder.interfaces.tables import Table, known_columns

require("parquet", "pyarrow")

import pyarrow as pa  # noqa: E402


def reader(table: Table) -> Any:
    """Returns a `pyarrow.RecordBatchReader` of a table; embeddings are lists of a fixed size."""
    kinds = {name: pa.timestamp("us") if name == "time" else pa.string() for name in table.known}
    fields = {
        "id": pa.string(),
        "text": pa.string(),
        "embedding": pa.list_(pa.float32(), table.dim),
    }
    schema = pa.schema({**fields, **kinds})

    def batches() -> Any:
        for part in table.parts():
            numbers = pa.array(part.embeddings.reshape(-1))
            known = known_columns(part, table.known).values()
            columns = [
                pa.array(part.ids, pa.string()),
                pa.array(part.texts, pa.string()),
                pa.FixedSizeListArray.from_arrays(numbers, table.dim),
                *(
                    pa.array(values, kinds[name])
                    for name, values in zip(table.known, known, strict=True)
                ),
            ]
            yield pa.record_batch(columns, schema=schema)

    return pa.RecordBatchReader.from_batches(schema, batches())
