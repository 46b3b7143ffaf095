"""Intercom: conversations and tickets with their parts, as its interface gives them."""

from collections.abc import Iterator
from typing import Any

from rejoinder.exports.base import ExportFormat, Item, Message
from rejoinder.exports.files import Files
from rejoinder.exports.markup import plain_text
from rejoinder.exports.rows import (
    AIRBYTE,
    FAULTS,
    documents,
    first_shapes,
    id_of,
    list_of,
    no_message,
    path_of,
    rows,
    seconds,
    shape,
)

_PATHS = ("", "item", "conversations.item", "tickets.item", "data.item", AIRBYTE)
_KEYS = (
    {"conversation_parts", "source"},
    {"conversation_parts", "conversation_message"},
    {"ticket_parts", "ticket_attributes"},
    {"source", "contacts", "teammates"},
    {"source", "statistics", "admin_assignee_id"},
)
_PARTS = ("", "item", "conversation_parts.item", AIRBYTE)
_PART = ({"part_type", "conversation_id"},)
"""Of parts that are in no conversation, as programs that copy tables have them."""
_SAID = ("comment", "open", "close", "quick_reply")
"""Types of parts that may hold what people write: an answer can reopen a conversation."""
_AUTOMATED = ("automated", "campaigns_initiated", "operator_initiated")


def _recognises(files: Files) -> bool:
    return any(
        path_of(keys, _PATHS, *_KEYS) is not None or path_of(keys, _PARTS, *_PART) is not None
        for keys in first_shapes(files, "conversation")
    )


def _read(files: Files) -> Iterator[Item]:
    for name in documents(files):
        keys = shape(files, name)
        if (path := path_of(keys, _PATHS, *_KEYS)) is not None:
            for number, row in rows(files, name, path):
                yield from _conversation(name, number, row)
        elif (path := path_of(keys, _PARTS, *_PART)) is not None:
            for number, row in rows(files, name, path):
                yield _part(name, number, row, None)


def _conversation(name: str, number: int, row: Any) -> Iterator[Item]:
    try:
        conversation = id_of(row)
        first = row.get("source") or row.get("conversation_message") or _as_source(row)
        is_internal = bool((row.get("ticket_type") or {}).get("is_internal"))
        kind = "ticket_parts" if "ticket_parts" in row else "conversation_parts"
        parts = row.get(kind)
        parts = list_of(parts.get(kind) if isinstance(parts, dict) else parts)
        yield Message(
            id=f"{conversation}/source",
            thread=conversation,
            author=_author(first.get("author")),
            time=seconds(row.get("created_at")),
            text=_text(first) or plain_text(first.get("subject") or ""),
            source="intercom",
            is_bot=_is_bot(first.get("author")) or first.get("delivered_as") in _AUTOMATED,
            is_private=is_internal,
        )
    except FAULTS as error:
        yield no_message(name, number, "Intercom", error)
        return
    items = [_part(name, number, part, conversation, is_private=is_internal) for part in parts]
    yield from sorted(items, key=lambda item: getattr(item, "time", None) or 0.0)


def _as_source(row: dict[str, Any]) -> dict[str, Any]:
    """Returns what a ticket begins with, as the first message of a conversation."""
    attributes = row.get("ticket_attributes") or {}
    contacts = list_of((row.get("contacts") or {}).get("contacts"))
    return {
        "author": contacts[0] if contacts else None,
        "subject": attributes.get("_default_title_"),
        "body": attributes.get("_default_description_"),
    }


def _part(
    name: str, number: int, row: Any, conversation: str | None, *, is_private: bool = False
) -> Item:
    try:
        conversation = conversation or id_of(row, "conversation_id")
        kind, author = str(row["part_type"]), row.get("author")
        text, is_note = _text(row), "note" in kind
        return Message(
            id=f"{conversation}/{id_of(row)}",
            thread=conversation,
            author=_author(author),
            time=seconds(row.get("created_at")),
            text=text,
            source="intercom",
            is_bot=_is_bot(author),
            is_system=not is_note and (kind not in _SAID or (kind != "comment" and not text)),
            is_private=is_note or is_private,
        )
    except FAULTS as error:
        return no_message(name, number, "Intercom", error)


def _text(row: dict[str, Any]) -> str:
    return "" if row.get("redacted") else plain_text(row.get("body") or "", without="blockquote")


def _author(author: Any) -> str:
    author = author or {}
    return str(author.get("name") or author.get("id") or "")


def _is_bot(author: Any) -> bool:
    author = author or {}
    return author.get("type") == "bot" or bool(author.get("from_ai_agent"))


INTERCOM = ExportFormat(
    "intercom",
    "Intercom (conversations and tickets, JSON)",
    "https://developers.intercom.com/docs/references/rest-api/api.intercom.io/conversations",
    _recognises,
    _read,
)
