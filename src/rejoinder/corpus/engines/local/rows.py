"""Comments as numbers for joining, and blocks of their strings. DuckDB evaluates the rules."""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, Self

import duckdb
import ibis
import numpy as np
import polars as pl
import pyarrow as pa
from numpy.typing import NDArray

from rejoinder.corpus import query
from rejoinder.corpus.options import ExtractOptions
from rejoinder.corpus.reading.strings import (
    Hashes,
    Index,
    Strings,
    as_arrow,
    as_strings,
    gather,
)

NO_HASHES: Hashes = np.empty(0, np.uint64)
Block = Mapping[str, Strings]
"""The strings of comments by column, `STRINGS`."""
Blocks = list[Block]

KEPT = 0
"""The rule of a comment that breaks none."""
GONE = 255
"""The rule of a row that another row with the same id replaces."""
NUMBERS = ("id", "parent", "thread", "answers", "rule")
"""The columns of `Rows` that tell what a comment is; the others tell where its strings are."""
STRINGS = ("id", "parent", "thread", "source", "text")
"""The columns of strings of a block, as they were published but for the clean text."""
PREFIXES: Mapping[str, str] = {"parent": "t1_", "thread": "t3_"}
"""What is left out of the strings of a column, as in `query.classified`."""
ELSEWHERE = "a comment answers one of another thread"

_QUERY = "SELECT {columns} FROM ({comments})"
_LASTING_KEYS = """md5_number_lower(id) AS id, coalesce(md5_number_lower(parent), 0) AS parent,
    coalesce(md5_number_lower(thread), 0) AS thread, parent IS NOT NULL AS answers,
    thread IS NULL AS loose"""
"""The keys for files: half of the MD5, because other hashes change with the version of Polars."""


class CrossingError(Exception):
    """The comments can't be parted: one has no thread, or its parent is in another thread.

    The message is a clause without a full stop.
    """


@dataclass(frozen=True)
class Rows:
    """(N,) comments as numbers."""

    id: Hashes
    """Hash of the id."""
    parent: Hashes
    """Hash of the parent's id; any number for a comment that answers none."""
    thread: Hashes
    """Hash of the thread."""
    answers: NDArray[np.bool_]
    """Whether the comment answers a comment."""
    rule: NDArray[np.uint8]
    """Number of the first rule that the comment breaks, from 1; `KEPT` or `GONE`."""
    which: Index
    """Number of the block that holds its strings."""
    row: Index
    """Row in that block."""

    @classmethod
    def of_block(cls, numbers: Mapping[str, NDArray[Any]], which: int = 0) -> Self:
        """Returns the comments of all rows of block `which`, of which `NUMBERS` are known."""
        count = len(numbers["id"])
        return cls(
            **{name: numbers[name] for name in NUMBERS},
            which=np.full(count, which, np.uint32),
            row=np.arange(count, dtype=np.uint32),
        )

    def __len__(self) -> int:
        return len(self.id)

    def __getitem__(self, index: Any) -> Self:
        return type(self)(**{name: getattr(self, name)[index] for name in _NAMES})

    def strings(self, blocks: Blocks, column: str, at: Any = slice(None)) -> Strings:
        """Returns a column of the comments `at`, without prefixes."""
        columns = [block[column] for block in blocks]
        return gather(columns, self.which[at], self.row[at], PREFIXES.get(column, ""))

    def in_parts(self, bits: int) -> "RowsInParts":
        """Returns the rows by part, of 2**`bits` parts."""
        part = (self.thread >> np.uint64(64 - bits)).astype(np.uint16)
        order = np.argsort(part, kind="stable")
        return RowsInParts(self[order], np.searchsorted(part[order], np.arange(2**bits + 1)))


_NAMES = tuple(field.name for field in fields(Rows))


@dataclass(frozen=True)
class RowsInParts:
    """Comments by part."""

    rows: Rows
    borders: NDArray[np.int64]
    """(P + 1,) first row of each part, and the number of rows."""

    def __getitem__(self, part: int) -> Rows:
        return self.rows[self.borders[part] : self.borders[part + 1]]


