"""Gitter: pages of a room's messages, as its interface gave them until 2023."""

from collections.abc import Iterator, Mapping
from typing import Any

from rejoinder.corpus.exports.base import ExportFormat, Item, Message
from rejoinder.corpus.exports.by_time import by_time
from rejoinder.corpus.exports.files import Files
from rejoinder.corpus.exports.markup import markdown_text
from rejoinder.corpus.exports.rows import (
    FAULTS,
    documents,
    first_shapes,
    id_of,
    no_message,
    path_of,
    rows,
    seconds,
    shape,
)

_PATHS = ("item", "")
_MESSAGE = ({"id", "text", "sent", "fromUser"},)
_ROOM = ({"id", "uri", "oneToOne"}, {"id", "url", "oneToOne"})


def _recognises(files: Files) -> bool:
    return any(path_of(keys, _PATHS, *_MESSAGE) is not None for keys in first_shapes(files))


def _read(files: Files) -> Iterator[Item]:
    yield from by_time(_items(files))


def _items(files: Files) -> Iterator[Item]:
    rooms: list[Mapping[str, Any]] = []
    pages: list[tuple[str, str]] = []
    for name in documents(files):
        keys = shape(files, name)
        if (path := path_of(keys, _PATHS, *_MESSAGE)) is not None:
            pages.append((name, path))
        elif (path := path_of(keys, _PATHS, *_ROOM)) is not None:
            rooms += [row for _, row in rows(files, name, path) if isinstance(row, dict)]
    for name, path in pages:
        source, is_private = _room(files, name, rooms)
        for number, row in rows(files, name, path):
            try:
                yield _message(row, source, is_private=is_private)
            except FAULTS as error:
                yield no_message(name, number, "Gitter", error)


def _room(files: Files, name: str, rooms: list[Mapping[str, Any]]) -> tuple[str, bool]:
    """Returns the room of a page, and whether it is private.

    Messages don't say which room they are in: the path of their page may have its id.
    """
    named = [room for room in rooms if str(room.get("id")) in f"{files.title}/{name}"]
    room = (named or (rooms if len(rooms) == 1 else [{}]))[0]
    title = room.get("uri") or room.get("name") or name.rpartition("/")[0] or "gitter"
    closed = room.get("oneToOne") is True or room.get("security") in ("PRIVATE", "INHERITED")
    return str(title), closed and room.get("public") is not True


def _message(row: Any, source: str, *, is_private: bool) -> Message:
    id_, person, parent = id_of(row), row.get("fromUser") or {}, row.get("parentId")
    return Message(
        id=id_,
        text=markdown_text(row["text"] or ""),
        parent=parent or None,
        thread=parent or (id_ if row.get("threadMessageCount") else None),
        author=person.get("displayName") or person.get("username") or "",
        time=seconds(row["sent"]),
        source=source,
        is_private=is_private,
        edited=row.get("editedAt") is not None,
    )


GITTER = ExportFormat(
    "gitter",
    "Gitter (messages of a room, JSON of its interface)",
    "https://developer.gitter.im/docs/messages-resource",
    _recognises,
    _read,
)
