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
from rejoinder.corpus.engines.local.rows import KEPT, NUMBERS, STRINGS, Block, CrossingError, Rows
from rejoinder.corpus.reading.strings import as_arrow, as_strings, gather
from rejoinder.kernels import kernel

_QUERY = "SELECT {columns} FROM ({comments})"
_KEYS = """{hash}(id) AS id, coalesce({hash}(parent), 0) AS parent,
    coalesce({hash}(thread), 0) AS thread, parent IS NOT NULL AS answers, thread IS NULL AS loose"""
_KEY_TYPES: Mapping[str, type] = {
    "id": np.uint64,
    "parent": np.uint64,
    "thread": np.uint64,
    "answers": np.bool_,
    "loose": np.bool_,
}
_LASTING_HASH = "md5_number_lower"
"""Half of the MD5, for files: other hashes change with the version, or need the kernel."""


class Database:
    """A small DuckDB database for each thread that asks."""

    def __init__(self) -> None:
        self._local = threading.local()

    def columns(self, sql: str, table: pa.Table) -> Mapping[str, NDArray[Any]]:
        """Returns the columns of a query over `given`, the table, with the rows in their order.

        They are numbers without nulls.
        """
        connection, statements = self._own()
        if sql not in statements:
            statements[sql] = connection.extract_statements(sql)[0]
        connection.register("given", table)
        try:
            found: Mapping[str, NDArray[Any]] = connection.execute(statements[sql]).fetchnumpy()
            return found
        finally:
            connection.unregister("given")

    def _own(self) -> tuple[duckdb.DuckDBPyConnection, dict[str, duckdb.Statement]]:
        """Returns the connection of this thread and the queries that it has parsed.

        Parsing takes a quarter of the time of a query over the comments of a block.
        """
        if not hasattr(self._local, "own"):
            connection = duckdb.connect()
            connection.execute("SET threads = 1")
            self._local.own = connection, {}
        own: tuple[duckdb.DuckDBPyConnection, dict[str, duckdb.Statement]] = self._local.own
        return own


class Classifier:
    """Turns frames of comments into numbers and strings."""

    def __init__(
        self,
        database: Database,
        select: Callable[[ir.Table], ir.Table],
        rules: Sequence[str],
        *,
        lasting: bool = False,
    ) -> None:
        """Prepares `select`, a `query.classified`, whose rules have the names `rules`.

        `lasting` asks for hashes of ids and threads that are the same in every run.
        """
        self._database = database
        comments = select(query.comments_table("given"))
        numbers = [(name, number) for number, name in enumerate(rules, 1)]
        comments = comments.mutate(rule=comments.rule.cases(*numbers, else_=KEPT).cast("uint8"))
        self._native = None if lasting else kernel("corpus.reading._join")
        keys = _KEYS.format(hash=_LASTING_HASH if lasting else "hash")
        columns = "rule" if self._native else f"rule, {keys}"
        sql = ibis.to_sql(comments, dialect="duckdb")
        self._sql = _QUERY.format(columns=columns, comments=sql)

    def __call__(self, comments: pa.RecordBatch) -> tuple[Rows, Block]:
        """Returns (N,) comments with the columns `COMMENTS`.

        Raises:
            CrossingError: a comment has no thread.
        """
        block = {name: as_strings(comments[name]) for name in STRINGS}
        found = dict(self._database.columns(self._sql, pa.Table.from_batches([comments])))
        if self._native:
            keys = self._native.keys([block[name] for name in ("id", "parent", "thread")])
            for (name, dtype), key in zip(_KEY_TYPES.items(), keys, strict=True):
                found[name] = np.frombuffer(key, dtype)
        if found["loose"].any():
            first = comments["id"][int(found["loose"].argmax())].as_py()
            raise CrossingError(f"comment {first!r} has no thread")
        count = len(comments)
        rows = Rows(
            **{name: found[name] for name in NUMBERS},
            which=np.zeros(count, np.uint32),
            row=np.arange(count, dtype=np.uint32),
        )
        clean = comments["clean"]
        if clean.null_count < count:
            changed = pl.Series(clean.is_valid()).cast(pl.UInt32).to_numpy()
            block["text"] = gather([block["text"], as_strings(clean)], changed, rows.row)
        return rows, block


class Splitter:
    """Finds the splits of threads."""

    def __init__(self, database: Database, shares: tuple[float, float, float]) -> None:
        """Prepares `query.split_of`."""
        table = ibis.table(ibis.schema({"thread_id": "string"}), name="given")
        split = query.split_of(table.thread_id, shares)
        self._database = database
        self._sql = ibis.to_sql(table.select(split=split), dialect="duckdb")

    def __call__(self, threads: pl.Series) -> NDArray[np.int8]:
        """Returns (N,) the split of each thread: 0 train, 1 dev, 2 test."""
        if not len(threads):  # a query takes milliseconds, and many parts of small dumps are empty
            return np.empty(0, np.int8)
        given = pa.table([as_arrow(threads)], ["thread_id"])
        return self._database.columns(self._sql, given)["split"].astype(np.int8)
