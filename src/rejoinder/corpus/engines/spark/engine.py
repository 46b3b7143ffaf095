"""Spark: the engine for many machines. Its executors read the dumps and write the shards.

Only counts, file names and the entries of shards pass through the driver.

Also has the work of Spark executors in an extraction: reading a file and writing a shard.
"""

import json
import shutil
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from itertools import chain, count
from pathlib import Path
from typing import TYPE_CHECKING

import ibis
import ibis.expr.types as ir
import polars as pl
import pyarrow as pa
from msgspec import to_builtins

from rejoinder.corpus import query
from rejoinder.corpus.engines import Extraction, Resources
from rejoinder.corpus.engines.duckdb import QueryEngine
from rejoinder.corpus.manifest import FILE as MANIFEST
from rejoinder.corpus.manifest import SPLITS, Shard
from rejoinder.corpus.options import COMMENTS, ExtractProgress
from rejoinder.corpus.reading import readers
from rejoinder.corpus.reading.columns import as_table
from rejoinder.corpus.writer import COLUMNS, SHARD_ROWS, Written, write_shard
from rejoinder.errors import InputError
from rejoinder.exports.base import Malformed
from rejoinder.io.files.addresses import Address, AnyPath, clear, size_of
from rejoinder.io.files.storage import storage_errors
from rejoinder.io.spark_session import open_session, spark_errors, told_to_driver

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


_DEEPEST = 4
"""Kept tables that are made of each other. Spark plans a table with all that it is made of, which
doubles in size with each step up the chains of replies; beyond this a table is cut off from that,
and not computed again where an executor is lost."""
_EXPANSION = 8
"""Bytes of comments by byte of a compressed dump."""
_PARTITION_BITS = 33
"""`monotonically_increasing_id` is the partition, shifted by this, plus the row within it."""


