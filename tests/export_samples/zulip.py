"""An organization with two channels, one of them private, direct messages and bots."""

from typing import Any

from rejoinder.exports.base import Message

_TEN = 1709287200.0
"""Ten o'clock on 1 March 2024."""


def _row(id_: int, sender: int, recipient: int, content: str, **others: Any) -> dict[str, Any]:
    return {
        "id": id_,
        "sender": sender,
        "recipient": recipient,
        "subject": "port",
        "content": content,
        "rendered_content": f"<p>{content}</p>",
        "date_sent": _TEN + id_,
        "last_edit_time": None,
        "edit_history": None,
        **others,
    }


_QUOTE = (
    "@_**Ann|8** [said](https://chat.example.org/#narrow/channel/5-help/topic/port/near/1):\n"
    "```quote\nWhich port?\n```\n"
)
_FIRST = [
    _row(1, 8, 50, "Which port does **serve** take, @**Bob B.|9** or @*helpers*?"),
    _row(3, 9, 51, "Between us", subject="money"),
    _row(2, 9, 50, f"{_QUOTE}8000, see #**board>port**", last_edit_time=_TEN),
    _row(4, 7, 50, "This topic was moved."),
    _row(5, 10, 50, "Build passed"),
]
_SECOND = [
    _row(7, 9, 52, "/me waves", subject=""),
    _row(6, 8, 53, "Hi", subject=""),
    _row(8, 11, 54, "~~~ quote\nWhat?\n~~~\nWe three", subject=""),
]
FILES: dict[str, Any] = {
    "realm.json": {
        "zerver_realm": [{"id": 1, "name": "Team"}],
        "zerver_userprofile": [
            {"id": 8, "full_name": "Ann", "email": "ann@example.org", "is_bot": False},
            {"id": 9, "full_name": "Bob B.", "email": "bob@example.org", "is_bot": False},
            {"id": 10, "full_name": "CI", "email": "ci@example.org", "is_bot": True},
        ],
        "zerver_userprofile_mirrordummy": [{"id": 12, "email": "eve@example.org"}],
        "zerver_userprofile_crossrealm": [{"id": 7, "email": "notification-bot@zulip.com"}],
        "zerver_stream": [
            {"id": 5, "name": "help", "invite_only": False},
            {"id": 6, "name": "board", "invite_only": True},
        ],
        "zerver_recipient": [
            {"id": 50, "type": 2, "type_id": 5},
            {"id": 51, "type": 2, "type_id": 6},
            {"id": 52, "type": 1, "type_id": 8},
            {"id": 53, "type": 1, "type_id": 9},
            {"id": 54, "type": 3, "type_id": 1},
        ],
    },
    "attachment.json": {"zerver_attachment": []},
    "messages-000001.json": {"zerver_message": _FIRST, "zerver_usermessage": []},
    "messages-000002.json": {"zerver_message": _SECOND, "zerver_usermessage": []},
}


def _message(id_: int, author: str, text: str, source: str, **others: Any) -> Message:
    time = _TEN + id_
    return Message(id=str(id_), author=author, text=text, time=time, source=source, **others)


_TOPIC, _PAIR = "help/port", "Ann, Bob B."
MESSAGES = [
    _message(1, "Ann", "Which port does serve take, @Bob B. or @helpers?", "help", thread=_TOPIC),
    _message(
        2,
        "Bob B.",
        "8000, see #board>port",
        "help",
        parent="1",
        thread=_TOPIC,
        edited=True,
    ),
    _message(
        4,
        "notification-bot@zulip.com",
        "This topic was moved.",
        "help",
        thread=_TOPIC,
        is_system=True,
    ),
    _message(5, "CI", "Build passed", "help", thread=_TOPIC, is_bot=True),
    _message(3, "Bob B.", "Between us", "board", thread="board/money", is_private=True),
    _message(6, "Ann", "Hi", _PAIR, is_private=True),
    _message(7, "Bob B.", "waves", _PAIR, is_private=True),
    _message(8, "11", "We three", "recipient 54", is_private=True),
]
_WRONG = [3, {"id": 9}, _row(9, 8, 50, "x", date_sent="?")]
BROKEN = {"messages-000001.json": {"zerver_message": [*_FIRST, *_WRONG], "zerver_usermessage": []}}
EMPTY = {"realm.json": {"zerver_realm": []}, "messages-000001.json": {"zerver_message": []}}
REAL: dict[str, tuple[int, int, int, int]] = {}
