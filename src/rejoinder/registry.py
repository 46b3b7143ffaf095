"""Lazy imports: registries, which look up records by name, and optional C kernels.

Each kernel is next to the module that calls it. If it was not built, its caller computes the same
result with Python, NumPy, Polars, DuckDB or torch. Set `REJOINDER_NATIVE=0` in the environment to
switch the kernels off, in tests or to rule them out as the cause of a problem.
"""

import os
from collections.abc import Iterator, Mapping
from functools import cache
from importlib import import_module
from typing import Any, Generic, TypeVar

from rejoinder.errors import InputError, missing_extra, nearest

Record = TypeVar("Record")


def resolve(reference: Any) -> Any:
    """Imports and returns the object at `"module:attribute"`; returns other values unchanged."""
    if not isinstance(reference, str):
        return reference
    module, _, attribute = reference.partition(":")
    return getattr(import_module(module), attribute)


class Registry(Generic[Record]):
    """Records by name, in the order in which they were registered."""

    def __init__(self, what: str, references: Mapping[str, Record | str]) -> None:
        """Creates a registry of records, or of `"module:attribute"` strings imported on first use.

        `what` names the kind of record in messages, such as `encoder`.
        """
        self.what = what
        self._records: dict[str, Any] = dict(references)

    def __getitem__(self, name: str) -> Record:
        """Returns the record of that name.

        Raises:
            InputError: no record has that name.
            MissingExtraError: the record needs a package that is not installed.
        """
        if name not in self._records:
            raise InputError(f"{self.what} {name!r}: {nearest(name, self._records)}.")
        try:
            record: Record = resolve(self._records[name])
        except ModuleNotFoundError as error:
            raise missing_extra(error) or error from None
        self._records[name] = record
        return record

    def __contains__(self, name: object) -> bool:
        return name in self._records

    def __iter__(self) -> Iterator[str]:
        return iter(self._records)

    def values(self) -> tuple[Record, ...]:
        """Imports and returns all records."""
        return tuple(self[name] for name in self._records)

    def register(self, name: str, record: Record | str) -> None:
        """Adds a record, or the `"module:attribute"` to import it from.

        Raises:
            InputError: another record has that name.
        """
        if name in self._records:
            raise InputError(f"{self.what} {name!r} is registered already; choose a new name.")
        self._records[name] = record

    def remove(self, name: str) -> None:
        """Removes a record and frees its name."""
        del self._records[name]


WITHOUT_KERNELS = os.environ.get("REJOINDER_NATIVE") == "0"
"""Whether the kernels are switched off in this process."""


def kernel(name: str) -> Any:
    """Returns the kernel module `name`, such as `text._words`; None if not built or disabled."""
    return None if WITHOUT_KERNELS else _module(name)


def are_built() -> bool:
    """Returns whether the runtime's kernels were built, even if they are switched off."""
    return _module("text._words") is not None


def way(name: str) -> str:
    """Returns how the work of the kernels `name` is done here: `native` or `numpy`."""
    return "numpy" if kernel(name) is None else "native"


@cache
def _module(name: str) -> Any:
    try:
        return import_module(f"rejoinder.{name}")
    except ImportError:
        return None
