"""Table targets: exports of an index to databases that search its texts, by name.

A new target is a record in `TABLES`, in this file or in one that registers it.
"""

import errno
import sqlite3
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from rejoinder.errors import InputError, require
from rejoinder.index.folder import TextIndex
from rejoinder.index.segment import EncodedTexts
from rejoinder.io.files.atomic import new_folder
from rejoinder.io.files.claims import claim, part_of
from rejoinder.io.files.storage import creation_errors, resolved, storage_errors
from rejoinder.io.files.system import rename
from rejoinder.io.formats.texts import KEYS
from rejoinder.registry import Registry

OUT = "OUT"
"""Placeholder for the path in the query of a target."""
DIM = "DIM"
"""Placeholder for the number of dimensions."""


@dataclass(frozen=True)
class Table:
    """The texts of an index."""

    dim: int
    """Dimension of the embeddings."""
    known: tuple[str, ...]
    """Columns after `id`, `text` and `embedding`: `KEYS`, or none if nothing else is known about
    the texts. `time` is UTC."""
    parts: Callable[[], Iterator[EncodedTexts]]
    """Yields the texts, a few thousand at a time, with float32 embeddings."""


@dataclass(frozen=True, kw_only=True)
class TableTarget:
    """A database, or a file format that databases read."""

    name: str
    """The value of `--to`."""
    write: Callable[[Table, Path], None]
    """Writes a new file, or into an empty folder. It is renamed into place only if this
    succeeds."""
    needs: Mapping[str, str] = field(default_factory=dict)
    """Packages that it imports, each with the extra that installs it."""
    is_folder: bool = False
    """Whether it writes a folder."""
    query: str
    """Query for a search, in SQL or Python, with `OUT` for the path and `DIM` for the dimension.
    The score of unit and zero rows is the dot product with the query, as in `Index.search`."""


@dataclass(frozen=True)
class WrittenTable:
    """Result of `write_table`."""

    path: Path
    target: str
    texts: int
    """Number of rows."""
    query: str
    """Query for a search, in SQL or Python."""


def write_table(
    index: str | Path | TextIndex, out: str | Path, target: str, *, overwrite: bool = False
) -> WrittenTable:
    """Exports the texts of an index as a table for a database.

    Its columns are `id`, `text`, `embedding` and, if they are messages of an export, `author`,
    `time` (UTC), `source`, `thread`, `answers` (the id of the message it answers) and `link`.
    Only a few thousand texts are in memory at once.

    Args:
        index: The index, or its folder. Its files are first verified by their SHA-256.
        out: The file or folder to write.
        target: A key of `TABLES`.
        overwrite: Replace what `out` holds.

    Raises:
        InputError: the target is unknown, there is no such index, it is damaged, or `out` is
            occupied.
        MissingExtraError: the database needs a package that is not installed.
        BusyError: another command is writing `out`.
        StorageError: `out` can't be written.
    """
    record, path = TABLES[target], Path(out)
    for package, extra in record.needs.items():
        require(extra, package)
    opened = index if isinstance(index, TextIndex) else TextIndex(Path(index))
    opened.check()
    dim = opened.manifest.dim
    table = Table(
        dim, KEYS if opened.has_messages else (), lambda: map(_as_float32, opened.encoded())
    )
    if record.is_folder:
        with new_folder(path, overwrite=overwrite, inputs=[opened.folder]) as new:
            record.write(table, new)
    else:
        _write_file(record, table, path, overwrite=overwrite, index=opened.folder)
    query = record.query.replace(OUT, str(path)).replace(DIM, str(dim))
    return WrittenTable(path, target, len(opened), query)


def _write_file(
    record: TableTarget, table: Table, path: Path, *, overwrite: bool, index: Path
) -> None:
    """Writes a file in a temporary folder next to the path, and renames it."""
    with claim(path, inputs=[index]):
        if path.is_dir():
            raise InputError(f"{path} is a folder; `to={record.name!r}` writes a file. Name one.")
        if path.exists() and not overwrite:
            raise InputError(f"{path} exists; name another, or replace it with `overwrite=True`.")
        path = resolved(path)
        with part_of(path) as part, storage_errors(path):
            part.mkdir()
            record.write(table, part / "table")
            with creation_errors(path):
                rename(part / "table", path)


