"""Reads tickets with their comments: Freshdesk, Intercom and Zendesk.

All are JSON, from an export or the API: tickets with their comments, or separate comments. Rows of
people map ids to names.
"""

import re
from collections.abc import Collection, Iterator, Mapping
from functools import partial
from typing import Any

from rejoinder.errors import InputError
from rejoinder.exports import rows
from rejoinder.exports.base import ExportFormat, Item, Message
from rejoinder.exports.files import Files
from rejoinder.exports.mail import written_text
from rejoinder.exports.markup import markdown_text, plain_text

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
    unless=[_FRESH_TICKETS],
)
_PEOPLE = rows.Layout(
    ("", "item", "agents.item", "contacts.item", "item.agent", "item.user", rows.AIRBYTE),
    ({"id", "contact"}, {"id", "name", "email"}, {"id", "first_name", "last_name"}),
    unless=(_FRESH_TICKETS, _LOOSE),
)
_FRESH_QUOTES = "blockquote, .freshdesk_quote, .gmail_quote"
_OUTBOUND = 10
"""Source of a ticket that an agent began, with a mail to the requester."""
_META = 4
"""Source of a note about an event of a ticket."""


def _read_fresh(files: Files) -> Iterator[Item]:
    people = _PEOPLE.names(files, _fresh_name)
    yield from _FRESH_TICKETS.items(files, _fresh_ticket, people)
    yield from _LOOSE.messages(files, _fresh_comment, None, people)


def _fresh_name(person: Mapping[str, Any]) -> str:
    inner = person.get("contact") or person.get("user")
    person = inner if isinstance(inner, dict) else person
    both = f"{person.get('first_name') or ''} {person.get('last_name') or ''}"
    return str(person.get("name") or both).strip()


def _fresh_ticket(row: Any, people: dict[str, str]) -> Iterator[rows.Part]:
    ticket = rows.id_of(row, "display_id" if "display_id" in row else "id")
    requester = row.get("requester")
    if isinstance(requester, dict) and _fresh_name(requester):
        people.setdefault(rows.id_text(requester.get("id")), _fresh_name(requester))
    by_agent = row.get("source") == _OUTBOUND
    conversations = rows.list_of(row.get("conversations", row.get("notes")))
    text = _fresh_text(row, "description", "description_text")
    yield Message(
        id=f"{ticket}/description",
        thread=ticket,
        author=rows.named(people, row.get("responder_id" if by_agent else "requester_id")),
        time=rows.seconds(row.get("created_at")),
        text=text or str(row.get("subject") or ""),
        source="freshdesk",
        is_private=bool(row.get("private")),
    )
    yield [partial(_fresh_comment, one, ticket, people) for one in conversations]


def _fresh_comment(row: Any, ticket: str | None, people: Mapping[str, str]) -> Message:
    row = row.get("note", row)
    thread = ticket or rows.id_of(row, "ticket_id")
    return Message(
        id=f"{thread}/{rows.id_of(row)}",
        thread=thread,
        author=rows.named(people, row.get("user_id") or row.get("from_email")),
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


# https://developers.freshdesk.com/api/#conversations
FRESHDESK = ExportFormat(
    "freshdesk",
    "Freshdesk (tickets with conversations, JSON)",
    lambda files: rows.recognises(files, _FRESH_TICKETS, _LOOSE),
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
    unless=[_CONVERSATIONS],
)
"""Keys of parts outside conversations, as in copies of tables by other programs."""
_SAID = ("comment", "open", "close", "quick_reply")
"""Types of parts that may hold text by people: an answer can reopen a conversation."""
_AUTOMATED = ("automated", "campaigns_initiated", "operator_initiated")


def _read_intercom(files: Files) -> Iterator[Item]:
    yield from _CONVERSATIONS.items(files, _conversation)
    yield from _PARTS.messages(files, _part)


def _conversation(row: Any) -> Iterator[rows.Part]:
    conversation = rows.id_of(row)
    first = row.get("source") or row.get("conversation_message") or _as_source(row)
    is_internal = bool((row.get("ticket_type") or {}).get("is_internal"))
    kind = "ticket_parts" if "ticket_parts" in row else "conversation_parts"
    parts = row.get(kind)
    parts = rows.list_of(parts.get(kind) if isinstance(parts, dict) else parts)
    yield Message(
        id=f"{conversation}/source",
        thread=conversation,
        author=rows.first_of(first.get("author"), "name", "id"),
        time=rows.seconds(row.get("created_at")),
        text=_part_text(first) or plain_text(first.get("subject") or ""),
        source="intercom",
        is_bot=_is_bot(first.get("author")) or first.get("delivered_as") in _AUTOMATED,
        is_private=is_internal,
    )
    yield [partial(_part, part, conversation, is_internal=is_internal) for part in parts]


def _as_source(row: dict[str, Any]) -> dict[str, Any]:
    """Returns the description of a ticket in the form of a conversation's first message."""
    attributes = row.get("ticket_attributes") or {}
    contacts = rows.list_of((row.get("contacts") or {}).get("contacts"))
    return {
        "author": contacts[0] if contacts else None,
        "subject": attributes.get("_default_title_"),
        "body": attributes.get("_default_description_"),
    }


def _part(row: Any, conversation: str | None = None, *, is_internal: bool = False) -> Message:
    conversation = conversation or rows.id_of(row, "conversation_id")
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
        is_private=is_note or is_internal,
    )


