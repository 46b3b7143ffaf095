"""The interface of the engines of extraction."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, runtime_checkable

import ibis.expr.types as ir
import polars as pl

from rejoinder.corpus.carry import Carry
from rejoinder.corpus.options import ExtractProgress
from rejoinder.corpus.reading.readers import Report
from rejoinder.corpus.schema import Columns
from rejoinder.corpus.writer import Written
from rejoinder.io.files.places import Place


@dataclass(frozen=True)
class Reading:
    """What an engine reads, and what it keeps of it."""

    files: Sequence[Place]
    columns: Columns
    select: Callable[[ir.Table], ir.Table]
    """Takes the table of comments (`schema.COMMENTS`) and returns, row by row, what is kept."""
    strict: bool = False
    """Whether a malformed line is an error."""
    separator: str | None = None
    """Character between the columns of tables; None means that it is detected."""


@dataclass(frozen=True)
class Resources:
    """Where an engine runs, and what it may take. None means the engine's default."""

    spill: Path
    """Folder on this machine for data that does not fit into memory."""
    memory: str | None = None
    """Amount of memory, such as `2GB`."""
    threads: int | None = None
    """Largest number of threads."""
    master: str | None = None
    """Address of the cluster that computes. None means this machine."""


@dataclass(frozen=True)
class Extraction:
    """What is extracted."""

    reading: Reading
    """Its `select` is a `query.classified`."""
    rules: Sequence[str]
    """Names of the rules, in their order."""
    split: tuple[float, float, float]
    """Shares of train, dev and test, in any unit."""
    limit: int | None = None
    """Largest number of pairs."""
    max_reply_count: int | None = None
    """Largest number of pairs with the same response, case folded."""
    carry: Carry | None = None
    """Comments of earlier extractions, for the local engine alone."""


@dataclass(frozen=True)
class Outcome:
    """The pairs that were written, and what became of all comments."""

    report: Report
    duplicates: int
    """Number of rows that repeat another row."""
    conflicts: int
    """Number of rows that differ from the row with the same id that was kept."""
    fates: Mapping[str, int]
    """Number of comments by the first rule that they break, `kept`, and `replies` among these."""
    parent_not_found: int
    """Number of kept replies whose parent is missing."""
    parent_dropped: int
    """Number of kept replies whose parent broke a rule."""
    written: Written
    table: ir.Table | None = None
    """The comments, a row per id; needed where no pair was written."""
    carried_messages: int = 0
    """Number of pairs with a carried message."""
    carried_replies: int = 0
    """Number of pairs with a carried reply."""
    overruled: int = 0
    """Number of carried comments in whose place one extraction might have kept another row."""


class Engine(Protocol):
    """Reads comments, computes Ibis expressions over them, and writes the pairs.

    Comments and pairs stay inside of the engine, which may be on other machines. A new engine is a
    module and a line in `ENGINES` (see `docs/extend/engine.md`). Its contract is tested by
    `tests/corpus/test_engines.py`.
    """

    def read(
        self, name: str, reading: Reading, progress: ExtractProgress
    ) -> tuple[ir.Table, Report]:
        """Keeps `reading` as the table `name`, and returns it with the counts of the files.

        The comments are those of `readers.read_comments`, in any order.

        Raises:
            InputError: whatever `read_comments` raises.
        """
        ...

    def keep(self, name: str, expression: ir.Table) -> ir.Table:
        """Computes a table once and keeps it as `name`, replacing a table of that name."""
        ...

    def rows(self, expression: ir.Table) -> pl.DataFrame:
        """Computes a small result."""
        ...

    def write(
        self, pairs: ir.Table, limit: int | None, folder: Place, progress: ExtractProgress
    ) -> Written:
        """Writes pairs to shards in `folder`, in the order `query.ORDER`, at most `limit` of them.

        The rows of each shard and its bytes are those of `writer.write_shards`.
        """
        ...

    def close(self) -> None:
        """Drops all tables and frees the resources."""
        ...


@runtime_checkable
class DirectEngine(Engine, Protocol):
    """An engine that also has a way of its own, beside the steps of `by_query`."""

    def at_once(
        self, extraction: Extraction, folder: Place, progress: ExtractProgress
    ) -> Outcome | None:
        """Extracts into `folder`, or returns None where the query has to do it.

        Then nothing is left in `folder`.
        """
        ...


class Opener(Protocol):
    """Opens an engine: a class of engines or a function."""

    def __call__(self, resources: Resources, /) -> Engine:
        """Returns an engine.

        Raises:
            InputError: one of the resources has no effect on this engine, or does not suffice.
        """
        ...
