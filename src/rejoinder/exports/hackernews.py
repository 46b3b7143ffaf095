"""Hacker News: items of its interface, or of that of its search, where they are nested."""

from collections.abc import Iterator
from typing import Any

from rejoinder.exports.base import ExportFormat, Item, Message, by_time
from rejoinder.exports.files import Files, Roots
from rejoinder.exports.markup import plain_text
from rejoinder.exports.rows import FAULTS, Layout, first_of, id_of, list_of, no_message, seconds

_TIMES = ("time", "created_at_i", "created_at")
_ITEMS = Layout(
    ("", "item", "hits.item"),
    (
        {"id", "by", "time", "type"},
        *({"id", author, "children", time} for author in ("author", "by") for time in _TIMES),
        *({"objectID", "created_at_i", text} for text in ("_tags", "comment_text", "story_text")),
    ),
)
_PART = "pollopt"
"""Type of a choice in a poll, which answers nothing."""


def _items(files: Files) -> Iterator[Item]:
    roots = Roots()
    for name, number, row in _ITEMS.rows(files):
        waiting: list[tuple[Any, Any]] = [(row, None)]
        while waiting:
            one, above = waiting.pop()
            try:
                waiting += [(child, one["id"]) for child in reversed(_children(one))]
                yield _message(one, above, roots)
            except FAULTS as error:
                yield no_message(name, number, "Hacker News", error)


def _children(row: dict[str, Any]) -> list[Any]:
    """Returns the items in another, of which search gives only the ids."""
    return [one for one in list_of(row.get("children")) if not isinstance(one, int)]


def _message(row: dict[str, Any], above: Any, roots: Roots) -> Message:
    id_ = int(id_of(row, "id" if "id" in row else "objectID"))
    parent = int(row.get("parent") or row.get("parent_id") or row.get("poll") or above or 0)
    story, kind = int(row.get("story_id") or 0), row.get("type")
    if parent == id_:
        raise ValueError(f"item {id_} answers itself")
    if parent:
        roots.add(id_, to=story or parent)
    gone = row.get("deleted") or row.get("dead")
    return Message(
        id=str(id_),
        text="" if gone else _text(row),
        parent=str(parent) if parent and kind != _PART else None,
        thread=str(roots.of(id_)),
        author=first_of(row, "by", "author"),
        time=_time(next((row[key] for key in _TIMES if row.get(key)), None)),
        source="hackernews",
        link=f"https://news.ycombinator.com/item?id={id_}",
        is_system=kind == _PART,
    )


def _time(value: Any) -> float | None:
    is_number = isinstance(value, str) and value.isdecimal()  # as BigQuery exports it
    return float(value) if is_number else seconds(value)


def _text(row: dict[str, Any]) -> str:
    said = row.get("text") or row.get("comment_text") or row.get("story_text") or ""
    lines = plain_text(said).split("\n")
    text = "\n".join(line for line in lines if not line.startswith(">"))
    return f"{plain_text(row.get('title') or '')}\n{text}".strip()


HACKERNEWS = ExportFormat(
    "hackernews",
    "Hacker News (items, JSON)",
    "https://github.com/HackerNews/API",
    _ITEMS.recognises,
    lambda files: by_time(_items(files)),
    is_public=True,
)
