"""Engines that compute the one query of extraction."""

from pathlib import Path

from rejoinder.corpus.engines.base import Engine
from rejoinder.errors import InputError, MissingExtraError, nearest

ENGINES = ("duckdb",)


def open_engine(name: str, memory: str, threads: int | None, spill: Path) -> Engine:
    """The engine of that name.

    Raises:
        InputError: no such engine.
        MissingExtraError: its package is not installed.
    """
    if name not in ENGINES:
        raise InputError(f"--engine {name!r}: {nearest(name, ENGINES)}.")
    try:
        from rejoinder.corpus.engines.duckdb import DuckDBEngine
    except ImportError as error:
        raise MissingExtraError(error.name or "duckdb", "extract") from None
    return DuckDBEngine(memory, threads, spill)
