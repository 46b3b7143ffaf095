"""Frames of comments as numbers and strings; DuckDB evaluates the rules."""

import threading
from collections.abc import Callable, Sequence
from typing import Any

import duckdb
import ibis
import ibis.expr.types as ir
import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from rejoinder.corpus import query
from rejoinder.corpus.parted.rows import STRINGS, Block, CrossingError, Rows
from rejoinder.corpus.strings import as_arrow, as_strings, gather

_NUMBERS = """
    SELECT {hash}(id) AS id, coalesce({hash}(parent), 0) AS parent,
        coalesce({hash}(thread), 0) AS thread,
        parent IS NOT NULL AS answers, thread IS NULL AS loose, rule
    FROM ({comments})"""
FASTEST_HASH = "hash"
"""DuckDB's own hash, which another version may change."""
LASTING_HASH = "md5_number_lower"
"""Half of the MD5, for files."""


class Database:
    """A small DuckDB database for each thread that asks."""

    def __init__(self) -> None:
        self._local = threading.local()

    def rows(self, sql: str, table: pa.Table) -> pa.Table:
        """Returns the result of a query over `given`, the table, with the rows in their order."""
        connection: Any = getattr(self._local, "connection", None)
        if connection is None:
            connection = self._local.connection = duckdb.connect()
            connection.execute("SET threads = 1")
        connection.register("given", table)
        try:
            return connection.sql(sql).to_arrow_table()
        finally:
            connection.unregister("given")


class Classifier:
    """Turns frames of comments into numbers and strings."""

    def __init__(
        self,
        database: Database,
        select: Callable[[ir.Table], ir.Table],
        rules: Sequence[str],
        hash_: str = FASTEST_HASH,
    ) -> None:
        """Prepares `select`, a `query.classified`, whose rules have the names `rules`.

        `hash_` is the function of DuckDB that hashes ids and threads to 64 bits.
        """
        self._database = database
        comments = ibis.to_sql(select(query.comments_table("given")), dialect="duckdb")
        self._sql = _NUMBERS.format(hash=hash_, comments=comments)
        self._rules = pa.array(rules, pa.string())

    def __call__(self, comments: pa.RecordBatch) -> tuple[Rows, Block]:
        """Returns (N,) comments with the columns `COMMENTS`.

        Raises:
            CrossingError: a comment has no thread.
        """
        table = pa.Table.from_batches([comments])
        found = self._database.rows(self._sql, table).combine_chunks()
        if pc.any(found["loose"]).as_py():
            first = comments["id"][found["loose"].index(True).as_py()].as_py()
            raise CrossingError(f"comment {first!r} has no thread")
        rule = pc.fill_null(pc.index_in(found["rule"], value_set=self._rules), -1)
        count = len(comments)
        rows = Rows(
            id=found["id"].to_numpy(),
            parent=found["parent"].to_numpy(),
            thread=found["thread"].to_numpy(),
            answers=found["answers"].to_numpy(),
            rule=(rule.to_numpy() + 1).astype(np.uint8),
            which=np.zeros(count, np.uint32),
            row=np.arange(count, dtype=np.uint32),
        )
        block = {name: as_strings(comments[name]) for name in STRINGS}
        clean = comments["clean"]
        if clean.null_count < count:
            changed = clean.is_valid().to_numpy(False).astype(np.uint32)
            block["text"] = gather([block["text"], as_strings(clean)], changed, rows.row)
        return rows, block


def splits(
    database: Database, threads: pl.Series, shares: tuple[float, float, float]
) -> NDArray[np.int8]:
    """Returns (N,) the split of each thread: 0 train, 1 dev, 2 test."""
    if not len(threads):  # a query takes a millisecond, and many parts of small dumps are empty
        return np.empty(0, np.int8)
    table = ibis.table(ibis.schema({"thread_id": "string"}), name="given")
    sql = ibis.to_sql(table.select(query.split_of(table.thread_id, shares)), dialect="duckdb")
    found = database.rows(sql, pa.table({"thread_id": as_arrow(threads)}))
    numbers: NDArray[np.int8] = found.column(0).to_numpy().astype(np.int8)
    return numbers
