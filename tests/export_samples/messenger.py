"""A chat of Messenger in two files, one with end-to-end encryption, and one of Instagram."""

from typing import Any

from rejoinder.exports.base import Message

_TEN = 1709287200000
"""Ten o'clock on 1 March 2024, in milliseconds."""
_CHAT = {
    "participants": [{"name": "Ann"}, {"name": "ZoÃ«"}],
    "title": "ZoÃ«",
    "is_still_participant": True,
    "thread_path": "inbox/zoe_123",
}


def _row(name: str, second: int, **others: Any) -> dict[str, Any]:
    return {"sender_name": name, "timestamp_ms": _TEN + 1000 * second, **others}


_NEWEST = [
    _row("Ann", 9, content="Ann sent an attachment.", share={"link": "https://example.org"}),
    _row("ZoÃ«", 8, content="called", type="Call"),
    _row("ZoÃ«", 7, content="CafÃ© at 8 \u00f0\u009f\u0099\u0082", type="Generic"),
    _row("Ann", 7, content="Where?", type="Generic"),
]
_OLDEST = [
    _row("Ann", 3, photos=[{"uri": "messages/inbox/zoe_123/1.jpg"}]),
    _row("Ann", 2, content="typo", is_unsent=True),
    _row("Zoë", 1, content="naïve"),
]
_PLACE = "messages/inbox/zoe_123"
FILES: dict[str, Any] = {
    f"{_PLACE}/message_1.json": {**_CHAT, "messages": _NEWEST},
    f"{_PLACE}/message_2.json": {**_CHAT, "messages": _OLDEST},
    "e2ee/Bob_4.json": {
        "participants": ["Ann", "Bob"],
        "threadName": "Bob_4",
        "messages": [
            {"senderName": "Bob", "timestamp": _TEN + 2000, "text": "Née", "type": "text"},
            {"senderName": "Ann", "timestamp": _TEN + 1000, "text": "Hi", "isUnsent": False},
        ],
    },
    "instagram/eve/message_1.json": {
        "messages": [
            _row("Eve", 2, content="Liked a message"),
            _row("Eve", 1, content="I left the group"),
        ]
    },
}
_SECONDS = _TEN / 1000


def _message(name: str, line: int, author: str, text: str, second: int, **others: Any) -> Message:
    source = {"e": "Bob_4", "i": "instagram/eve"}.get(name[0], "zoe_123")
    time = _SECONDS + second
    return Message(
        id=f"{name}:{line}", author=author, text=text, time=time, source=source, **others
    )


_FIRST, _SECOND = f"{_PLACE}/message_1.json", f"{_PLACE}/message_2.json"
_BOB, _EVE = "e2ee/Bob_4.json", "instagram/eve/message_1.json"
MESSAGES = [
    _message(_BOB, 2, "Ann", "Hi", 1),
    _message(_BOB, 1, "Bob", "Née", 2),
    _message(_EVE, 2, "Eve", "I left the group", 1),
    _message(_EVE, 1, "Eve", "Liked a message", 2, is_system=True),
    _message(_SECOND, 3, "Zoë", "naïve", 1),
    _message(_SECOND, 2, "Ann", "", 2),
    _message(_SECOND, 1, "Ann", "", 3),
    _message(_FIRST, 4, "Ann", "Where?", 7),
    _message(_FIRST, 3, "Zoë", "Café at 8 🙂", 7),
    _message(_FIRST, 2, "Zoë", "called", 8, is_system=True),
    _message(_FIRST, 1, "Ann", "Ann sent an attachment.", 9, is_system=True),
]
BROKEN = {
    _SECOND: {**_CHAT, "messages": [*_OLDEST, 3, {"content": "x"}, _row("Ann", 1, content=3)]}
}
EMPTY = {_FIRST: {**_CHAT, "messages": []}}
REAL = {
    "messenger/mlomb_2A_7M.json": (7, 0, 0, 0),
    "messenger/chatminer.json": (2, 0, 0, 0),
    "instagram/chatminer.json": (2, 0, 0, 0),
}
