"""Engines that compute the one query of extraction."""

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from rejoinder.errors import InputError, MissingExtraError, nearest
from rejoinder.registry import resolve

if TYPE_CHECKING:
    from rejoinder.corpus.engines.base import Engine, Opener, Resources
    from rejoinder.io.files.places import Place

ENGINES: dict[str, str] = {
    "local": "rejoinder.corpus.engines.local.engine:LocalEngine",
    "duckdb": "rejoinder.corpus.engines.duckdb:DuckDBEngine",
    "spark": "rejoinder.corpus.engines.spark.engine:SparkEngine",
}
"""`module:class` by name of the engine. The module is imported when the engine is used. A function
instead of a class will do (see `Opener`)."""


def register_engine(name: str, opener: str) -> None:
    """Adds an engine from outside of this package, for `extract(…, engine=name)`.

    `opener` is the `module:class` or `module:function` of an `Opener`.

    Raises:
        InputError: the name is taken, or `opener` has no colon.
    """
    if name in ENGINES:
        raise InputError(f"there is an engine {name!r} already; choose another name.")
    if ":" not in opener:
        raise InputError(f"{opener!r} is not MODULE:CLASS; write it as my_package.engine:Engine.")
    ENGINES[name] = opener


def refuse_addresses(name: str, places: "Iterable[Place]") -> None:
    """Refuses addresses of stores where the engine reads and writes on this machine alone.

    Raises:
        InputError: one of `places` is an address, and the engine has no true `takes_addresses`.
    """
    address = next((place for place in places if not isinstance(place, Path)), None)
    if address is not None and not getattr(_opener(name), "takes_addresses", False):
        raise InputError(
            f"{address} is an address, which --engine {name} does not take; use --engine spark, or "
            "copy the files to this machine."
        )


def open_engine(name: str, resources: "Resources") -> "Engine":
    """Opens an engine of `ENGINES`."""
    return _opener(name)(resources)


def _opener(name: str) -> "Opener":
    if name not in ENGINES:
        raise InputError(f"--engine {name!r}: {nearest(name, ENGINES)}.")
    try:
        opener: Opener = resolve(ENGINES[name])
    except ImportError as error:
        package = (error.name or name).partition(".")[0]
        raise MissingExtraError(package, "extract") from None
    return opener
