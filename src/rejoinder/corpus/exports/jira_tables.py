"""Jira's export as CSV: a row for each issue, with a column for each of its comments.

A comment is one cell: time, author and text, separated by semicolons. It does not say whether it is
restricted, and times are those of the person who exported it.
"""

import re
from collections.abc import Iterator
from datetime import datetime
from typing import Any

from rejoinder.corpus.exports.csv_rows import Row, table_rows_of, tables
from rejoinder.corpus.exports.files import Files
from rejoinder.corpus.exports.rows import seconds

_COLUMNS = {"Issue key", "Summary"}
_PEOPLE = ("Reporter", "Assignee", "Creator", "Watchers")
_COMMENT = re.compile(r"\s*(\d[^;\n]{5,30});([^;\n]*);(.*)", re.DOTALL)
_TIMES = ("%d/%b/%y %I:%M %p", "%d/%b/%y %H:%M", "%m/%d/%Y %H:%M", "%m/%d/%Y %I:%M %p")


def issue_tables(files: Files) -> list[str]:
    """Returns the names of such tables."""
    return tables(files, _COLUMNS)


def issues_of_tables(files: Files) -> Iterator[tuple[str, int, Any]]:
    """Yields issues as the interface has them, with the names of their tables and their lines."""
    names: dict[str, str] = {}
    for table in issue_tables(files):
        for _, row in table_rows_of(files, table):
            names.update(_people(row))
    for table in issue_tables(files):
        for number, row in table_rows_of(files, table):
            yield table, number, _issue(row, names)


def _people(row: Row) -> Iterator[tuple[str, str]]:
    """Yields the ids of accounts with their names; comments have ids alone."""
    for column in _PEOPLE:
        people, ids = row.get(column, ()), row.get(f"{column} Id", ())
        if len(people) == len(ids):
            yield from ((id_, name) for id_, name in zip(ids, people, strict=True) if id_ and name)


def _issue(row: Row, names: dict[str, str]) -> dict[str, Any]:
    def first(column: str) -> str | None:
        return next(filter(None, row.get(column, ())), None)

    author = first("Reporter") or first("Creator")
    cells = [cell for cell in row.get("Comment", ()) if cell.strip()]
    return {
        "id": first("Issue id") or first("Issue key"),
        "key": first("Issue key"),
        "fields": {
            "summary": first("Summary"),
            "description": first("Description"),
            "reporter": {"name": author} if author else None,
            "created": _when(first("Created")),
            "project": {"key": first("Project key")},
            "security": first("Security Level"),
            "comment": [_comment(place, cell, names) for place, cell in enumerate(cells, 1)],
        },
    }


def _comment(place: int, cell: str, names: dict[str, str]) -> dict[str, Any]:
    parts = _COMMENT.fullmatch(cell)
    time, author, body = parts.groups() if parts else (None, "", cell)
    return {
        "id": f"comment-{place}",
        "author": {"name": names.get(author, author)},
        "created": _when(time),
        "body": body,
    }


def _when(text: str | None) -> float | None:
    """Returns a time in the usual forms; None for others, such as months in other languages.

    >>> _when("01/Mar/24 8:00 AM"), _when("2024-03-01 08:00"), _when("01/Mär/24 8:00 AM")
    (1709280000.0, 1709280000.0, None)
    """
    for form in _TIMES:
        try:
            return seconds(datetime.strptime((text or "").strip(), form).isoformat())
        except ValueError:
            continue
    try:
        return seconds(text)
    except (ValueError, OverflowError):
        return None
