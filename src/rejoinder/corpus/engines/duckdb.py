"""DuckDB: the engine for one machine. It spills to disk beyond a bound on memory.

Also runs the extraction query step by step, for engines that compute Ibis expressions.
"""

import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from functools import cached_property
from typing import Any

import duckdb
import ibis
import ibis.expr.types as ir
import polars as pl
import pyarrow as pa

from rejoinder.corpus import query
from rejoinder.corpus.engines import Extraction, Outcome, Resources
from rejoinder.corpus.options import ExtractProgress
from rejoinder.corpus.reading.columns import ARROW
from rejoinder.corpus.reading.readers import Report, read_comments
from rejoinder.corpus.writer import Written, write_shards
from rejoinder.errors import InputError, StorageError
from rejoinder.io.files.addresses import AnyPath, size_of
from rejoinder.io.formats.shown import parse_bytes


class QueryEngine(ABC):
    """An engine that keeps tables and computes the expressions of `query` over them."""

    @abstractmethod
    def read(self, extraction: Extraction, progress: ExtractProgress) -> tuple[ir.Table, Report]:
        """Keeps the comments, `query.classified`, in any order, with the counts of the files.

        Raises:
            InputError: see `read_comments`.
        """

    @abstractmethod
    def keep(self, name: str, expression: ir.Table) -> ir.Table:
        """Computes a table once and keeps it as `name`, replacing a table of that name."""

    @abstractmethod
    def rows(self, expression: ir.Table) -> pl.DataFrame:
        """Computes a small result."""

    @abstractmethod
    def write(
        self, pairs: ir.Table, limit: int | None, folder: AnyPath, progress: ExtractProgress
    ) -> Written:
        """Writes pairs to shards in `folder`, in the order `query.ORDER`, at most `limit` of them.

        The rows of each shard and its bytes are those of `writer.write_shards`.
        """

    @abstractmethod
    def close(self) -> None:
        """Drops all tables and frees the resources."""

    def extract(
        self, extraction: Extraction, folder: AnyPath, progress: ExtractProgress
    ) -> Outcome:
        """Reads the comments, joins them, and writes the pairs to `folder`, see `Engine`."""
        with closing(self):
            options = extraction.options
            table, report = self.read(extraction, progress)
            progress("joining", 0, None)
            repeated = self.keep("repeated", query.repeated_ids(table))
            duplicates, conflicts = self.rows(query.repeated_counts(repeated)).row(0)
            if duplicates is not None:
                table = self.keep("unique_comments", query.unique(table, repeated))
            table = self._threaded(table)
            fates = self._fates(table)
            pairs = query.pairs(table)
            if options.max_reply_count is not None:
                pairs = query.capped(pairs, options.max_reply_count)
            parts = self.keep("parts", query.splits(table, options.split))
            written = self.write(pairs.join(parts, "thread_id"), options.limit, folder, progress)
            lost: Sequence[int | None] = (0, 0)
            unmatched = None
            if fates["replies"] > written.rows:
                lost = self.rows(query.lost_parents(table)).row(0)
            if lost[0] and not written.rows:
                unmatched = self.rows(query.without_parents(table).order_by("id").limit(1)).row(0)
            return Outcome(
                report=report,
                duplicates=int(duplicates or 0),
                conflicts=int(conflicts or 0),
                fates=fates,
                parent_not_found=int(lost[0] or 0),
                parent_dropped=int(lost[1] or 0),
                written=written,
                unmatched=unmatched,
            )

    def _threaded(self, table: Any) -> Any:
        """Returns the table with a thread for every comment: that of its chain's root if missing.

        Raises:
            InputError: the replies form a circle.
        """
        if not self.rows(table.filter(table.thread.isnull()).limit(1).select("id")).height:
            return table
        roots = self.keep("roots_0", query.first_roots(table))
        # a chain is at most as long as the table, and each round looks twice as far up
        rounds = int(self.rows(table.count().as_table()).item()).bit_length() + 1
        for doubling in range(1, rounds + 1):
            roots = self.keep(f"roots_{doubling % 2}", query.next_roots(roots))
            moved = self.rows(roots.filter(roots.moved).aggregate(root=roots.root.min())).item()
            roots = roots.drop("moved")
            if moved is None:
                return self.keep("threaded", query.with_threads(table, roots))
        raise InputError(
            f"the replies of these files form a circle: {moved!r} answers itself by way of others. "
            "Repair them, or give a thread column, `columns='thread=…'`."
        )

    def _fates(self, table: Any) -> dict[str, int]:
        """Counts comments by broken rule, and the kept ones: all (`kept`) and `replies`."""
        rows = self.rows(
            table.group_by("rule").aggregate(comments=table.count(), replies=table.parent.count())
        )
        fates: dict[str, int] = {"kept": 0, "replies": 0}
        for rule, comments, replies in rows.iter_rows():
            fates |= {rule: comments} if rule else {"kept": comments, "replies": replies}
        return fates


_SHARE = 0.95
"""Share of the allowed memory that DuckDB is told. The process took 2.5 GB of 2 GB with all of it,
and 2.1 GB with this share."""
_MEMORY = "2GB"
_LEAST = 150_000_000
LEAST_PER_THREAD = 100_000_000
"""Bytes that sufficed for three million comments. Two thirds of them did not."""
_FRAME_ROWS = 65_536
_BATCH_ROWS = 16_384
_STREAM = "stream_of_comments"