def _part_text(row: dict[str, Any]) -> str:
    return "" if row.get("redacted") else plain_text(row.get("body") or "", without="blockquote")


def _is_bot(author: Any) -> bool:
    author = author or {}
    return author.get("type") == "bot" or bool(author.get("from_ai_agent"))


# https://developers.intercom.com/docs/references/rest-api/api.intercom.io/conversations
INTERCOM = ExportFormat(
    "intercom",
    "Intercom (conversations and tickets, JSON)",
    lambda files: rows.recognises(files, _CONVERSATIONS, _PARTS),
    _read_intercom,
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
"""Channels of texts from triggers, automations, merged tickets and calls."""


def _zendesk_paths(keys: rows.Shape) -> tuple[str | None, str | None]:
    """Returns the paths to tickets in a file, and to comments outside tickets."""
    found = (one.path(keys) for one in (_EVENTS, _COMMENTS))
    comments = next((path for path in found if path is not None), None)
    if comments == "comments.item" and not keys[""] <= _PAGE:
        return "", None  # tickets that hold their comments
    return _TICKETS.path(keys), comments


def _read_zendesk(files: Files) -> Iterator[Item]:
    if table := next(iter(rows.tables(files, _COLUMNS)), None):
        raise InputError(
            f"{files.where(table)} is Zendesk's CSV export, which has no comments. Export JSON, "
            "or get tickets and comments from the API."
        )
    people = _USERS.names(files, lambda row: row.get("name"))
    paths = {name: _zendesk_paths(rows.shape(files, name)) for name in rows.documents(files)}
    comments = [(name, path) for name, (_, path) in paths.items() if path is not None]
    commented = {ticket for name, path in comments for _, _, ticket in _loose(files, name, path)}
    for name, (path, _) in paths.items():
        if path is not None:
            for number, row in rows.rows(files, name, path):
                yield from rows.items_of(name, number, _ticket(row, people, commented))
    for name, path in comments:
        for number, row, ticket in _loose(files, name, path):
            yield rows.item_of(name, number, _comment, row, ticket, people)


def _loose(files: Files, name: str, path: str) -> Iterator[tuple[int, Any, str]]:
    """Yields comments outside tickets, or events with comments, with the ids of their tickets."""
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


def _ticket(row: Any, people: dict[str, str], commented: Collection[str]) -> Iterator[rows.Part]:
    ticket, via = rows.id_of(row), row.get("via") or {}
    comments = rows.list_of(row.get("comments"))
    for role in ("requester", "submitter", "assignee"):
        person = row.get(role)
        if isinstance(person, dict) and person.get("name"):
            people.setdefault(rows.id_text(person["id"]), str(person["name"]))
    yield [partial(_comment, comment, ticket, people) for comment in comments]
    if comments or ticket in commented:
        return
    subject = row.get("raw_subject") or row.get("subject") or ""
    yield Message(
        id=f"{ticket}/description",
        thread=ticket,
        author=rows.named(people, row.get("submitter_id") or row.get("requester_id")),
        time=rows.seconds(row.get("created_at")),
        text=markdown_text(written_text(row.get("description") or "")) or subject,
        source="zendesk",
        is_bot="bot" in str(via.get("channel")),
        is_system=via.get("channel") in _BY_ZENDESK,
        is_private=row.get("is_public") is False,
    )


def _comment(row: Any, thread: str, people: Mapping[str, str]) -> Message:
    via, author = row.get("via") or {}, row["author_id"]
    channel = str(via.get("channel")) if isinstance(via, dict) else str(via)
    return Message(
        id=f"{thread}/{rows.id_of(row)}",
        thread=thread,
        author=rows.named(people, author),
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


# https://developer.zendesk.com/api-reference/ticketing/tickets/ticket_comments/
ZENDESK = ExportFormat(
    "zendesk",
    "Zendesk (tickets with comments, JSON)",
    lambda files: (
        rows.recognises(files, _TICKETS, _EVENTS, _COMMENTS) or bool(rows.tables(files, _COLUMNS))
    ),
    _read_zendesk,
)
