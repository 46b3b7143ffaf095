"""Freshdesk and Freshservice: tickets and their conversations, from exports or the interface."""

from collections.abc import Iterator, Mapping
from typing import Any

from rejoinder.exports.base import ExportFormat, Item, Message
from rejoinder.exports.files import Files
from rejoinder.exports.mail import written_text
from rejoinder.exports.markup import plain_text
from rejoinder.exports.rows import (
    AIRBYTE,
    FAULTS,
    Shape,
    documents,
    first_shapes,
    id_of,
    id_text,
    list_of,
    no_message,
    path_of,
    rows,
    seconds,
    shape,
)

_OLD = ("helpdesk_ticket", "item.helpdesk_ticket")
_TICKETS = ("", "item", "tickets.item", "ticket", *_OLD, AIRBYTE)
_TICKET = ({"requester_id", "responder_id"}, {"description_text", "requester_id"})
_LOOSE = ("", "item", "conversations.item", "conversation", AIRBYTE)
_CONVERSATION = ({"incoming", "private", "body"}, {"incoming", "private", "body_text"})
_PEOPLE = ("", "item", "agents.item", "contacts.item", "item.agent", "item.user", AIRBYTE)
_PERSON = ({"id", "contact"}, {"id", "name", "email"}, {"id", "first_name", "last_name"})
_QUOTES = "blockquote, .freshdesk_quote, .gmail_quote"
_OUTBOUND = 10
"""Source of a ticket that an agent began, with a mail to the requester."""
_META = 4
"""Source of a note that says what happened to a ticket."""


def _recognises(files: Files) -> bool:
    return any(_paths(keys) != (None, None) for keys in first_shapes(files, "ticket"))


def _paths(keys: Shape) -> tuple[str | None, str | None]:
    """Returns where the tickets of a file are, and the conversations that are in no ticket."""
    tickets = path_of(keys, _TICKETS, *_TICKET)
    return tickets, None if tickets is not None else path_of(keys, _LOOSE, *_CONVERSATION)


def _read(files: Files) -> Iterator[Item]:
    people: dict[str, str] = {}
    for name in documents(files):
        keys = shape(files, name)
        if _paths(keys) == (None, None) and (path := path_of(keys, _PEOPLE, *_PERSON)) is not None:
            people.update(_names(files, name, path))
    for name in documents(files):
        tickets, loose = _paths(shape(files, name))
        if tickets is not None:
            for number, row in rows(files, name, tickets):
                yield from _ticket(name, number, row, people)
        elif loose is not None:
            for number, row in rows(files, name, loose):
                yield _conversation(name, number, row, None, people)


def _names(files: Files, name: str, path: str) -> Iterator[tuple[str, str]]:
    for _, row in rows(files, name, path):
        if isinstance(row, dict) and (called := _name_of(row)):
            yield id_text(row.get("id")), called


def _name_of(person: Mapping[str, Any]) -> str:
    inner = person.get("contact") or person.get("user")
    person = inner if isinstance(inner, dict) else person
    both = f"{person.get('first_name') or ''} {person.get('last_name') or ''}"
    return str(person.get("name") or both).strip()


def _ticket(name: str, number: int, row: Any, people: dict[str, str]) -> Iterator[Item]:
    try:
        ticket = id_of(row, "display_id" if "display_id" in row else "id")
        requester = row.get("requester")
        if isinstance(requester, dict) and _name_of(requester):
            people.setdefault(id_text(requester.get("id")), _name_of(requester))
        by_agent = row.get("source") == _OUTBOUND
        conversations = list_of(row.get("conversations", row.get("notes")))
        yield Message(
            id=f"{ticket}/description",
            thread=ticket,
            author=_author(row.get("responder_id" if by_agent else "requester_id"), people),
            time=seconds(row.get("created_at")),
            text=_text(row, "description", "description_text") or str(row.get("subject") or ""),
            source="freshdesk",
            is_private=bool(row.get("private")),
        )
    except FAULTS as error:
        yield no_message(name, number, "Freshdesk", error)
        return
    items = [_conversation(name, number, one, ticket, people) for one in conversations]
    yield from sorted(items, key=lambda item: getattr(item, "time", None) or 0.0)


def _conversation(
    name: str, number: int, row: Any, ticket: str | None, people: Mapping[str, str]
) -> Item:
    try:
        row = row.get("note", row)
        ticket = ticket or id_of(row, "ticket_id")
        author = row.get("user_id") or row.get("from_email")
        return Message(
            id=f"{ticket}/{id_of(row)}",
            thread=ticket,
            author=_author(author, people),
            time=seconds(row.get("created_at")),
            text=_text(row, "body", "body_text"),
            source="freshdesk",
            is_system=row.get("source") == _META,
            is_private=bool(row.get("private")),
            edited=row.get("last_edited_at") is not None,
        )
    except FAULTS as error:
        return no_message(name, number, "Freshdesk", error)


def _author(author: Any, people: Mapping[str, str]) -> str:
    key = id_text(author)
    return people.get(key, key)


def _text(row: Mapping[str, Any], html: str, plain: str) -> str:
    marked = row.get(f"{html}_html") or row.get(html)
    return written_text(plain_text(marked, without=_QUOTES) if marked else row.get(plain) or "")


FRESHDESK = ExportFormat(
    "freshdesk",
    "Freshdesk (tickets with conversations, JSON)",
    "https://developers.freshdesk.com/api/#conversations",
    _recognises,
    _read,
)
