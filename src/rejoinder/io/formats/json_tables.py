"""Checked access to the tables of `config.json`: an error names the file and the key."""

from collections.abc import Mapping, Sequence
from reprlib import repr as short
from typing import Any

from rejoinder.errors import ModelError

LARGEST = 2**31 - 1
"""The largest size: ids of words and rows are int32."""


class Table:
    """A table of `config.json`."""

    def __init__(self, config: Mapping[str, Any], name: str, where: str, parent: str = "") -> None:
        """The table `name` of `config`.

        Messages name the file `where`, and `parent`, the path of `config` in it, such as `heads.`.

        Raises:
            ModelError: there is no such table.
        """
        self.name, self.where = parent + name, where
        values = config.get(name)
        if not isinstance(values, Mapping):
            state = f"is {short(values)}" if name in config else "is missing"
            raise ModelError(
                f"{where}: {self.name} {state}; a table is needed: the folder is damaged."
            )
        self.values: Mapping[str, Any] = values

    def size(self, key: str, least: int = 1, most: int = LARGEST) -> int:
        """A whole number from `least` to `most`."""
        value = self.values.get(key)
        if not is_size(value, least, most):
            raise self.fault(key, f"a whole number from {least} to {most:,}")
        return int(value)  # type: ignore[arg-type]

    def sizes(self, key: str) -> list[int]:
        """A list, possibly empty, of whole numbers of at least 1."""
        value = self.values.get(key)
        if not isinstance(value, list | tuple) or not all(is_size(item) for item in value):
            raise self.fault(key, f"a list of whole numbers from 1 to {LARGEST:,}")
        return list(value)

    def flag(self, key: str) -> bool:
        """True or false."""
        value = self.values.get(key)
        if not isinstance(value, bool):
            raise self.fault(key, "true or false")
        return value

    def word(self, key: str, known: Sequence[str]) -> str:
        """A string that is one of `known`."""
        value = self.values.get(key)
        if not isinstance(value, str) or value not in known:
            raise self.fault(key, f"one of {', '.join(map(repr, known))}")
        return value

    def fault(self, key: str, needed: str) -> ModelError:
        """Returns the error for a value that is not what is `needed`."""
        state = f"is {short(self.values[key])}" if key in self.values else "is missing"
        return ModelError(f"{self.where}: {self.name}.{key} {state}; {needed} is needed.")


def is_size(value: object, least: int = 1, most: int = LARGEST) -> bool:
    """Whether `value` is a whole number from `least` to `most`; booleans are not numbers here.

    >>> is_size(3), is_size(True), is_size(3.0), is_size(0)
    (True, False, False, False)
    """
    return isinstance(value, int) and not isinstance(value, bool) and least <= value <= most
