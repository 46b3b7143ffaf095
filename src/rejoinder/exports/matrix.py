"""Matrix: a room as Element exports it (JSON), pages of its events, or an event on each line."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from rejoinder.exports.base import ExportFormat, Item, Message, by_time
from rejoinder.exports.files import Files
from rejoinder.exports.markup import plain_text
from rejoinder.exports.rows import Layout, from_milliseconds, item_of, json_values, rows

_EVENTS = Layout(
    ("messages.item", "chunk.item", "item", ""), [{"type", "sender", "content", "event_id"}]
)
_BY_PEOPLE = ("m.room.message", "m.room.encrypted", "m.sticker")
_FILES = ("m.audio", "m.file", "m.image", "m.video", "m.location")
_FALLBACK = re.compile(r"\A(?:>.*\n)+\n?")
"""Matches the answered message as clients that know no replies show it."""
_QUOTES = "mx-reply, blockquote"


def _messages(files: Files) -> Iterator[Item]:
    for name, path in _EVENTS.places(files):
        with files.open(name) as file:
            is_room = path == _EVENTS.paths[0]
            room = next(json_values(file, "room_name", name), None) if is_room else None
        for number, row in rows(files, name, path):
            yield item_of(name, number, "Matrix", _message, row, f"{name}:{number}", room)


def _message(row: Mapping[str, Any], place: str, room: str | None) -> Message:
    kind, content = row["type"], row["content"]
    relation = content.get("m.relates_to") or {}
    relates = relation.get("rel_type")
    thread = relation.get("event_id") if relates == "m.thread" else None
    parent = (relation.get("m.in_reply_to") or {}).get("event_id")
    if thread and relation.get("is_falling_back"):
        parent = thread
    related = (row.get("unsigned") or {}).get("m.relations") or {}
    edit = ((related.get("m.replace") or {}).get("content") or {}).get("m.new_content")
    is_notice = content.get("msgtype") == "m.notice"
    return Message(
        id=row.get("event_id") or place,
        parent=parent,
        thread=thread,
        author=row.get("sender") or "",
        time=from_milliseconds(row.get("origin_server_ts")),
        text=_text(kind, edit or content, is_answer=parent is not None),
        source=room or row.get("room_id") or place.rpartition(":")[0],
        is_bot=is_notice,
        is_system=kind not in _BY_PEOPLE or relates == "m.replace",
        edited=edit is not None,
    )


def _text(kind: str, content: Mapping[str, Any], *, is_answer: bool) -> str:
    body, html = content.get("body") or "", content.get("formatted_body")
    name = content.get("filename")
    if kind == "m.sticker" or (content.get("msgtype") in _FILES and name in (None, body)):
        return ""  # the body is the name of a file, or where somebody is
    if html and content.get("format") == "org.matrix.custom.html":
        return plain_text(html, without=_QUOTES)
    return str(_FALLBACK.sub("", body) if is_answer else body).strip()


MATRIX = ExportFormat(
    "matrix",
    "Matrix (Element, JSON)",
    "https://spec.matrix.org/latest/client-server-api/#mroommessage",
    _EVENTS.recognises,
    lambda files: by_time(_messages(files)),
)
