"""Table targets: databases that search the texts of an index, looked up by name.

A new target is one file with its record and one line in `TABLES`.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from rejoinder.corpus.texts import KEYS
from rejoinder.errors import InputError
from rejoinder.index.folder import TextIndex
from rejoinder.index.segment import EncodedTexts
from rejoinder.io.files.atomic import new_folder
from rejoinder.io.files.claims import claim, part_of
from rejoinder.io.files.storage import creation_errors, resolved, storage_errors
from rejoinder.registry import Registry

OUT = "OUT"
"""Stands for the path in the query of a target."""
DIM = "DIM"
"""Likewise for the number of dimensions."""


@dataclass(frozen=True)
class Table:
    """The texts of an index."""

    dim: int
    """Dimension of the embeddings."""
    known: tuple[str, ...]
    """Columns after `id`, `text` and `embedding`: `KEYS`, or none if nothing is known about any
    text. `time` is UTC."""
    parts: Callable[[], Iterator[EncodedTexts]]
    """Yields the texts, some thousands at a time, with float32 embeddings."""


@dataclass(frozen=True, kw_only=True)
class TableTarget:
    """A database, or a file that databases read."""

    name: str
    """The value of `--to`."""
    write: Callable[[Table, Path], None]
    """Writes a file that does not exist yet, or into an empty folder. It appears at its place only
    if this succeeds."""
    is_folder: bool = False
    """Whether it is a folder."""
    query: str
    """How to search it, in SQL or Python, with `OUT` for the path and `DIM` for the dimension. The
    score of unit and zero rows is the product with the query, as in `Index.search`."""


TABLES: Registry[TableTarget] = Registry(
    "table target",
    {
        "duckdb": "rejoinder.interfaces.tables.duckdb:DUCKDB",
        "lancedb": "rejoinder.interfaces.tables.lancedb:LANCEDB",
        "parquet": "rejoinder.interfaces.tables.parquet:PARQUET",
        "pgvector": "rejoinder.interfaces.tables.pgvector:PGVECTOR",
        "sqlite-vec": "rejoinder.interfaces.tables.sqlite_vec:SQLITE_VEC",
    },
)
"""Every table target: its name, and where its record is."""


@dataclass(frozen=True)
class WrittenTable:
    """What `write_table` wrote."""

    path: Path
    target: str
    texts: int
    """Number of its rows."""
    query: str
    """How to search it, in SQL or Python."""


def write_table(
    index: str | Path | TextIndex, out: str | Path, target: str, *, overwrite: bool = False
) -> WrittenTable:
    """Writes the texts of an index as a table for a database.

    Its columns are `id`, `text`, `embedding` and, if they are messages of an export, `author`,
    `time` (UTC), `source`, `thread`, `answers` (the id of the message it answers) and `link`.
    Memory holds some thousands of texts.

    Args:
        index: The index, or its folder. Its files are compared with their SHA-256 first.
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
    opened = index if isinstance(index, TextIndex) else _opened(Path(index))
    opened.check()
    dim = opened.manifest.dim
    table = Table(dim, KEYS if opened.knows else (), lambda: map(_as_float32, opened.encoded()))
    if record.is_folder:
        with new_folder(path, overwrite=overwrite, inputs=[opened.folder]) as new:
            record.write(table, new)
    else:
        _write_file(record, table, path, overwrite=overwrite, index=opened.folder)
    query = record.query.replace(OUT, str(path)).replace(DIM, str(dim))
    return WrittenTable(path, target, len(opened), query)


def _opened(folder: Path) -> TextIndex:
    if not folder.is_dir():
        raise InputError(
            f"{folder} is not a folder of an index; make one: rejoinder index {folder} --out index/"
        )
    return TextIndex(folder)


def _write_file(
    record: TableTarget, table: Table, path: Path, *, overwrite: bool, index: Path
) -> None:
    """Writes a file in a temporary folder next to its place, and renames it."""
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
                (part / "table").replace(path)


def _as_float32(part: EncodedTexts) -> EncodedTexts:
    return replace(part, embeddings=np.ascontiguousarray(part.embeddings, np.float32))


def known_columns(
    part: EncodedTexts,
    names: tuple[str, ...],
    *,
    as_time: Callable[[np.datetime64], object] = lambda time: time,
) -> Mapping[str, list[object]]:
    """Returns columns of what is known about texts, with None where something is not.

    `as_time` gets times in UTC, to the microsecond. Times that calendars do not have are None.
    """
    about = part.about or [{}] * len(part.texts)
    columns: dict[str, list[object]] = {name: [each.get(name) for each in about] for name in names}
    if "time" in columns:
        columns["time"] = [
            None if time is None or not _YEAR_1 <= time < _YEAR_10000
            else as_time(np.datetime64(round(time * 1e6), "us"))
            for time in (each.get("time") for each in about)
        ]  # fmt: skip
    return columns


_YEAR_1, _YEAR_10000 = -62_135_596_800, 253_402_300_800