class DuckDBEngine(QueryEngine):
    """An in-memory database that spills into a folder."""

    def __init__(self, resources: Resources) -> None:
        """Checks what the database may use, see `Opener`."""
        if resources.master is not None:
            raise InputError(
                f"`master` {resources.master} is for `engine='spark'`; others run on this machine."
            )
        memory, threads = resources.memory or _MEMORY, resources.threads or 1
        self.memory = parse_bytes(memory)
        needed = max(_LEAST, threads * LEAST_PER_THREAD)
        if self.memory < needed:
            raise InputError(
                f"`memory` {memory!r} is too little for `threads` {threads}; "
                f"{needed // 10**6}MB is the least."
            )
        most = int(self.memory // LEAST_PER_THREAD)
        self.threads = resources.threads or min(os.cpu_count() or 1, most)
        self.spill = resources.spill

    @cached_property
    def connection(self) -> Any:
        """The database, opened when it is first used: that takes a fifth of a second."""
        connection = self._guarded(
            lambda: ibis.duckdb.connect(
                memory_limit=f"{int(self.memory * _SHARE)}B",
                temp_directory=str(self.spill),
                threads=self.threads,
            )
        )
        # its bar goes to standard output, which may hold --json
        connection.con.execute("SET enable_progress_bar = false")
        return connection

    def read(self, extraction: Extraction, progress: ExtractProgress) -> tuple[ir.Table, Report]:
        """Keeps the comments."""
        report = Report()
        size = sum(map(size_of, extraction.files))
        failed: list[BaseException] = []

        def batches() -> Iterator[pa.RecordBatch]:
            files, options = extraction.files, extraction.options
            try:
                for comments in read_comments(files, options, report, lambda batch: batch):
                    progress("reading", report.bytes_read, size)
                    yield from pa.Table.from_batches([comments]).to_batches(_BATCH_ROWS)
            except BaseException as error:
                failed.append(error)
                raise

        stream = pa.RecordBatchReader.from_batches(ARROW, batches())
        self.connection.con.register(_STREAM, stream)
        comments = query.classified(query.comments_table(_STREAM), extraction.options)
        try:
            return self.keep("comments", comments), report
        except duckdb.Error:
            if failed:  # DuckDB wraps the exceptions of a reader: raise the reader's own
                raise failed[0] from None
            raise
        finally:
            self.connection.con.unregister(_STREAM)

    def keep(self, name: str, expression: ir.Table) -> ir.Table:
        """Computes a table once and keeps it as `name`."""
        # the order of kept rows does not matter, and preserving it costs memory
        self._run("SET preserve_insertion_order = false")
        self._run(f"CREATE OR REPLACE TABLE {name} AS {ibis.to_sql(expression, dialect='duckdb')}")
        table: ir.Table = self.connection.table(name)
        return table

    def rows(self, expression: ir.Table) -> pl.DataFrame:
        """Computes a small result."""
        return pl.DataFrame(pl.from_arrow(pa.concat_tables(self._stream(expression))))

    def write(
        self, pairs: ir.Table, limit: int | None, folder: AnyPath, progress: ExtractProgress
    ) -> Written:
        """Writes pairs to shards, as a stream in the order of the output."""
        progress("sorting", 0, None)
        tables = self._stream(query.ordered(pairs, limit))
        return write_shards(folder, counted(tables, progress))

    def close(self) -> None:
        """Closes the connection, which drops its tables and spilled data."""
        if (connection := vars(self).pop("connection", None)) is not None:
            connection.disconnect()

    def _stream(self, expression: ir.Table) -> Iterator[pa.Table]:
        """Yields a result in its order. The first table is empty, so that there are columns."""
        # without this setting, parts of a sorted result come in any order
        self._run("SET preserve_insertion_order = true")
        sql = ibis.to_sql(expression, dialect="duckdb")
        reader = self._guarded(lambda: self.connection.con.sql(sql).to_arrow_reader(_FRAME_ROWS))
        yield pa.Table.from_batches([], schema=reader.schema)
        while (batch := self._guarded(lambda: next(reader, None))) is not None:
            yield pa.Table.from_batches([batch])

    def _run(self, sql: str) -> Any:
        return self._guarded(lambda: self.connection.con.execute(sql))

    def _guarded(self, work: Callable[[], Any]) -> Any:
        try:
            return work()
        except RuntimeError as error:
            if str(error) == "Query interrupted":  # DuckDB's message for Ctrl-C
                raise KeyboardInterrupt from None
            raise
        except (duckdb.Error, pa.ArrowException, OSError) as error:
            reason = str(error).split("\n")[0]
            if "max_temp_directory_size" in str(error):  # nine tenths of the free space
                raise StorageError(
                    "the output's disk has no space left for what does not fit into `memory`; "
                    "free some, raise `memory`, or name an output on another disk."
                ) from None
            if isinstance(error, duckdb.OutOfMemoryException) or "Out of Memory" in reason:
                raise InputError(
                    f"the engine needs more memory ({reason}); raise `memory`, or lower `threads`."
                ) from None
            raise


def counted(tables: Iterator[pa.Table], progress: ExtractProgress) -> Iterator[pa.Table]:
    """Yields tables of pairs that are written, and tells how many pairs there were."""
    done = 0
    for table in tables:
        done += len(table)
        if done:  # the first table is empty, and the engine sorts until the second one
            progress("writing", done, None)
        yield table
