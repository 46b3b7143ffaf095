"""Exports of help desks and trackers in other forms than those of `export_samples`."""

import json
from typing import Any

import pytest

from rejoinder.errors import InputError
from rejoinder.exports.base import Message


def lines(*rows: Any) -> str:
    return "".join(f"{json.dumps(row)}\n" for row in rows)


def said(messages: list[Message]) -> list[tuple[str, str, str]]:
    return [(message.id, message.author, message.text) for message in messages]


TICKET = {"id": 7.0, "requester_id": 21.0, "submitter_id": 21, "via": {}, "description": "Where?"}
COMMENT = {"id": 70, "author_id": 21.0, "public": True, "audit_id": 1, "body": "Where?"}


def test_a_ticket_of_zendesk_and_its_comments_in_one_file(read):
    found = read("zendesk", {"a.json": {"ticket": TICKET, "comments": [COMMENT], "users": []}})
    assert said(found) == [("7/70", "21", "Where?")]
    assert found[0].thread == "7"


def test_events_of_zendesk_hold_comments(read):
    event = {
        "id": 1,
        "ticket_id": 7,
        "created_at": "2024-03-01T08:00:00Z",
        "child_events": [{"event_type": "Change"}, {**COMMENT, "event_type": "Comment"}],
    }
    files = {
        "events.json": {"ticket_events": [event], "count": 1},
        "tickets.jsonl": lines(TICKET),
        "users.jsonl": lines({"id": 21, "name": "Cora", "role": "end-user"}),
    }
    found = read("zendesk", files)
    assert said(found) == [("7/70", "Cora", "Where?")]
    assert found[0].time == 1709280000.0


def test_rows_as_airbyte_copies_them(read):
    rows = [{"_airbyte_ab_id": "x", "_airbyte_data": row} for row in ({**COMMENT, "ticket_id": 7},)]
    found = read("zendesk", {"_airbyte_raw_ticket_comments.jsonl": lines(*rows)})
    assert said(found) == [("7/70", "21", "Where?")]


def test_a_sample_ticket_is_by_zendesk(read):
    found = read("zendesk", {"a.jsonl": lines({**TICKET, "via": {"channel": "sample_ticket"}})})
    assert found[0].is_system


def test_old_exports_of_freshdesk(read):
    note = {"id": 9, "body": "Open it", "body_html": "<p>Open it</p>", "user_id": 11}
    note |= {"private": False, "incoming": False, "source": 0}
    ticket = {"display_id": 3, "requester_id": 21, "responder_id": 11, "description": "Stuck"}
    ticket |= {"id": 5_000, "notes": [{"note": note}]}
    found = read("freshdesk", {"Tickets0.json": [{"helpdesk_ticket": ticket}]})
    assert said(found) == [("3/description", "21", "Stuck"), ("3/9", "11", "Open it")]


def test_parts_of_intercom_that_are_in_no_conversation(read):
    part = {"id": "5", "part_type": "comment", "body": "<p>Yes</p>", "conversation_id": 400}
    part |= {"author": {"type": "user", "name": None, "id": "c"}, "created_at": 1709280000}
    [found] = read("intercom", {"conversation_parts.jsonl": lines(part)})
    assert (found.id, found.thread, found.author) == ("400/5", "400", "c")


def test_discussions_and_an_old_export_of_gitlab(read):
    def note(number: int, **others: Any) -> dict[str, Any]:
        return {"id": number, "noteable_type": "Issue", "noteable_id": 50, "body": "x", **others}

    issue = {"id": 50, "iid": 1, "title": "T", "description": "", "author_id": 3, "notes": []}
    discussions = [{"id": "d", "individual_note": False, "notes": [note(1), note(2)]}]
    found = read("gitlab", {"project.json": {"issues": [issue]}, "zz.json": discussions})
    assert [(one.id, one.parent) for one in found] == [
        ("Issue/50", None),
        ("Issue/50/1", None),
        ("Issue/50/2", "Issue/50/1"),
    ]


def test_tickets_are_found_among_many_files(read):
    others = {f"{number:02}.json": [{"id": number, "title": "x"}] for number in range(30)}
    found = read("zendesk", {**others, "tickets.jsonl": lines(TICKET)})
    assert said(found) == [("7/description", "21", "Where?")]


def test_tickets_of_intercom(read):
    part = {"id": "9", "part_type": "comment", "body": "<p>Soon</p>", "author": {"name": "Al"}}
    ticket = {
        "id": "70",
        "ticket_attributes": {"_default_title_": "Slow", "_default_description_": ""},
        "ticket_type": {"is_internal": True},
        "contacts": {"contacts": [{"id": "c"}]},
        "ticket_parts": {"ticket_parts": [part]},
    }
    found = read("intercom", {"tickets.json": {"tickets": [ticket]}})
    assert said(found) == [("70/source", "c", "Slow"), ("70/9", "Al", "Soon")]
    assert all(one.is_private for one in found)


def test_tables_of_zendesk_have_no_comments(read):
    table = "Summation column,Id,Requester,Subject,Status\n1,7,Ann,Parcel,Open\n"
    with pytest.raises(InputError, match="no comments"):
        read("zendesk", {"tickets.csv": table})
