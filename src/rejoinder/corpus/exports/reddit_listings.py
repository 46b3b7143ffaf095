"""Pages of Reddit as JSON: a submission with its comments, or whatever a page lists."""

from collections.abc import Iterator, Sequence
from typing import Any

from rejoinder.corpus.exports.files import Files
from rejoinder.corpus.exports.rows import documents, path_of, rows, shape

_PLACES = ("item.data.children.item", "data.children.item")
_THINGS = ("t1", "t3")
"""Kinds of comments and submissions."""


def listings(files: Files) -> list[tuple[str, str]]:
    """Returns the names of the pages and the paths to what they list."""
    found = [
        (name, path_of(shape(files, name), _PLACES, {"kind", "data"})) for name in documents(files)
    ]
    return [(name, path) for name, path in found if path is not None]


def things(files: Files, pages: Sequence[tuple[str, str]]) -> Iterator[tuple[str, int, Any]]:
    """Yields submissions and comments with the names of their pages and their numbers there.

    A comment holds its answers. Those that a page only counts are not there.
    """
    for name, path in pages:
        number = 0
        for _, child in rows(files, name, path):
            waiting = [child]
            while waiting:
                thing = waiting.pop()
                if not isinstance(thing, dict):
                    number += 1
                    yield name, number, thing
                elif thing.get("kind") in _THINGS:
                    number += 1
                    data = thing.get("data")
                    yield name, number, data
                    waiting += reversed(_answers(data))


def _answers(data: Any) -> list[Any]:
    for key in ("replies", "data", "children"):
        data = data.get(key) if isinstance(data, dict) else None
    return data if isinstance(data, list) else []
