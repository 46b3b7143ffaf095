"""Frames of comments as numbers and strings; DuckDB evaluates the rules."""

import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import duckdb
import ibis
import ibis.expr.types as ir
import numpy as np
import polars as pl
import pyarrow as pa
from numpy.typing import NDArray

from rejoinder.corpus import query
from rejoinder.corpus.parted.rows import KEPT, NUMBERS, STRINGS, Block, CrossingError, Rows
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

    def columns(self, sql: str, table: pa.Table) -> Mapping[str, NDArray[Any]]:
        """Returns the columns of a query over `given`, the table, with the rows in their order.

        They are numbers without nulls.
        """
        connection: Any = getattr(self._local, "connection", None)
        if connection is None:
            connection = self._local.connection = duckdb.connect()
            connection.execute("SET threads = 1")
        connection.register("given", table)
        try:
            found: Mapping[str, NDArray[Any]] = connection.sql(sql).fetchnumpy()
            return found
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
        comments = select(query.comments_table("given"))
        numbers = [(name, number) for number, name in enumerate(rules, 1)]
        comments = comments.mutate(rule=comments.rule.cases(*numbers, else_=KEPT).cast("uint8"))
        sql = ibis.to_sql(comments, dialect="duckdb")
        self._sql = _NUMBERS.format(hash=hash_, comments=sql)

    def __call__(self, comments: pa.RecordBatch) -> tuple[Rows, Block]:
        """Returns (N,) comments with the columns `COMMENTS`.

        Raises:
            CrossingError: a comment has no thread.
        """
        table = pa.Table.from_batches([comments])
        found = self._database.columns(self._sql, table)
        if found["loose"].any():
            first = comments["id"][int(found["loose"].argmax())].as_py()
            raise CrossingError(f"comment {first!r} has no thread")
        count = len(comments)
        rows = Rows(
            **{name: found[name] for name in NUMBERS},
            which=np.zeros(count, np.uint32),
            row=np.arange(count, dtype=np.uint32),
        )
        block = {name: as_strings(comments[name]) for name in STRINGS}
        clean = comments["clean"]
        if clean.null_count < count:
            changed = pl.Series(clean.is_valid()).cast(pl.UInt32).to_numpy()
            block["text"] = gather([block["text"], as_strings(clean)], changed, rows.row)
        return rows, block


def splits(
    database: Database, threads: pl.Series, shares: tuple[float, float, float]
) -> NDArray[np.int8]:
    """Returns (N,) the split of each thread: 0 train, 1 dev, 2 test."""
    if not len(threads):  # a query takes a millisecond, and many parts of small dumps are empty
        return np.empty(0, np.int8)
    table = ibis.table(ibis.schema({"thread_id": "string"}), name="given")
    split = query.split_of(table.thread_id, shares)
    sql = ibis.to_sql(table.select(split=split), dialect="duckdb")
    return database.columns(sql, pa.table([as_arrow(threads)], ["thread_id"]))["split"]
