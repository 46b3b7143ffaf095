"""What an engine of extraction does: it keeps tables and computes Ibis expressions over them."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Protocol

import ibis.expr.types as ir
import polars as pl


class Engine(Protocol):
    """The extension point: a module, a line in `ENGINES`; the contract is `test_engines.py`."""

    def ingest(
        self, name: str, frames: Iterator[pl.DataFrame], select: Callable[[ir.Table], ir.Table]
    ) -> ir.Table:
        """Keep `select` of a stream of frames of the schema `COMMENTS` as the table `name`."""
        ...

    def keep(self, name: str, expression: ir.Table) -> ir.Table:
        """Compute a table once and keep it as `name`, in place of one of that name."""
        ...

    def rows(self, expression: ir.Table) -> pl.DataFrame:
        """A small result."""
        ...

    def stream(self, expression: ir.Table, rows: int) -> Iterator[pl.DataFrame]:
        """A large result, in its order, in frames of about `rows`."""
        ...

    def close(self) -> None:
        """Forget everything."""
        ...


class Opener(Protocol):
    """What makes an engine."""

    def __call__(self, memory: str, threads: int | None, spill: Path, /) -> Engine:
        """An engine that keeps to nearly `memory` and spills into `spill`."""
        ...
