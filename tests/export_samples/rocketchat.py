"""A dump of the database, pages of its API, and the export of a user's room."""

import json
import struct
from collections.abc import Mapping
from typing import Any

from rejoinder.exports.base import Message

_TEN = 1709287200000
"""Ten o'clock on 1 March 2024, in milliseconds."""


class _Date(int):
    """Milliseconds since 1970."""


def _bson(document: Mapping[str, Any]) -> bytes:
    """Returns a document as BSON."""
    body = b"".join(_element(name, value) for name, value in document.items())
    return struct.pack("<i", len(body) + 5) + body + b"\0"


def _element(name: str, value: Any) -> bytes:
    key = name.encode() + b"\0"
    match value:
        case _Date():
            return b"\x09" + key + struct.pack("<q", value)
        case bool():
            return b"\x08" + key + bytes([value])
        case int():
            return b"\x10" + key + struct.pack("<i", value)
        case float():
            return b"\x01" + key + struct.pack("<d", value)
        case str():
            text = value.encode() + b"\0"
            return b"\x02" + key + struct.pack("<i", len(text)) + text
        case bytes():
            return b"\x05" + key + struct.pack("<i", len(value)) + b"\0" + value
        case list():
            return b"\x04" + key + _bson({str(place): one for place, one in enumerate(value)})
        case dict():
            return b"\x03" + key + _bson(value)
    return b"\x0a" + key


_ANN = {"_id": "u1", "username": "ann", "name": "Ann"}
_BOB = {"_id": "u2", "username": "bob"}
_CI = {"_id": "u3", "username": "ci"}


def _row(id_: str, user: Any, text: str | None, second: int, **others: Any) -> dict[str, Any]:
    return {
        "_id": id_,
        "rid": "r1",
        "msg": text,
        "ts": _Date(_TEN + 1000 * second),
        "u": user,
        **others,
    }


_DUMPED = [
    _row("m1", _ANN, "Which **port**?", 1, tcount=1, reactions={":wave:": {"usernames": ["bob"]}}),
    _row("m3", _ANN, "uj", 3, t="uj"),
    _row("m2", _BOB, "8000", 2, tmid="m1", score=0.5, file=b"\x89PNG"),
    _row("m4", _CI, "Build passed", 4),
    _row("m5", _BOB, "[ ](https://chat.example.org/channel/help?msg=m1) Thanks", 5),
    _row("m6", _ANN, "a2V5", 6, t="e2e"),
    _row("m7", _ANN, "Between us", 7, rid="r2"),
    _row("m8", _ANN, None, 8, attachments=[]),
    _row("m9", _ANN, "Hi", 9, rid="r3", editedAt=_Date(_TEN)),
]
_ROOMS = [
    {"_id": "r1", "t": "c", "name": "help", "fname": "Help"},
    {"_id": "r2", "t": "p", "name": "board"},
    {"_id": "r3", "t": "d", "usernames": ["bob", "ann"], "uids": ["u2", "u1"]},
]
_PAGE = [
    _row("p2", _BOB, "Old", 2, rid="r4", ts="2024-03-01T10:00:02.000Z", _hidden=True),
    _row("p1", _ANN, "Anybody?", 1, rid="r4", ts={"$date": "2024-03-01T10:00:01.000Z"}),
]
_LINES = [
    {"msg": "Good morning", "username": "ann", "ts": "2024-03-01T10:00:00.000Z"},
    {"msg": "User left", "username": "bob", "ts": "2024-03-01T10:00:01.000Z", "type": "ul"},
]
FILES: dict[str, Any] = {
    "dump/rocketchat_message.bson": b"".join(map(_bson, _DUMPED)),
    "dump/rocketchat_room.bson": b"".join(map(_bson, _ROOMS)),
    "dump/users.bson": b"".join(map(_bson, [{**_ANN, "type": "user"}, {**_CI, "type": "bot"}])),
    "api/info.json": {"channel": {"_id": "r4", "name": "talk", "t": "c"}, "success": True},
    "api/page.json": {"messages": _PAGE, "count": 2, "success": True},
    "data/general.json": "".join(json.dumps(line) + "\n" for line in _LINES),
}
_SECONDS = _TEN / 1000


def _message(id_: str, author: str, text: str, second: int, source: str, **others: Any) -> Message:
    time = _SECONDS + second
    return Message(id=id_, author=author, text=text, time=time, source=source, **others)


MESSAGES = [
    _message("m1", "Ann", "Which port?", 1, "Help", thread="m1"),
    _message("m2", "bob", "8000", 2, "Help", parent="m1", thread="m1"),
    _message("m3", "Ann", "uj", 3, "Help", is_system=True),
    _message("m4", "ci", "Build passed", 4, "Help", is_bot=True),
    _message("m5", "bob", "Thanks", 5, "Help", parent="m1"),
    _message("m6", "Ann", "", 6, "Help"),
    _message("m8", "Ann", "", 8, "Help"),
    _message("m7", "Ann", "Between us", 7, "board", is_private=True),
    _message("m9", "Ann", "Hi", 9, "ann, bob", is_private=True, edited=True),
    _message("p1", "Ann", "Anybody?", 1, "talk"),
    _message("p2", "bob", "Old", 2, "talk", is_system=True),
    _message("data/general.json:1", "ann", "Good morning", 0, "general"),
    _message("data/general.json:2", "bob", "User left", 1, "general", is_system=True),
]
BROKEN = {
    "dump/rocketchat_message.bson": FILES["dump/rocketchat_message.bson"] + _bson({"u": "ann"}),
    "api/page.json": {"messages": [*_PAGE, 3, {"_id": "p3", "ts": "?"}], "success": True},
    "data/general.json": f'{FILES["data/general.json"]}{{"msg":\n',
}
EMPTY = {
    "dump/rocketchat_message.bson": b"",
    "page.json": {"messages": [], "count": 0, "success": True},
}
REAL = {"rocketchat_api": (4, 0, 1, 2)}