class SparkEngine(QueryEngine):
    """A session of Spark that keeps tables in the memory and on the disks of its executors."""

    takes_addresses = True

    def __init__(self, resources: Resources) -> None:
        """Opens a session, see `Opener`. An active session of this process is used."""
        self._session = open_session(
            resources.master, resources.memory, resources.threads, resources.spill
        )
        self.spark = self._session.spark
        self._numbers = count()
        self._kept: list[DataFrame] = []
        self._views: list[str] = []
        self._depths: dict[str, int] = {}

    def read(
        self, extraction: Extraction, progress: ExtractProgress
    ) -> tuple[ir.Table, readers.Report]:
        """Keeps the comments: a task reads a file."""
        files, options = extraction.files, extraction.options
        readers.check_files(files, options)
        progress("reading", 0, None)
        self._session.expect(sum(map(size_of, files)) * _EXPANSION)
        reader = file_reader(extraction)
        with spark_errors():
            # range() promises a number in each partition, so that no two files share a task
            numbers = self.spark.range(0, len(files), 1, len(files))
            view = self._view("read", numbers.mapInArrow(reader, COMMENT_FIELDS))
            selected = query.classified(query.comments_table(view), options)
            kept = self._persisted(self._sql(selected))
            told = kept.filter("id IS NULL").select("text").toArrow()
            view = self._view("comments", kept.filter("id IS NOT NULL"))
        report = _report(files, told.column(0).to_pylist())
        readers.check_keys(report, options)
        self._depths[view] = 1
        return ibis.table(selected.schema(), name=view), report

    def keep(self, name: str, expression: ir.Table) -> ir.Table:
        """Computes a table once and keeps it as `name`."""
        sql = ibis.to_sql(expression, dialect="pyspark")
        depth = 1 + max((self._depths[view] for view in self._depths if view in sql), default=0)
        with spark_errors():
            table = self.spark.sql(sql)
            if depth > _DEEPEST:
                table, depth = table.localCheckpoint(), 0
            view = self._view(name, table if depth == 0 else self._persisted(table))
        self._depths[view] = depth
        return ibis.table(expression.schema(), name=view)

    def rows(self, expression: ir.Table) -> pl.DataFrame:
        """Computes a small result."""
        with spark_errors():
            return _frame(self._sql(expression))

    def write(
        self, pairs: ir.Table, limit: int | None, folder: AnyPath, progress: ExtractProgress
    ) -> Written:
        """Writes pairs to shards: Spark sorts and numbers them, and a task writes a shard."""
        from pyspark.sql import functions as f

        progress("sorting", 0, None)
        with spark_errors():
            # kept, because numbering and writing must see the same partitions
            ordered = self._persisted(self._sql(query.ordered(pairs, None)))
            row = f.monotonically_increasing_id()
            partition = f.shiftright(row, _PARTITION_BITS)
            numbered = ordered.withColumn("row", row).withColumn("partition", partition)
            cuts = _cuts(_frame(numbered.groupBy("partition", "part").count()), limit)
            if cuts.is_empty():
                return Written()
            known = f.broadcast(self.spark.createDataFrame(cuts.to_arrow()))
            place = f.expr(f"(row & {(1 << _PARTITION_BITS) - 1}L) + offset")
            shard = (f.floor(place / SHARD_ROWS) + f.col("first_shard")).cast("int")
            placed = numbered.join(known, ["partition", "part"]).withColumn("place", place)
            placed = placed.filter("place < rows").withColumn("shard", shard)
            placed = placed.drop("row", *set(cuts.columns) - {"part"})
            progress("writing", 0, None)
            shards = self._write_shards(placed, cuts.select("last_shard").max().item(), folder)
            written = self._counted(placed, shards)
        progress("writing", written.rows, written.rows)
        _check_written(folder, written.shards)
        return written

    def close(self) -> None:
        """Drops the tables, and stops the session unless it is the caller's."""
        with suppress(Exception):  # the session may have ended already
            for table in self._kept:
                table.unpersist()
            for view in self._views:
                self.spark.catalog.dropTempView(view)
        self._session.close()

    def _sql(self, expression: ir.Table) -> "DataFrame":
        return self.spark.sql(ibis.to_sql(expression, dialect="pyspark"))

    def _view(self, name: str, table: "DataFrame") -> str:
        """Gives a table a unique name: Spark Connect looks names up again at each use."""
        view = f"rejoinder_{name}_{next(self._numbers)}_{id(self):x}"
        table.createOrReplaceTempView(view)
        self._views.append(view)
        return view

    def _persisted(self, table: "DataFrame") -> "DataFrame":
        """Keeps a table, which is computed at its first use, and again where it is lost."""
        self._kept.append(table.persist())
        return table

    def _write_shards(self, placed: "DataFrame", shards: int, folder: AnyPath) -> list[Shard]:
        if isinstance(folder, Address):
            clear(folder, MANIFEST)
        writer = shard_writer(folder)
        by_shard = placed.repartition(shards, "shard").groupBy("shard")
        told = by_shard.applyInArrow(writer, "number INT, entry STRING")
        entries = dict(_frame(told).iter_rows())
        if isinstance(folder, Path):
            for left in folder.glob(".attempt-*"):
                shutil.rmtree(left, ignore_errors=True)
        return [Shard(**json.loads(entries[number])) for number in sorted(entries)]

    def _counted(self, placed: "DataFrame", shards: Sequence[Shard]) -> Written:
        """Returns the counts of the pairs, which Spark computes."""
        from pyspark.sql import functions as f

        written = Written(list(shards))
        sources = _frame(placed.groupBy("part", "source").count().orderBy("part", "source"))
        for part, source, rows in sources.iter_rows():
            written.rows += rows
            written.splits[SPLITS[part]] += rows
            written.sources[source][SPLITS[part]] = rows
        # of hashes, as on one machine: they take less space than texts
        distinct = [
            _frame(placed.select(f.xxhash64(name).alias("h")).distinct().groupBy().count()).item()
            for name in ("input", "response")
        ]
        written.unique_inputs, written.unique_responses = distinct
        return written


