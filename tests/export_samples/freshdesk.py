"""A page of tickets with conversations, a file of loose conversations, and the agents."""

from functools import partial
from typing import Any

from export_samples import message


def _part(number: int, author: int, **others: Any) -> dict[str, Any]:
    return {
        "id": number,
        "incoming": author == 21,
        "private": False,
        "user_id": author,
        "source": 0,
        "created_at": f"2024-03-01T08:{number:02}:00Z",
        **others,
    }


_TICKETS = [
    {
        "id": 1,
        "subject": "Printer",
        "description": "<div>The <b>printer</b> is stuck</div>",
        "description_text": "The printer is stuck",
        "requester_id": 21,
        "requester": {"id": 21, "name": "Cora C.", "email": "c@example.org"},
        "responder_id": 11,
        "source": 1,
        "created_at": "2024-03-01T08:00:00Z",
        "conversations": [
            _part(
                2,
                11,
                body="<div>Open it.</div><blockquote class='freshdesk_quote'>Stuck</blockquote>",
                body_text="Open it. Stuck",
            ),
            _part(1, 11, body_text="Again that one!", private=True, source=2),
            _part(3, 21, body_text="It works,\nthanks", last_edited_at="2024-03-02T08:00:00Z"),
        ],
    },
    {
        "id": 2,
        "subject": "Your order",
        "description": None,
        "requester_id": 22,
        "responder_id": 11,
        "source": 10,
        "created_at": "2024-03-01T08:05:00Z",
    },
]
_LOOSE = [_part(30, 22, body="<p>Which order?</p>", ticket_id=2), _part(31, 11, body="", source=4)]
_LOOSE[1]["ticket_id"] = 2
FILES: dict[str, Any] = {
    "agents.json": [{"id": 11, "contact": {"name": "Agnes", "email": "a@example.org"}}],
    "tickets.json": _TICKETS,
    "z/conversations.json": _LOOSE,
}
_message = partial(message, source="freshdesk")
MESSAGES = [
    _message("1/description", "The printer is stuck", "Cora C.", 0),
    _message("1/1", "Again that one!", "Agnes", 1, is_private=True),
    _message("1/2", "Open it.", "Agnes", 2),
    _message("1/3", "It works,\nthanks", "Cora C.", 3, edited=True),
    _message("2/description", "Your order", "Agnes", 5),
    _message("2/30", "Which order?", "22", 30),
    _message("2/31", "", "Agnes", 31, is_system=True),
]
BROKEN = {
    "tickets.json": [*_TICKETS, {"requester_id": 7}, {"id": 3, "conversations": "none"}, None],
    "z/conversations.json": [{"id": 1, "body": "Whose?"}, *_LOOSE],
}
EMPTY = {"tickets.json": {"tickets": []}}
REAL: dict[str, tuple[int, int, int, int]] = {}
