"""Engines that compute the one query of extraction."""

from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from rejoinder.errors import InputError, MissingExtraError, nearest

if TYPE_CHECKING:
    from rejoinder.corpus.engines.base import Engine, Opener

ENGINES: Mapping[str, str] = {
    "duckdb": "rejoinder.corpus.engines.duckdb:DuckDBEngine",
}
"""Module and class (or function) that opens the engine of a name; imported when it is asked for."""


def open_engine(name: str, memory: str, threads: int | None, spill: Path) -> "Engine":
    """The engine of that name.

    Args:
        name: one of `ENGINES`.
        memory: what it may take, as `2GB`.
        threads: at most so many; none: all cores.
        spill: a folder for what does not fit.

    Raises:
        InputError: no such engine; the memory is no amount, or too little for it.
        MissingExtraError: its package is not installed.
    """
    if name not in ENGINES:
        raise InputError(f"--engine {name!r}: {nearest(name, ENGINES)}.")
    module, _, attribute = ENGINES[name].partition(":")
    try:
        opener: Opener = getattr(import_module(module), attribute)
    except ImportError as error:
        package = (error.name or name).partition(".")[0]
        raise MissingExtraError(package, "extract") from None
    return opener(memory, threads, spill)