def concatenated(rows: list[Rows]) -> Rows:
    """Returns the rows of several pieces, one after the other."""
    rows = [_NO_ROWS, *rows]
    return Rows(**{name: np.concatenate([getattr(one, name) for one in rows]) for name in _NAMES})


_HASH, _INDEX = NO_HASHES, np.empty(0, np.uint32)
_NO_ROWS = Rows(_HASH, _HASH, _HASH, np.empty(0, np.bool_), np.empty(0, np.uint8), _INDEX, _INDEX)


def among(values: Hashes, ordered: Hashes) -> NDArray[np.bool_]:
    """Returns (N,) whether each value is in `ordered`, which is in increasing order."""
    if not len(ordered):
        return np.zeros(len(values), np.bool_)
    index = np.searchsorted(ordered, values)
    index[index == len(ordered)] = 0
    found: NDArray[np.bool_] = ordered[index] == values
    return found


def _keys(block: Block) -> Mapping[str, NDArray[Any]]:
    """Returns the columns that `_LASTING_KEYS` has, with hashes for one run."""
    ids, parents, threads = (block[name] for name in ("id", "parent", "thread"))
    found = {
        "id": ids.hashes(),
        "parent": parents.hashes(PREFIXES["parent"]),
        "thread": threads.hashes(PREFIXES["thread"]),
        "loose": threads.lengths == 0,
    }
    above = (parents.lengths > 0) & ~parents.starts_with(PREFIXES["thread"].encode())
    return {**found, "answers": above & (found["id"] != found["parent"])}


class Classifier:
    """Turns comments into numbers and strings, and finds the splits of threads."""

    def __init__(self, options: ExtractOptions, *, lasting: bool = False) -> None:
        """Prepares `query.classified` and `query.split_of`.

        `lasting` asks for hashes of ids and threads that are the same in every run.
        """
        # a thread of Python is a thread of the query
        self._database = duckdb.connect(config={"threads": 1})
        comments = query.classified(query.comments_table("given"), options, numbered=True)
        sql = ibis.to_sql(comments, dialect="duckdb")
        self._lasting = lasting
        columns = f"rule, {_LASTING_KEYS}" if lasting else "rule"
        self._sql = _QUERY.format(columns=columns, comments=sql)
        threads = ibis.table(ibis.schema({"thread_id": "string"}), name="given")
        split = query.split_of(threads.thread_id, options.split)
        self._split_sql = ibis.to_sql(threads.select(split=split), dialect="duckdb")

    def __call__(self, comments: pa.RecordBatch) -> tuple[Rows, Block]:
        """Returns (N,) comments with the columns `COMMENTS`.

        Raises:
            CrossingError: a comment has no thread.
        """
        block = {name: as_strings(comments[name]) for name in STRINGS}
        found = dict(self._columns(self._sql, pa.Table.from_batches([comments])))
        if not self._lasting:
            found |= _keys(block)
        if found["loose"].any():
            first = comments["id"][int(found["loose"].argmax())].as_py()
            raise CrossingError(f"comment {first!r} has no thread")
        rows = Rows.of_block(found)
        clean = comments["clean"]
        if clean.null_count < len(rows):
            changed = pl.Series(clean.is_valid()).cast(pl.UInt32).to_numpy()
            block["text"] = gather([block["text"], as_strings(clean)], changed, rows.row)
        return rows, block

    def splits(self, threads: pl.Series) -> NDArray[np.int8]:
        """Returns (N,) the split of each thread: 0 train, 1 dev, 2 test."""
        if not len(threads):  # a query takes milliseconds, and many parts of small dumps are empty
            return np.empty(0, np.int8)
        given = pa.table([as_arrow(threads)], ["thread_id"])
        return self._columns(self._split_sql, given)["split"].astype(np.int8)

    def _columns(self, sql: str, table: pa.Table) -> Mapping[str, NDArray[Any]]:
        """Returns the columns of a query over `given`, numbers without nulls, in their order."""
        with self._database.cursor() as cursor:
            cursor.register("given", table)
            found: Mapping[str, NDArray[Any]] = cursor.execute(sql).fetchnumpy()
            return found
