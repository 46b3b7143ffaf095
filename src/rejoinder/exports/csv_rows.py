"""Tables that help desks export, by the names of their columns, which may repeat."""

import csv
from collections.abc import Iterator, Mapping, Sequence

from rejoinder.exports.files import Files
from rejoinder.io.formats.separated import table_rows

_SEPARATORS = (",", ";", "\t")

Row = Mapping[str, Sequence[str]]
"""The values of a row that are not empty, by column."""


def tables(files: Files, wanted: set[str]) -> list[str]:
    """Returns the names of the tables that have all the columns."""
    some = [name for name in files.names if len(files.names) == 1 or name.lower().endswith(".csv")]
    return [name for name in some if wanted <= _header(files, name)[1].keys()]


def table_rows_of(files: Files, name: str) -> Iterator[tuple[int, Row]]:
    """Yields the rows of a table with the numbers of their first lines, from 2."""
    separator, columns = _header(files, name)
    with files.open(name) as file:
        pieces = iter(lambda: file.read(1 << 16), b"")
        for number, values in table_rows(pieces, separator, files.where(name)):
            if number > 1:
                yield (
                    number,
                    {
                        column: [values[place] for place in places if values[place : place + 1]]
                        for column, places in columns.items()
                    },
                )


def _header(files: Files, name: str) -> tuple[str, dict[str, list[int]]]:
    """Returns the separator of a table, and the places of its columns."""
    line = files.head(name).split(b"\n", 1)[0].decode("utf-8", "replace").rstrip("\r")
    choices = []
    for separator in _SEPARATORS:
        columns: dict[str, list[int]] = {}
        try:
            names = next(csv.reader([line], delimiter=separator), [])
        except csv.Error:
            names = []
        for place, column in enumerate(names):
            columns.setdefault(column.strip(), []).append(place)
        choices.append((separator, columns))
    return max(choices, key=lambda choice: len(choice[1]))
