"""The interface of the engines of extraction."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Protocol

import ibis.expr.types as ir
import polars as pl


class Engine(Protocol):
    """Keeps tables and computes Ibis expressions over them.

    A new engine is a module and a line in `ENGINES` (see `docs/extend/engine.md`). Its contract is
    tested by `tests/corpus/test_engines.py`.
    """

    def ingest(
        self, name: str, frames: Iterator[pl.DataFrame], select: Callable[[ir.Table], ir.Table]
    ) -> ir.Table:
        """Keeps `select` of a stream of frames with the schema `COMMENTS` as the table `name`.

        An exception of the stream is raised unchanged.
        """
        ...

    def keep(self, name: str, expression: ir.Table) -> ir.Table:
        """Computes a table once and keeps it as `name`, replacing a table of that name."""
        ...

    def rows(self, expression: ir.Table) -> pl.DataFrame:
        """Computes a small result."""
        ...

    def stream(self, expression: ir.Table, rows: int) -> Iterator[pl.DataFrame]:
        """Computes a large result and yields it in its order, in frames of about `rows` rows.

        The first frame may be empty; it has the columns.
        """
        ...

    def close(self) -> None:
        """Drops all tables and frees the resources."""
        ...


class Opener(Protocol):
    """Opens an engine: a class of engines or a function."""

    def __call__(self, memory: str, threads: int | None, spill: Path, /) -> Engine:
        """Returns an engine that takes about `memory`, such as `2GB`, and spills into `spill`.

        `threads` is the largest number of threads. None means all cores.
        """
        ...
