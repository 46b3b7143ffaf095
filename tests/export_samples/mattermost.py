"""Two teams with a channel each, one of them private, a bot, direct messages, a page of posts."""

import json
from typing import Any

from rejoinder.exports.base import Message

_TEN = 1709287200000
"""Ten o'clock on 1 March 2024, in milliseconds."""


def _post(user: str, message: str, second: int, **others: Any) -> dict[str, Any]:
    return {"user": user, "message": message, "create_at": _TEN + 1000 * second, **others}


def _in(team: str, channel: str, *said: Any, **others: Any) -> dict[str, Any]:
    return {"team": team, "channel": channel, **_post(*said, **others)}


_REPLIES = [_post("bob", "> Which\n\n8000", 20), _post("ann", "Thanks", 50, edit_at=_TEN)]
_LINES: list[dict[str, Any]] = [
    {"type": "version", "version": 1},
    {"type": "emoji", "emoji": {"name": "tick", "image": "tick.png"}},
    {"type": "team", "team": {"name": "core", "type": "O"}},
    {"type": "team", "team": {"name": "lab", "type": "O"}},
    {"type": "channel", "channel": {"team": "core", "name": "help", "type": "O"}},
    {"type": "channel", "channel": {"team": "lab", "name": "board", "type": "P"}},
    {"type": "bot", "bot": {"username": "helper", "owner": "ann"}},
    {"type": "post", "post": _in("core", "help", "ann", "ann joined the channel.", 5)},
    {"type": "post", "post": _in("lab", "board", "ann", "Between us", 7, replies=None)},
    {"type": "post", "post": _in("core", "help", "bob", "Later", 40)},
    {"type": "post", "post": _in("core", "help", "ann", "Which *port*?", 10, replies=_REPLIES)},
    {"type": "post", "post": _in("core", "help", "helper", "Try the manual", 30)},
    {"type": "direct_channel", "direct_channel": {"members": ["bob", "ann"]}},
    {"type": "direct_post", "direct_post": _post("bob", "Hi", 60, channel_members=["bob", "ann"])},
]
_IDS = {"channel_id": "c1", "delete_at": 0, "edit_at": 0, "type": "", "root_id": ""}
_PAGE = {
    "order": ["p2", "p1", "p3", "p4"],
    "posts": {
        "p2": {"id": "p2", "user_id": "u2", **_post("", "Yes", 20), **_IDS, "root_id": "p1"},
        "p1": {"id": "p1", "user_id": "u1", **_post("", "Anybody?", 10), **_IDS},
        "p3": {"id": "p3", "user_id": "u1", **_post("", "gone", 30), **_IDS, "delete_at": _TEN},
        "p4": {"id": "p4", "user_id": "u3", **_post("", "u3 left", 40), **_IDS,
               "type": "system_leave_channel", "props": {"from_webhook": "true"}},
    },
}  # fmt: skip
FILES: dict[str, Any] = {
    "export.jsonl": "".join(json.dumps(line) + "\n" for line in _LINES),
    "data/picture.png": b"\x89PNG",
    "pages/posts.json": _PAGE,
}
_SECONDS = _TEN / 1000


def _message(id_: str, author: str, text: str, second: int, source: str, **others: Any) -> Message:
    time = _SECONDS + second
    return Message(id=id_, author=author, text=text, time=time, source=source, **others)


_AT = "export.jsonl:"
_FIRST = f"{_AT}11"
MESSAGES = [
    _message(f"{_AT}8", "ann", "ann joined the channel.", 5, "core/help", is_system=True),
    _message(_FIRST, "ann", "Which port?", 10, "core/help", thread=_FIRST),
    _message(f"{_AT}11.1", "bob", "8000", 20, "core/help", parent=_FIRST, thread=_FIRST),
    _message(f"{_AT}12", "helper", "Try the manual", 30, "core/help", is_bot=True),
    _message(f"{_AT}10", "bob", "Later", 40, "core/help"),
    _message(
        f"{_AT}11.2", "ann", "Thanks", 50, "core/help", parent=_FIRST, thread=_FIRST, edited=True
    ),
    _message(f"{_AT}9", "ann", "Between us", 7, "lab/board", is_private=True),
    _message(f"{_AT}14", "bob", "Hi", 60, "ann, bob", is_private=True),
    _message("p1", "u1", "Anybody?", 10, "c1"),
    _message("p2", "u2", "Yes", 20, "c1", parent="p1", thread="p1"),
    _message("p3", "u1", "", 30, "c1"),
    _message("p4", "u3", "u3 left", 40, "c1", is_system=True, is_bot=True),
]
_WRONG = '{"type":"post","post":{"team":"core"}}\n{"type":"post"}\n{"type":\n7\n'
BROKEN = {
    "export.jsonl": FILES["export.jsonl"] + _WRONG,
    "pages/posts.json": {**_PAGE, "posts": {**_PAGE["posts"], "p5": 3, "p6": {"message": "x"}}},
}
EMPTY = {"export.jsonl": '{"type":"version","version":1}\n'}
REAL = {"mattermost/bulk_export.jsonl": (21, 0, 8, 1), "mattermost_api": (5, 0, 0, 1)}
