"""A page of a room with a thread, a private room, and the list of rooms."""

from typing import Any

from rejoinder.corpus.exports.base import Message


def _said(id_: str, name: str, minute: int, text: str, **others: Any) -> dict[str, Any]:
    return {
        "id": id_,
        "text": text,
        "html": text,
        "sent": f"2024-03-01T08:{minute:02}:00.000Z",
        "fromUser": {"id": f"u-{name}", "username": name, "displayName": name.title()},
        "unread": False,
        "v": 1,
        **others,
    }


_LOBBY = [
    _said("m1", "ann", 0, "Does *anybody* know the port?", threadMessageCount=1),
    _said("m2", "bob", 2, "See [the manual](https://example.org)", editedAt="2024-03-01T09:00:00Z"),
    _said("m3", "cem", 1, "It is 8000", parentId="m1"),
    {**_said("m4", "", 3, ""), "fromUser": None},
]
FILES: dict[str, Any] = {
    "rooms.json": [
        {"id": "r1", "name": "Lobby", "uri": "team/lobby", "oneToOne": False, "security": "PUBLIC"},
        {"id": "r2", "name": "Ann", "uri": "ann", "oneToOne": True},
    ],
    "r1/page-1.json": _LOBBY,
    "r2/page-1.json": [_said("m5", "ann", 5, "For you alone")],
}
_EIGHT = 1709280000.0


def _message(id_: str, minute: int, text: str, author: str, **others: Any) -> Message:
    others = {"source": "team/lobby", **others}
    return Message(id=id_, text=text, author=author, time=_EIGHT + 60 * minute, **others)


MESSAGES = [
    _message("m1", 0, "Does anybody know the port?", "Ann", thread="m1"),
    _message("m3", 1, "It is 8000", "Cem", parent="m1", thread="m1"),
    _message("m2", 2, "See the manual", "Bob", edited=True),
    _message("m4", 3, "", ""),
    _message("m5", 5, "For you alone", "Ann", source="ann", is_private=True),
]
BROKEN = {"r1/page-1.json": [*_LOBBY, {"id": "m9"}, 7]}
EMPTY = {"r1/page-1.json": []}
REAL = {"gitter_api": (1, 0, 0, 0), "gitter_api/message_page_1.json": (1, 0, 0, 0)}
