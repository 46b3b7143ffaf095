"""Tickets with comments a line each, a page of tickets and the answer for the comments of one."""

import json
from functools import partial
from typing import Any

from export_samples import message


def _comment(number: int, author: int, **others: Any) -> dict[str, Any]:
    return {
        "id": number,
        "type": "Comment",
        "author_id": author,
        "public": True,
        "audit_id": number * 10,
        "via": {"channel": "web", "source": {"from": {}, "to": {}, "rel": None}},
        "created_at": f"2024-03-01T08:{number:02}:00Z",
        **others,
    }


def _ticket(number: int, **others: Any) -> dict[str, Any]:
    return {
        "url": f"https://shop.zendesk.com/api/v2/tickets/{number}.json",
        "id": number,
        "subject": "Parcel",
        "requester_id": 21,
        "submitter_id": 21,
        "via": {"channel": "email"},
        "created_at": "2024-03-01T08:01:00Z",
        **others,
    }


_LINES = [
    _ticket(
        1,
        description="Where is my parcel?",
        requester={"id": 21, "name": "Cora C.", "role": "end-user"},
        comments=[
            _comment(1, 21, plain_body="Where is my&nbsp;parcel?"),
            _comment(3, 11, plain_body="The shop forgot it, I think", public=False),
            _comment(
                2, 11, html_body="<p>We look into <b>it</b>.</p><blockquote>Where is</blockquote>"
            ),
            _comment(4, -1, body="The ticket was closed.", via={"channel": "system"}),
        ],
    ),
    _ticket(2, description="", raw_subject="No *mail* yet", comments=[]),
]
_PAGE = {
    "tickets": [
        _ticket(7, requester_id=22, submitter_id=22, description="Do you ship to Oslo?"),
    ],
    "users": [{"id": 11, "name": "Agnes", "role": "agent"}],
    "next_page": None,
    "count": 1,
}
_ANSWER = {
    "comments": [
        _comment(30, 22, body="Do you ship to Oslo?\n\nOn 1 March 2024, Shop wrote:\n> News"),
        _comment(31, 11, body="We do, see [the prices](https://example.org)"),
        {**_comment(32, 99, body="You asked about shipping"), "via": {"channel": "answer_bot"}},
    ],
    "count": 3,
}
FILES: dict[str, Any] = {
    "tickets.json": "".join(f"{json.dumps(row)}\n" for row in _LINES).replace("08:01", "08:00"),
    "tickets_page_1.json": _PAGE,
    "comments/ticket_7.json": _ANSWER,
}
_message = partial(message, source="zendesk")
MESSAGES = [
    _message("1/1", "Where is my parcel?", "Cora C.", 0),
    _message("1/2", "We look into it.", "Agnes", 2),
    _message("1/3", "The shop forgot it, I think", "Agnes", 3, is_private=True),
    _message("1/4", "The ticket was closed.", "-1", 4, is_system=True),
    _message("2/description", "No *mail* yet", "Cora C.", 5),
    _message("7/30", "Do you ship to Oslo?", "22", 30),
    _message("7/31", "We do, see the prices", "Agnes", 31),
    _message("7/32", "You asked about shipping", "99", 32, is_bot=True),
]
FILES["tickets.json"] = FILES["tickets.json"].replace(
    '"created_at": "2024-03-01T08:00:00Z", "description": ""',
    '"created_at": "2024-03-01T08:05:00Z", "description": ""',
)
BROKEN = {
    "tickets.json": FILES["tickets.json"] + '{"id": 5, "comm\n' + '{"id": 6, "comments": 3}\n7\n',
    "comments/ticket_7.json": {"comments": [{"id": 9}, *_ANSWER["comments"], None]},
}
EMPTY = {
    "tickets.json": {"tickets": [], "count": 0},
    "comments/ticket_7.json": {"comments": [], "count": 0},
}
REAL: dict[str, tuple[int, int, int, int]] = {}