def _as_float32(part: EncodedTexts) -> EncodedTexts:
    return replace(part, embeddings=np.ascontiguousarray(part.embeddings, np.float32))


def known_columns(
    part: EncodedTexts,
    names: tuple[str, ...],
    *,
    as_time: Callable[[np.datetime64], object] = lambda time: time,
) -> Mapping[str, list[object]]:
    """Returns columns of known facts about texts, with None for unknown ones.

    `as_time` converts times in UTC, in microseconds. Times outside the calendar are None.
    """
    about = part.known
    columns: dict[str, list[object]] = {name: [each.get(name) for each in about] for name in names}
    if "time" in columns:
        columns["time"] = [
            None if time is None or not _YEAR_1 <= time < _YEAR_10000
            else as_time(np.datetime64(round(time * 1e6), "us"))
            for time in (each.get("time") for each in about)
        ]  # fmt: skip
    return columns


_YEAR_1, _YEAR_10000 = -62_135_596_800, 253_402_300_800


def _rows(
    table: Table, as_vector: Callable[[Any], object], as_time: Callable[[np.datetime64], object]
) -> Iterator[tuple[object, ...]]:
    """Yields the rows of a table, with embeddings and times in their stored form."""
    for part in table.parts():
        known = known_columns(part, table.known, as_time=as_time)
        vectors = map(as_vector, part.embeddings)
        yield from zip(part.ids, part.texts, vectors, *known.values(), strict=True)


def arrow_reader(table: Table) -> Any:
    """Returns a `pyarrow.RecordBatchReader` of a table; embeddings are lists of a fixed size."""
    import pyarrow as pa

    kinds = dict.fromkeys(("id", "text", "embedding", *table.known), pa.string())
    kinds["embedding"] = pa.list_(pa.float32(), table.dim)
    if "time" in kinds:
        kinds["time"] = pa.timestamp("us")
    schema = pa.schema(kinds)

    def batches() -> Any:
        for part in table.parts():
            numbers = pa.array(part.embeddings.reshape(-1))
            rows = pa.FixedSizeListArray.from_arrays(numbers, table.dim)
            columns = {"id": part.ids, "text": part.texts, "embedding": rows}
            columns |= known_columns(part, table.known)
            yield pa.RecordBatch.from_pydict(columns, schema)

    return pa.RecordBatchReader.from_batches(schema, batches())


def _write_duckdb(table: Table, path: Path) -> None:
    """Writes the table `texts` of DuckDB; see `TableTarget.write`."""
    import duckdb

    # it would keep what it writes, up to four fifths of all memory
    with duckdb.connect(str(path), config={"memory_limit": "256MB"}) as database:
        database.register("batches", arrow_reader(table))
        database.execute("CREATE TABLE texts AS SELECT * FROM batches")


def _write_lancedb(table: Table, path: Path) -> None:
    """Writes the table `texts` of LanceDB; see `TableTarget.write`."""
    import lancedb

    batches = arrow_reader(table)
    lancedb.connect(path).create_table("texts", batches, schema=batches.schema)


def _write_parquet(table: Table, path: Path) -> None:
    """Writes a Parquet file, a row group at a time; see `TableTarget.write`."""
    import pyarrow.parquet as pq

    batches = arrow_reader(table)
    # neither compression nor a dictionary makes embeddings smaller
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


_ESCAPED = str.maketrans({"\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t", "\0": "\ufffd"})
"""Escapes for a field of COPY. PostgreSQL can't store NUL."""


