"""What executors of Spark do for an extraction: read a file, write a shard."""

import json
import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import polars as pl
import pyarrow as pa
from msgspec import to_builtins

from rejoinder.corpus.engines import Extraction
from rejoinder.corpus.manifest import SPLITS, Shard
from rejoinder.corpus.options import COMMENTS
from rejoinder.corpus.reading.readers import Report, read_checked
from rejoinder.corpus.reading.strings import as_table
from rejoinder.corpus.shards import COLUMNS
from rejoinder.corpus.writer import write_shard
from rejoinder.io.files.places import Place
from rejoinder.io.files.storage import storage_errors
from rejoinder.io.spark.failures import told_to_driver

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
                report = Report()
                with told_to_driver():
                    for pieces in read_checked([files[number]], options, report, _batches):
                        yield from pieces
                yield from _batches(_told(number, report))

    return read


def _told(number: int, report: Report) -> pa.RecordBatch:
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


def shard_writer(folder: Place) -> Callable[[pa.Table], pa.Table]:
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
        return pa.table({"number": [number], "entry": [json.dumps(to_builtins(shard))]}).cast(
            pa.schema([("number", pa.int32()), ("entry", pa.string())])
        )

    return write


def _write_beside(folder: Path, number: int, split: str, table: pa.Table) -> Shard:
    # Spark may run a task twice at once: only whole shards get their name, and both are equal
    with storage_errors(folder):
        attempt = Path(tempfile.mkdtemp(prefix=".attempt-", dir=folder))
        shard = write_shard(attempt, number, split, table)
        (attempt / shard.file).replace(folder / shard.file)
        shutil.rmtree(attempt, ignore_errors=True)
    return shard
