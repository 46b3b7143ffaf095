"""What is imported when it is first used: the records of registries, by their names, and kernels.

Kernels are in C and all optional, each next to the module that calls it. Where one was not built,
its caller computes the same with Python, NumPy, Polars, DuckDB or torch. `REJOINDER_NATIVE=0` in
the environment leaves them out, for tests and to rule them out as a cause.
"""

import os
from collections.abc import Iterator, Mapping
from functools import cache
from importlib import import_module
from typing import Any, Generic, TypeVar

from rejoinder.errors import InputError, missing_extra, nearest

Record = TypeVar("Record")


def resolve(reference: Any) -> Any:
    """Returns what `"module:attribute"` refers to; anything but a string is returned as it is."""
    if not isinstance(reference, str):
        return reference
    module, _, attribute = reference.partition(":")
    return getattr(import_module(module), attribute)


class Registry(Generic[Record]):
    """Records by name, in the order in which they were registered."""

    def __init__(self, what: str, references: Mapping[str, Record | str]) -> None:
        """A registry of records, or of their `"module:attribute"` until they are first used.

        `what` says in messages what the records are, such as `encoder`.
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
        """Returns all records, which imports them."""
        return tuple(self[name] for name in self._records)

    def register(self, name: str, record: Record | str) -> None:
        """Adds a record, or its `"module:attribute"`.

        Raises:
            InputError: another record has that name.
        """
        if name in self._records:
            raise InputError(f"{self.what} {name!r} is registered already; choose a new name.")
        self._records[name] = record

    def remove(self, name: str) -> None:
        """Removes a record, so that its name is free again."""
        del self._records[name]


WITHOUT_KERNELS = os.environ.get("REJOINDER_NATIVE") == "0"
"""Whether this process does without kernels."""


def kernel(name: str) -> Any:
    """Returns the kernels `name`, such as `text._words`; None where not built or left out."""
    return None if WITHOUT_KERNELS else _module(name)


def are_built() -> bool:
    """Returns whether the kernels of the runtime were built, whether or not they are left out."""
    return _module("text._words") is not None


def way(name: str) -> str:
    """Returns how the runtime does the work of the kernels `name` here: `native` or `numpy`."""
    return "numpy" if kernel(name) is None else "native"


@cache
def _module(name: str) -> Any:
    try:
        return import_module(f"rejoinder.{name}")
    except ImportError:
        return None
