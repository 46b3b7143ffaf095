"""A page of conversations: answers, a note, a bot, an assignment, and a first message of a bot."""

from functools import partial
from typing import Any

from export_samples import message

_CORA = {"type": "user", "id": "5f", "name": "Cora C.", "email": "c@example.org"}
_AGNES = {"type": "admin", "id": "9", "name": "Agnes"}
_BOT = {"type": "bot", "id": "8", "name": "Fin"}
_EIGHT = 1709280000
"""Eight o'clock."""


def _part(number: int, author: Any, kind: str, body: str | None, **others: Any) -> dict[str, Any]:
    return {
        "type": "conversation_part",
        "id": str(number),
        "part_type": kind,
        "body": body,
        "created_at": _EIGHT + 60 * number,
        "author": author,
        "redacted": False,
        **others,
    }


def _conversation(number: str, minute: int, source: Any, parts: list[Any]) -> dict[str, Any]:
    return {
        "type": "conversation",
        "id": number,
        "created_at": _EIGHT + 60 * minute,
        "source": {"type": "conversation", "id": "77", "subject": "", **source},
        "contacts": {"type": "contact.list", "contacts": []},
        "conversation_parts": {
            "type": "conversation_part.list",
            "conversation_parts": parts,
            "total_count": len(parts),
        },
    }


_ROWS = [
    _conversation(
        "400",
        0,
        {"body": "<p>Can I <i>pause</i> my plan?</p>", "author": _CORA},
        [
            _part(1, _BOT, "comment", "<p>Did you look at the help?</p>"),
            _part(2, _BOT, "assignment", None),
            _part(3, _AGNES, "note", "<p>She asked twice</p>"),
            _part(4, _AGNES, "comment", '<p class="no-margin">Yes:<br>in the settings</p>'),
            _part(5, _AGNES, "close", None),
            _part(6, _CORA, "open", "<p>Thanks!</p>"),
            _part(7, None, "comment", "<p>Removed</p>", redacted=True),
        ],
    ),
    _conversation(
        "401", 10, {"body": "Welcome", "delivered_as": "automated", "author": _AGNES}, []
    ),
    _conversation("402", 11, {"body": None, "subject": "<p>A mail</p>", "author": _CORA}, []),
]
FILES: dict[str, Any] = {
    "conversations.json": {"type": "conversation.list", "conversations": _ROWS, "total_count": 3}
}
_message = partial(message, source="intercom")
MESSAGES = [
    _message("400/source", "Can I pause my plan?", "Cora C.", 0),
    _message("400/1", "Did you look at the help?", "Fin", 1, is_bot=True),
    _message("400/2", "", "Fin", 2, is_bot=True, is_system=True),
    _message("400/3", "She asked twice", "Agnes", 3, is_private=True),
    _message("400/4", "Yes:\nin the settings", "Agnes", 4),
    _message("400/5", "", "Agnes", 5, is_system=True),
    _message("400/6", "Thanks!", "Cora C.", 6),
    _message("400/7", "", "", 7),
    _message("401/source", "Welcome", "Agnes", 10, is_bot=True),
    _message("402/source", "A mail", "Cora C.", 11),
]
BROKEN = {
    "conversations.json": {
        "conversations": [*_ROWS, {"id": None}, 7, _conversation("403", 12, {"body": 3}, [])]
    }
}
EMPTY = {"conversations.json": {"type": "conversation.list", "conversations": []}}
REAL: dict[str, tuple[int, int, int, int]] = {}
