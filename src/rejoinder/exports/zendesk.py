"""Zendesk: tickets with their comments, as the account's export or its interface gives them."""

import re
from collections.abc import Iterator
from typing import Any

from rejoinder.errors import InputError
from rejoinder.exports.base import ExportFormat, Item, Message
from rejoinder.exports.files import Files
from rejoinder.exports.mail import written_text
from rejoinder.exports.markup import markdown_text, plain_text
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
    tables,
)

_TICKETS = ("", "item", "tickets.item", "ticket", AIRBYTE)
_COMMENTS = ("", "item", "comments.item", AIRBYTE)
_EVENTS = ("", "item", "ticket_events.item", "audits.item", AIRBYTE)
_USERS = ("users.item", "", "item", AIRBYTE)
_TICKET = ({"requester_id", "submitter_id"}, {"requester_id", "via"}, {"requester", "via"})
_COMMENT = tuple({"author_id", "public", body} for body in ("plain_body", "html_body", "audit_id"))
_EVENT = ({"ticket_id", "child_events"}, {"ticket_id", "events", "author_id"})
_USER = ({"id", "name", "role"},)
_COLUMNS = {"Summation column", "Requester", "Subject"}
_PAGE = {"comments", "ticket", "users", "organizations", "groups", "count", "meta", "links"} | {
    "next_page", "previous_page"
}  # fmt: skip
_QUOTES = "blockquote, .gmail_quote, .zd-comment .quote"
_BY_ZENDESK = ("rule", "system", "voice", "sample_ticket")
"""Channels of what triggers, automations and merging tickets write, and of what calls leave."""


def _recognises(files: Files) -> bool:
    return any(_paths(keys) != (None, None) for keys in first_shapes(files, "ticket")) or bool(
        tables(files, _COLUMNS)
    )


def _paths(keys: Shape) -> tuple[str | None, str | None]:
    """Returns where the tickets of a file are, and the comments that are in no ticket."""
    tickets, comments = path_of(keys, _TICKETS, *_TICKET), path_of(keys, _EVENTS, *_EVENT)
    if comments is None:
        comments = path_of(keys, _COMMENTS, *_COMMENT)
    if comments == "comments.item" and not keys[""] <= _PAGE:
        return "", None  # tickets that hold their comments
    return tickets, comments


def _read(files: Files) -> Iterator[Item]:
    if table := next(iter(tables(files, _COLUMNS)), None):
        raise InputError(
            f"{files.where(table)} is Zendesk's export of CSV, which has no comments. Export JSON, "
            "or get tickets and comments from the API."
        )
    tickets, comments = [], []
    people: dict[str, str] = {}
    for name in documents(files):
        keys = shape(files, name)
        if (path := path_of(keys, _USERS, *_USER)) is not None:
            people.update(_names(files, name, path))
        in_tickets, loose = _paths(keys)
        tickets += [] if in_tickets is None else [(name, in_tickets)]
        comments += [] if loose is None else [(name, loose)]
    commented = {
        ticket for name, path in comments for _, _, ticket in _loose(files, name, path) if ticket
    }
    for name, path in tickets:
        for number, row in rows(files, name, path):
            yield from _ticket(name, number, row, people, commented)
    for name, path in comments:
        for number, row, ticket in _loose(files, name, path):
            yield _comment(name, number, row, ticket, people)


def _names(files: Files, name: str, path: str) -> Iterator[tuple[str, str]]:
    for _, row in rows(files, name, path):
        if isinstance(row, dict) and row.get("name") and "id" in row:
            yield id_text(row["id"]), str(row["name"])


def _loose(files: Files, name: str, path: str) -> Iterator[tuple[int, Any, str]]:
    """Yields comments that are in no ticket, or events with comments, and their tickets."""
    one = next(rows(files, name, "ticket"), (0, None))[1] if path else None
    digits = re.findall(r"\d+", name)
    of_row = id_text(one.get("id")) if isinstance(one, dict) else ""
    default = of_row or (digits or [name])[-1]
    for number, row in rows(files, name, path):
        if not isinstance(row, dict):
            yield number, row, ""
            continue
        ticket = id_text(row.get("ticket_id")) or default
        events = row.get("child_events", row.get("events"))
        if events is None:
            yield number, row, ticket
        for event in events if isinstance(events, list) else ():
            if isinstance(event, dict) and "Comment" in (
                event.get("event_type"),
                event.get("type"),
            ):
                time = row.get("created_at") or row.get("timestamp")
                yield number, {"created_at": time, "via": row.get("via"), **event}, ticket


def _ticket(
    name: str, number: int, row: Any, people: dict[str, str], commented: set[str]
) -> Iterator[Item]:
    try:
        ticket, via = id_of(row), row.get("via") or {}
        comments = list_of(row.get("comments"))
        for role in ("requester", "submitter", "assignee"):
            person = row.get(role)
            if isinstance(person, dict) and person.get("name"):
                people.setdefault(id_text(person["id"]), str(person["name"]))
        if not comments and ticket not in commented:
            author = row.get("submitter_id") or row.get("requester_id")
            subject = row.get("raw_subject") or row.get("subject") or ""
            yield Message(
                id=f"{ticket}/description",
                thread=ticket,
                author=_author(author, people),
                time=seconds(row.get("created_at")),
                text=markdown_text(written_text(row.get("description") or "")) or subject,
                source="zendesk",
                is_bot="bot" in str(via.get("channel")),
                is_system=via.get("channel") in _BY_ZENDESK,
                is_private=row.get("is_public") is False,
            )
    except FAULTS as error:
        yield no_message(name, number, "Zendesk", error)
        return
    messages = [_comment(name, number, comment, ticket, people) for comment in comments]
    yield from sorted(messages, key=lambda item: getattr(item, "time", None) or 0.0)


def _comment(name: str, number: int, row: Any, ticket: str, people: dict[str, str]) -> Item:
    try:
        via = row.get("via") or {}
        channel = str(via.get("channel")) if isinstance(via, dict) else str(via)
        author = row["author_id"]
        return Message(
            id=f"{ticket}/{id_of(row)}",
            thread=ticket,
            author=_author(author, people),
            time=seconds(row.get("created_at")),
            text=_text(row),
            source="zendesk",
            is_bot="bot" in channel,
            is_system=author == -1 or channel in _BY_ZENDESK or row.get("type") == "VoiceComment",
            is_private=row.get("public") is False,
        )
    except FAULTS as error:
        return no_message(name, number, "Zendesk", error)


def _author(author: Any, people: dict[str, str]) -> str:
    key = id_text(author)
    return people.get(key, key)


def _text(row: dict[str, Any]) -> str:
    if row.get("html_body"):
        return written_text(plain_text(row["html_body"], without=_QUOTES))
    if row.get("plain_body"):  # has entities, but no other marks
        marked = row["plain_body"].replace("<", "&lt;").replace("\n", "<br>")
        return written_text(plain_text(marked))
    return markdown_text(written_text(row.get("body") or ""))


ZENDESK = ExportFormat(
    "zendesk",
    "Zendesk (tickets with comments, JSON)",
    "https://developer.zendesk.com/api-reference/ticketing/tickets/ticket_comments/",
    _recognises,
    _read,
)
