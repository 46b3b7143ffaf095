"""A room as Element exports it, and a page of events of another."""

from typing import Any

from rejoinder.exports.base import Message

_TEN = 1709287200000
"""Ten o'clock on 1 March 2024, in milliseconds."""
_ANN, _BOB = "@ann:example.org", "@bob:example.org"


def _event(number: int, sender: str, body: str, **others: Any) -> dict[str, Any]:
    content = {"msgtype": "m.text", "body": body, **others.pop("content", {})}
    return {
        "type": "m.room.message",
        "event_id": f"${number}",
        "room_id": "!r:example.org",
        "sender": sender,
        "origin_server_ts": _TEN + 1000 * number,
        "content": content,
        **others,
    }


def _answer(to: str, **others: Any) -> dict[str, Any]:
    return {"m.relates_to": {"m.in_reply_to": {"event_id": to}, **others}}


_HTML = {
    "format": "org.matrix.custom.html",
    "formatted_body": "<mx-reply><blockquote>Which?</blockquote></mx-reply>See <b>the</b> manual, "
    '<a href="https://matrix.to/#/@ann:example.org">Ann</a>',
}
_EDIT = {"m.replace": {"content": {"m.new_content": {"body": "8001", "msgtype": "m.text"}}}}
_THREAD = {"rel_type": "m.thread", "event_id": "$2", "is_falling_back": True}
_EVENTS = [
    _event(1, _ANN, "", type="m.room.member", content={"membership": "join"}),
    _event(2, _ANN, "Which port does it take?"),
    _event(3, _BOB, f"> <{_ANN}> Which port does it take?\n> \n\n8000", content=_answer("$2")),
    _event(4, _BOB, "> See", content={**_answer("$2"), **_HTML}),
    _event(5, _ANN, "8000", unsigned={"m.relations": _EDIT}),
    _event(6, _ANN, "* 8001", content={"m.relates_to": {"rel_type": "m.replace"}}),
    _event(7, _BOB, "Thanks", content=_answer("$6", **_THREAD)),
    _event(8, "@helper:example.org", "Build passed", content={"msgtype": "m.notice"}),
    _event(9, _ANN, "cat.png", content={"msgtype": "m.image"}),
    _event(10, _ANN, "", content={}),
]
FILES: dict[str, Any] = {
    "help.json": {
        "room_name": "Help",
        "room_creator": "Ann",
        "topic": "",
        "export_date": "1 March 2024",
        "exported_by": "Ann",
        "messages": _EVENTS,
    },
    "page.json": {
        "chunk": [
            _event(12, _BOB, "Hi", room_id="!s:example.org"),
            _event(11, _ANN, "> not a reply\nHello", room_id="!s:example.org"),
        ],
        "start": "t1",
        "end": "t2",
    },
}
_SECONDS = _TEN / 1000


def _message(number: int, author: str, text: str, source: str = "Help", **others: Any) -> Message:
    time = _SECONDS + number
    return Message(id=f"${number}", author=author, text=text, time=time, source=source, **others)


MESSAGES = [
    _message(1, _ANN, "", is_system=True),
    _message(2, _ANN, "Which port does it take?"),
    _message(3, _BOB, "8000", parent="$2"),
    _message(4, _BOB, "See the manual, Ann", parent="$2"),
    _message(5, _ANN, "8001", edited=True),
    _message(6, _ANN, "* 8001", is_system=True),
    _message(7, _BOB, "Thanks", parent="$2", thread="$2"),
    _message(8, "@helper:example.org", "Build passed", is_bot=True),
    _message(9, _ANN, ""),
    _message(10, _ANN, ""),
    _message(11, _ANN, "> not a reply\nHello", "!s:example.org"),
    _message(12, _BOB, "Hi", "!s:example.org"),
]
BROKEN = {
    "help.json": {
        **FILES["help.json"],
        "messages": [*_EVENTS, 3, {"type": "x"}, {**_EVENTS[1], "origin_server_ts": "now"}],
    }
}
EMPTY = {"help.json": {**FILES["help.json"], "messages": []}}
REAL: dict[str, tuple[int, int, int, int]] = {}