def _write_pgvector(table: Table, path: Path) -> None:
    """Writes SQL that creates the table `texts` in PostgreSQL; see `TableTarget.write`.

    Writing the file needs neither a server nor a password. `psql` runs it where the
    database is, as with the output of `pg_dump`, in one transaction.
    """
    kinds = ["id text PRIMARY KEY", "text text NOT NULL", f"embedding vector({table.dim}) NOT NULL"]
    kinds += [f"{name} {'timestamptz' if name == 'time' else 'text'}" for name in table.known]
    with path.open("w", encoding="utf-8", newline="\n") as file:
        file.write(
            "SET client_encoding = 'UTF8';\nBEGIN;\nCREATE EXTENSION IF NOT EXISTS vector;\n"
        )
        file.write(f"CREATE TABLE texts ({', '.join(kinds)});\nCOPY texts FROM stdin;\n")
        file.writelines(_lines(table))
        file.write("\\.\nCOMMIT;\n")


def _lines(table: Table) -> Iterator[str]:
    vector = f"[{','.join(['%.9g'] * table.dim)}]"  # nine digits identify a float32
    for row in _rows(table, lambda row: vector % tuple(row.tolist()), "{}Z".format):
        fields = ("\\N" if value is None else str(value).translate(_ESCAPED) for value in row)
        yield "\t".join(fields) + "\n"


def _write_sqlite(table: Table, path: Path) -> None:
    """Writes an SQLite file, without sqlite-vec: vectors are stored as bytes of float32.

    See `TableTarget.write`. Times are text, such as 2024-03-01T08:06:00.000000.
    """
    kinds = ["id TEXT PRIMARY KEY", "text TEXT NOT NULL", "embedding BLOB NOT NULL"]
    kinds += [f"{name} TEXT" for name in table.known]
    try:
        # the file is renamed when it is complete, so SQLite need not protect it
        with closing(sqlite3.connect(path, isolation_level=None)) as database:
            database.execute("PRAGMA page_size = 16384")  # rows would not fill smaller pages
            database.execute("PRAGMA journal_mode = OFF")
            database.execute("PRAGMA synchronous = OFF")
            database.execute("BEGIN")
            database.execute(f"CREATE TABLE texts ({', '.join(kinds)})")
            marks = ", ".join("?" * len(kinds))
            rows = _rows(table, lambda row: row.astype("<f4").tobytes(), str)
            database.executemany(f"INSERT INTO texts VALUES ({marks})", rows)  # noqa: S608
            database.execute("COMMIT")
    except sqlite3.OperationalError as error:
        if "full" not in str(error):
            raise
        raise OSError(errno.ENOSPC, str(error)) from None


_TARGETS = (
    TableTarget(
        name="duckdb",
        write=_write_duckdb,
        needs={"duckdb": "extract", "pyarrow": "parquet"},
        query="SELECT id, text, array_inner_product(embedding, $query::FLOAT[DIM]) AS score "
        "FROM texts ORDER BY score DESC LIMIT 10",
    ),
    TableTarget(
        name="lancedb",
        write=_write_lancedb,
        needs={"lancedb": "lancedb", "pyarrow": "parquet"},
        is_folder=True,
        query='lancedb.connect("OUT").open_table("texts").search(query).distance_type("dot")'
        ".limit(10).to_list()",
    ),
    TableTarget(
        name="parquet",
        write=_write_parquet,
        needs={"pyarrow": "parquet"},
        query="SELECT id, text, array_inner_product(embedding::FLOAT[DIM], $query::FLOAT[DIM]) AS "
        "score FROM read_parquet('OUT') ORDER BY score DESC LIMIT 10",
    ),
    TableTarget(
        name="pgvector",
        write=_write_pgvector,
        query="SELECT id, text, -(embedding <#> :query) AS score FROM texts "
        "ORDER BY embedding <#> :query LIMIT 10",
    ),
    TableTarget(
        name="sqlite-vec",
        write=_write_sqlite,
        query="SELECT id, text, 1 - vec_distance_cosine(embedding, :query) AS score FROM texts "
        "ORDER BY score DESC LIMIT 10",
    ),
)
TABLES: Registry[TableTarget] = Registry("table target", {one.name: one for one in _TARGETS})
"""Every table target by its name."""
