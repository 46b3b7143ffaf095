"""Engines of extraction: each reads comments, finds the pairs, and writes them."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from rejoinder.errors import InputError
from rejoinder.registry import Registry

if TYPE_CHECKING:  # the command lists the engines before it needs their packages
    from collections.abc import Sequence

    from rejoinder.corpus.carry import Carry
    from rejoinder.corpus.manifest import Carried
    from rejoinder.corpus.options import ExtractOptions, ExtractProgress
    from rejoinder.corpus.reading.readers import Report
    from rejoinder.corpus.writer import Written
    from rejoinder.io.files.addresses import AnyPath


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
    parts_memory: str | None = None
    """Of `memory`, what the local engine takes to join parts of the comments. None means all."""


@dataclass(frozen=True)
class Extraction:
    """What is extracted."""

    files: "Sequence[AnyPath]"
    options: "ExtractOptions"
    carry: "Carry | None" = None
    """Comments of earlier extractions, for the local engine alone."""


@dataclass(frozen=True)
class Outcome:
    """The pairs that were written, and what became of all comments."""

    report: "Report"
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
    written: "Written"
    unmatched: tuple[str, str] | None = None
    """Ids of a reply and of its parent, which is missing; needed where no pair was written."""
    carried: "Carried | None" = None


class Engine(Protocol):
    """Extracts pairs.

    Comments and pairs stay inside of the engine, which may be on other machines. A new engine is a
    module and a line in `ENGINES` (see `docs/extend/engine.md`). Its contract is tested by
    `tests/corpus/test_engines.py`.
    """

    def extract(
        self, extraction: Extraction, folder: "AnyPath", progress: "ExtractProgress"
    ) -> Outcome:
        """Reads the comments, joins them, writes the pairs to `folder`, and frees all resources.

        The comments are those of `readers.read_comments`. The rows of each shard and its bytes are
        those of `writer.write_shards` for the pairs in the order `query.ORDER`.

        Raises:
            InputError: see `read_comments`, or the replies form a circle.
        """
        ...


Opener = Callable[[Resources], Engine]
"""Opens an engine: a class of engines or a function.

It raises an `InputError` if a resource has no effect on the engine, or does not suffice."""

ENGINES: Registry[Opener] = Registry(
    "`engine`",
    {
        "local": "rejoinder.corpus.engines.local.engine:LocalEngine",
        "duckdb": "rejoinder.corpus.engines.duckdb:DuckDBEngine",
        "spark": "rejoinder.corpus.engines.spark.engine:SparkEngine",
    },
)
"""Every engine: its name, and what opens it."""


def register_engine(name: str, opener: str) -> None:
    """Adds an engine from outside of this package, for `extract(…, engine=name)`.

    `opener` is the `module:class` or `module:function` of an `Opener`.

    Raises:
        InputError: the name is taken, or `opener` has no colon.
    """
    if ":" not in opener:
        raise InputError(f"{opener!r} is not MODULE:CLASS; write it as my_package.engine:Engine.")
    ENGINES.register(name, opener)


def refuse_addresses(name: str, places: "Iterable[AnyPath]") -> None:
    """Refuses addresses of stores where the engine reads and writes on this machine alone.

    Raises:
        InputError: one of `places` is an address, and the engine has no true `takes_addresses`.
    """
    address = next((place for place in places if not isinstance(place, Path)), None)
    if address is not None and not getattr(ENGINES[name], "takes_addresses", False):
        raise InputError(
            f"{address} is an address, which `engine={name!r}` does not take; use "
            "`engine='spark'`, or "
            "copy the files to this machine."
        )