def _cuts(sizes: pl.DataFrame, limit: int | None) -> pl.DataFrame:
    """Returns where the rows of each `partition` and `part` belong, from their `count`.

    A row has its number within the partition plus `offset` as its place in its part, of which the
    first `rows` are written, to the shards from `first_shard` to `last_shard`.
    """
    before = pl.col("count").cum_sum() - pl.col("count")
    sizes = sizes.sort("part", "partition").with_columns(first=before)
    last = pl.col("first") + pl.col("count") if limit is None else limit
    parts = sizes.group_by("part", maintain_order=True).agg(
        pl.col("first").min(), pl.col("count").sum()
    )
    rows = pl.min_horizontal("count", last - pl.col("first")).clip(0)
    parts = parts.select("part", rows=rows, last_shard=(-(-rows // SHARD_ROWS)).cum_sum())
    parts = parts.with_columns(first_shard=pl.col("last_shard").shift(1, fill_value=0))
    offset = before.over("part") - before.over("partition")
    cuts = sizes.with_columns(offset=offset).join(parts, on="part")
    return cuts.filter(pl.col("rows") > 0).select(
        "partition", "part", "offset", "rows", "first_shard", "last_shard"
    )


def _frame(table: "DataFrame") -> pl.DataFrame:
    return pl.DataFrame(pl.from_arrow(table.toArrow()))


def _report(files: Sequence[AnyPath], told: Sequence[str]) -> readers.Report:
    """Returns the counts that the executors told, in the order of the files."""
    report = readers.Report()
    entries = {entry["number"]: entry for entry in map(json.loads, told)}
    for number, path in enumerate(files):
        entry = entries[number]
        report.files.append(readers.FileReport(path, *entry["counts"]))
        report.add_malformed([Malformed(**line) for line in entry["malformed"]])
        report.keys |= dict.fromkeys(entry["keys"])
    return report


def _check_written(folder: AnyPath, shards: Sequence[Shard]) -> None:
    sizes = {path.name: size_of(path) for path in folder.iterdir()}
    for shard in shards:
        if sizes.get(shard.file) != shard.bytes:
            raise InputError(
                f"the executors wrote {shard.file} to their own disks; name an output in a "
                "folder that all machines share."
            )


Batches = Iterator[pa.RecordBatch]

COMMENT_FIELDS = ", ".join(
    f"{name} {'INT' if kind == 'int32' else kind}" for name, kind in COMMENTS.items()
)
"""The columns `COMMENTS` as Spark writes them."""
_ARROW = pa.schema(list(COMMENTS.items()))
_BATCH_ROWS = 16_384


def file_reader(extraction: Extraction) -> Callable[[Batches], Batches]:
    """Returns a function that takes numbers of files and yields their comments.

    After the comments of each file comes a row without an id, which no comment lacks. Its text is
    the JSON of the counts of the file.
    """
    # executors have other working folders
    files = [path.absolute() if isinstance(path, Path) else path for path in extraction.files]
    options = extraction.options

    def read(batches: Batches) -> Batches:
        for batch in batches:
            for number in batch.column(0).to_pylist():
                report = readers.Report()
                file = [files[number]]
                comments = readers.read_comments(file, options, report, _batches, among_others=True)
                with told_to_driver():
                    yield from chain.from_iterable(comments)
                yield from _batches(_told(number, report))

    return read


def _told(number: int, report: readers.Report) -> pa.RecordBatch:
    [file] = report.files
    told = {
        "number": number,
        "counts": [file.comments, file.malformed, file.bytes_read],
        "malformed": [to_builtins(line) for line in report.malformed],
        "keys": list(report.keys),
    }
    return pa.RecordBatch.from_pylist([{"text": json.dumps(told)}], schema=_ARROW)


def _batches(comments: pa.RecordBatch) -> list[pa.RecordBatch]:
    table = pa.Table.from_batches([comments]).cast(_ARROW)
    return table.to_batches(max_chunksize=_BATCH_ROWS)  # type: ignore[no-any-return]


def shard_writer(folder: AnyPath) -> Callable[[pa.Table], pa.Table]:
    """Returns a function that writes the rows of one shard and returns its number and entry."""

    def write(rows: pa.Table) -> pa.Table:  # Spark reads the types
        # the order of rows that come out of a shuffle is any
        frame = pl.DataFrame(pl.from_arrow(rows)).sort("place")
        table = as_table(frame.select(COLUMNS[:-1]))
        number, split = frame.item(0, "shard"), SPLITS[frame.item(0, "part")]
        with told_to_driver():
            if isinstance(folder, Path):
                shard = _write_beside(folder, number, split, table)
            else:
                shard = write_shard(folder, number, split, table)
        told = {"number": number, "entry": json.dumps(to_builtins(shard))}
        return pa.Table.from_pylist([told], pa.schema({"number": pa.int32(), "entry": pa.string()}))

    return write


def _write_beside(folder: Path, number: int, split: str, table: pa.Table) -> Shard:
    # Spark may run a task twice at once: only whole shards get their name, and both are equal
    with storage_errors(folder):
        attempt = Path(tempfile.mkdtemp(prefix=".attempt-", dir=folder))
        shard = write_shard(attempt, number, split, table)
        (attempt / shard.file).replace(folder / shard.file)
        shutil.rmtree(attempt, ignore_errors=True)
    return shard
