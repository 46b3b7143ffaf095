"""Tickets with what was said on them: Freshdesk, Intercom and Zendesk.

Each gives JSON, from its export or its interface. A record says of a system where its tickets are,
and comments that are in no ticket; functions say what a row means.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from rejoinder.errors import InputError
from rejoinder.exports import rows
from rejoinder.exports.base import ExportFormat, Item, Message
from rejoinder.exports.files import Files
from rejoinder.exports.mail import written_text
from rejoinder.exports.markup import markdown_text, plain_text


@dataclass
class _Known:
    """What some rows of an export say about others."""

    people: dict[str, str] = field(default_factory=dict)
    """Names by id."""
    commented: set[str] = field(default_factory=set)
    """Tickets of which comments are elsewhere."""

    def author(self, author: Any) -> str:
        """Returns the name of an author, or the id."""
        key = rows.id_text(author)
        return self.people.get(key, key)


@dataclass(frozen=True)
class _Opened:
    """What the row of a ticket says."""

    thread: str
    first: Message | None
    """What it begins with; None where its comments have that, too."""
    comments: list[Any]


@dataclass(frozen=True)
class _System:
    """What differs between systems."""

    name: str
    with_tickets: rows.Layout
    with_comments: Sequence[rows.Layout]
    """Of comments that are in no ticket. A file of tickets is none of them."""
    opened: Callable[[Any, _Known], _Opened]
    """Reads the row of a ticket."""
    comment: Callable[[Any, _Opened | None, _Known], Message]
    """Reads a comment of a ticket; None: the comment names it."""

    def recognises(self, files: Files) -> bool:
        """Returns whether one of the first files has tickets or comments."""
        return any(one.recognises(files) for one in (self.with_tickets, *self.with_comments))

    def paths(self, keys: rows.Shape) -> tuple[str | None, str | None]:
        """Returns where tickets of a file are, and comments that are in none."""
        found = (one.path(keys) for one in self.with_comments)
        return self.with_tickets.path(keys), next(
            (path for path in found if path is not None), None
        )

    def messages(self, files: Files, known: _Known) -> Iterator[Item]:
        """Yields the messages file by file: of tickets, or else of comments in none."""
        for name in rows.documents(files):
            tickets, loose = self.paths(rows.shape(files, name))
            if tickets is not None:
                yield from self.tickets(files, name, tickets, known)
            elif loose is not None:
                for number, row in rows.rows(files, name, loose):
                    yield rows.item_of(name, number, self.name, self.comment, row, None, known)

    def tickets(self, files: Files, name: str, path: str, known: _Known) -> Iterator[Item]:
        """Yields the messages of the tickets of a file, the comments of each by time."""
        for number, row in rows.rows(files, name, path):
            try:
                ticket = self.opened(row, known)
            except rows.FAULTS as error:
                yield rows.no_message(name, number, self.name, error)
                continue
            if ticket.first is not None:
                yield ticket.first
            items = [
                rows.item_of(name, number, self.name, self.comment, one, ticket, known)
                for one in ticket.comments
            ]
            yield from sorted(items, key=lambda item: getattr(item, "time", None) or 0.0)


# Freshdesk and Freshservice

_OLD = ("helpdesk_ticket", "item.helpdesk_ticket")
_FRESH_TICKETS = rows.Layout(
    ("", "item", "tickets.item", "ticket", *_OLD, rows.AIRBYTE),
    ({"requester_id", "responder_id"}, {"description_text", "requester_id"}),
    "ticket",
)
_LOOSE = rows.Layout(
    ("", "item", "conversations.item", "conversation", rows.AIRBYTE),
    ({"incoming", "private", "body"}, {"incoming", "private", "body_text"}),
    "ticket",
)
_PEOPLE = rows.Layout(
    ("", "item", "agents.item", "contacts.item", "item.agent", "item.user", rows.AIRBYTE),
    ({"id", "contact"}, {"id", "name", "email"}, {"id", "first_name", "last_name"}),
)
_FRESH_QUOTES = "blockquote, .freshdesk_quote, .gmail_quote"
_OUTBOUND = 10
"""Source of a ticket that an agent began, with a mail to the requester."""
_META = 4
"""Source of a note that says what happened to a ticket."""


def _read_fresh(files: Files) -> Iterator[Item]:
    known = _Known()
    for name, _, row in _PEOPLE.rows(files):
        is_person = _FRESH.paths(rows.shape(files, name)) == (None, None)
        if is_person and isinstance(row, dict) and (called := _fresh_name(row)):
            known.people[rows.id_text(row.get("id"))] = called
    yield from _FRESH.messages(files, known)


def _fresh_name(person: Mapping[str, Any]) -> str:
    inner = person.get("contact") or person.get("user")
    person = inner if isinstance(inner, dict) else person
    both = f"{person.get('first_name') or ''} {person.get('last_name') or ''}"
    return str(person.get("name") or both).strip()


def _fresh_ticket(row: Any, known: _Known) -> _Opened:
    ticket = rows.id_of(row, "display_id" if "display_id" in row else "id")
    requester = row.get("requester")
    if isinstance(requester, dict) and _fresh_name(requester):
        known.people.setdefault(rows.id_text(requester.get("id")), _fresh_name(requester))
    by_agent = row.get("source") == _OUTBOUND
    conversations = rows.list_of(row.get("conversations", row.get("notes")))
    text = _fresh_text(row, "description", "description_text")
    first = Message(
        id=f"{ticket}/description",
        thread=ticket,
        author=known.author(row.get("responder_id" if by_agent else "requester_id")),
        time=rows.seconds(row.get("created_at")),
        text=text or str(row.get("subject") or ""),
        source="freshdesk",
        is_private=bool(row.get("private")),
    )
    return _Opened(ticket, first, conversations)


def _fresh_comment(row: Any, ticket: _Opened | None, known: _Known) -> Message:
    row = row.get("note", row)
    thread = ticket.thread if ticket else rows.id_of(row, "ticket_id")
    return Message(
        id=f"{thread}/{rows.id_of(row)}",
        thread=thread,
        author=known.author(row.get("user_id") or row.get("from_email")),
        time=rows.seconds(row.get("created_at")),
        text=_fresh_text(row, "body", "body_text"),
        source="freshdesk",
        is_system=row.get("source") == _META,
        is_private=bool(row.get("private")),
        edited=row.get("last_edited_at") is not None,
    )


def _fresh_text(row: Mapping[str, Any], html: str, plain: str) -> str:
    marked = row.get(f"{html}_html") or row.get(html)
    marked = plain_text(marked, without=_FRESH_QUOTES) if marked else row.get(plain) or ""
    return written_text(marked)


_FRESH = _System("Freshdesk", _FRESH_TICKETS, [_LOOSE], _fresh_ticket, _fresh_comment)
FRESHDESK = ExportFormat(
    "freshdesk",
    "Freshdesk (tickets with conversations, JSON)",
    "https://developers.freshdesk.com/api/#conversations",
    _FRESH.recognises,
    _read_fresh,
)


# Intercom

_CONVERSATIONS = rows.Layout(
    ("", "item", "conversations.item", "tickets.item", "data.item", rows.AIRBYTE),
    (
        {"conversation_parts", "source"},
        {"conversation_parts", "conversation_message"},
        {"ticket_parts", "ticket_attributes"},
        {"source", "contacts", "teammates"},
        {"source", "statistics", "admin_assignee_id"},
    ),
    "conversation",
)
_PARTS = rows.Layout(
    ("", "item", "conversation_parts.item", rows.AIRBYTE),
    [{"part_type", "conversation_id"}],
    "conversation",
)
"""Of parts that are in no conversation, as programs that copy tables have them."""
_SAID = ("comment", "open", "close", "quick_reply")
"""Types of parts that may hold what people write: an answer can reopen a conversation."""
_AUTOMATED = ("automated", "campaigns_initiated", "operator_initiated")


def _conversation(row: Any, _: _Known) -> _Opened:
    conversation = rows.id_of(row)
    first = row.get("source") or row.get("conversation_message") or _as_source(row)
    is_internal = bool((row.get("ticket_type") or {}).get("is_internal"))
    kind = "ticket_parts" if "ticket_parts" in row else "conversation_parts"
    parts = row.get(kind)
    parts = rows.list_of(parts.get(kind) if isinstance(parts, dict) else parts)
    message = Message(
        id=f"{conversation}/source",
        thread=conversation,
        author=rows.first_of(first.get("author"), "name", "id"),
        time=rows.seconds(row.get("created_at")),
        text=_part_text(first) or plain_text(first.get("subject") or ""),
        source="intercom",
        is_bot=_is_bot(first.get("author")) or first.get("delivered_as") in _AUTOMATED,
        is_private=is_internal,
    )
    return _Opened(conversation, message, parts)


def _as_source(row: dict[str, Any]) -> dict[str, Any]:
    """Returns what a ticket begins with, as the first message of a conversation."""
    attributes = row.get("ticket_attributes") or {}
    contacts = rows.list_of((row.get("contacts") or {}).get("contacts"))
    return {
        "author": contacts[0] if contacts else None,
        "subject": attributes.get("_default_title_"),
        "body": attributes.get("_default_description_"),
    }


def _part(row: Any, of: _Opened | None, _: _Known) -> Message:
    conversation = of.thread if of else rows.id_of(row, "conversation_id")
    kind, author = str(row["part_type"]), row.get("author")
    text, is_note = _part_text(row), "note" in kind
    return Message(
        id=f"{conversation}/{rows.id_of(row)}",
        thread=conversation,
        author=rows.first_of(author, "name", "id"),
        time=rows.seconds(row.get("created_at")),
        text=text,
        source="intercom",
        is_bot=_is_bot(author),
        is_system=not is_note and (kind not in _SAID or (kind != "comment" and not text)),
        is_private=is_note or (of is not None and of.first is not None and of.first.is_private),
    )


def _part_text(row: dict[str, Any]) -> str:
    return "" if row.get("redacted") else plain_text(row.get("body") or "", without="blockquote")


def _is_bot(author: Any) -> bool:
    author = author or {}
    return author.get("type") == "bot" or bool(author.get("from_ai_agent"))


_INTERCOM = _System("Intercom", _CONVERSATIONS, [_PARTS], _conversation, _part)
INTERCOM = ExportFormat(
    "intercom",
    "Intercom (conversations and tickets, JSON)",
    "https://developers.intercom.com/docs/references/rest-api/api.intercom.io/conversations",
    _INTERCOM.recognises,
    lambda files: _INTERCOM.messages(files, _Known()),
)


# Zendesk

_TICKETS = rows.Layout(
    ("", "item", "tickets.item", "ticket", rows.AIRBYTE),
    ({"requester_id", "submitter_id"}, {"requester_id", "via"}, {"requester", "via"}),
    "ticket",
)
_COMMENTS = rows.Layout(
    ("", "item", "comments.item", rows.AIRBYTE),
    [{"author_id", "public", body} for body in ("plain_body", "html_body", "audit_id")],
    "ticket",
)
_EVENTS = rows.Layout(
    ("", "item", "ticket_events.item", "audits.item", rows.AIRBYTE),
    ({"ticket_id", "child_events"}, {"ticket_id", "events", "author_id"}),
    "ticket",
)
_USERS = rows.Layout(("users.item", "", "item", rows.AIRBYTE), [{"id", "name", "role"}])
_COLUMNS = {"Summation column", "Requester", "Subject"}
_PAGE = {"comments", "ticket", "users", "organizations", "groups", "count", "meta", "links"} | {
    "next_page", "previous_page"
}  # fmt: skip
_QUOTES = "blockquote, .gmail_quote, .zd-comment .quote"
_BY_ZENDESK = ("rule", "system", "voice", "sample_ticket")
"""Channels of what triggers, automations and merging tickets write, and of what calls leave."""


def _zendesk_paths(keys: rows.Shape) -> tuple[str | None, str | None]:
    tickets, comments = _ZENDESK.paths(keys)
    if comments == "comments.item" and not keys[""] <= _PAGE:
        return "", None  # tickets that hold their comments
    return tickets, comments


def _read_zendesk(files: Files) -> Iterator[Item]:
    if table := next(iter(rows.tables(files, _COLUMNS)), None):
        raise InputError(
            f"{files.where(table)} is Zendesk's export of CSV, which has no comments. Export JSON, "
            "or get tickets and comments from the API."
        )
    tickets, comments = [], []
    known = _Known()
    for _, _, row in _USERS.rows(files):
        if isinstance(row, dict) and row.get("name") and "id" in row:
            known.people[rows.id_text(row["id"])] = str(row["name"])
    for name in rows.documents(files):
        in_tickets, loose = _zendesk_paths(rows.shape(files, name))
        tickets += [] if in_tickets is None else [(name, in_tickets)]
        comments += [] if loose is None else [(name, loose)]
    known.commented = {
        ticket for name, path in comments for _, _, ticket in _loose(files, name, path) if ticket
    }
    for name, path in tickets:
        yield from _ZENDESK.tickets(files, name, path, known)
    for name, path in comments:
        for number, row, ticket in _loose(files, name, path):
            of = _Opened(ticket, None, [])
            yield rows.item_of(name, number, "Zendesk", _comment, row, of, known)


def _loose(files: Files, name: str, path: str) -> Iterator[tuple[int, Any, str]]:
    """Yields comments that are in no ticket, or events with comments, and their tickets."""
    one = next(rows.rows(files, name, "ticket"), (0, None))[1] if path else None
    digits = re.findall(r"\d+", name)
    of_row = rows.id_text(one.get("id")) if isinstance(one, dict) else ""
    default = of_row or (digits or [name])[-1]
    for number, row in rows.rows(files, name, path):
        if not isinstance(row, dict):
            yield number, row, ""
            continue
        ticket = rows.id_text(row.get("ticket_id")) or default
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


def _ticket(row: Any, known: _Known) -> _Opened:
    ticket, via = rows.id_of(row), row.get("via") or {}
    comments = rows.list_of(row.get("comments"))
    for role in ("requester", "submitter", "assignee"):
        person = row.get(role)
        if isinstance(person, dict) and person.get("name"):
            known.people.setdefault(rows.id_text(person["id"]), str(person["name"]))
    if comments or ticket in known.commented:
        return _Opened(ticket, None, comments)
    subject = row.get("raw_subject") or row.get("subject") or ""
    first = Message(
        id=f"{ticket}/description",
        thread=ticket,
        author=known.author(row.get("submitter_id") or row.get("requester_id")),
        time=rows.seconds(row.get("created_at")),
        text=markdown_text(written_text(row.get("description") or "")) or subject,
        source="zendesk",
        is_bot="bot" in str(via.get("channel")),
        is_system=via.get("channel") in _BY_ZENDESK,
        is_private=row.get("is_public") is False,
    )
    return _Opened(ticket, first, comments)


def _comment(row: Any, ticket: _Opened | None, known: _Known) -> Message:
    thread = ticket.thread if ticket else ""
    via = row.get("via") or {}
    channel = str(via.get("channel")) if isinstance(via, dict) else str(via)
    author = row["author_id"]
    return Message(
        id=f"{thread}/{rows.id_of(row)}",
        thread=thread,
        author=known.author(author),
        time=rows.seconds(row.get("created_at")),
        text=_comment_text(row),
        source="zendesk",
        is_bot="bot" in channel,
        is_system=author == -1 or channel in _BY_ZENDESK or row.get("type") == "VoiceComment",
        is_private=row.get("public") is False,
    )


def _comment_text(row: dict[str, Any]) -> str:
    if row.get("html_body"):
        return written_text(plain_text(row["html_body"], without=_QUOTES))
    if row.get("plain_body"):  # has entities, but no other marks
        marked = row["plain_body"].replace("<", "&lt;").replace("\n", "<br>")
        return written_text(plain_text(marked))
    return markdown_text(written_text(row.get("body") or ""))


_ZENDESK = _System("Zendesk", _TICKETS, (_EVENTS, _COMMENTS), _ticket, _comment)
ZENDESK = ExportFormat(
    "zendesk",
    "Zendesk (tickets with comments, JSON)",
    "https://developer.zendesk.com/api-reference/ticketing/tickets/ticket_comments/",
    lambda files: _ZENDESK.recognises(files) or bool(rows.tables(files, _COLUMNS)),
    _read_zendesk,
)
