"""Registries: names with the records that they stand for, imported when they are first used."""

from collections.abc import Iterator, Mapping
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
