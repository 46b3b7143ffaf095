"""Two channels: replies, a forwarded message, a bot and what Discord itself writes."""

from typing import Any

from rejoinder.exports.base import Message


def _row(number: int, name: str, content: str, **others: Any) -> dict[str, Any]:
    author = {"id": f"9{len(name)}", "name": name, "nickname": None, "isBot": name == "helper"}
    return {
        "id": f"10{number}",
        "type": "Default",
        "timestamp": f"2024-03-01T10:0{number}:00.000+02:00",
        "timestampEdited": None,
        "content": content,
        "author": author,
        **others,
    }


_ROWS = [
    _row(1, "ann", "Joined the server.", type="GuildMemberJoin"),
    _row(2, "ann", "Which **port** does `serve` take? See <https://example.org>"),
    _row(3, "bob", "8000 :)", type="Reply", reference={"messageId": "102"}),
    _row(4, "helper", "Try the manual", type="Reply", reference={"messageId": "102"}),
    _row(5, "bob", "", reference={"messageId": "7", "type": "Forward"}),
]
FILES: dict[str, Any] = {
    "Team - general [5].json": {
        "guild": {"id": "1", "name": "Team"},
        "channel": {"id": "5", "type": "GuildTextChat", "name": "general"},
        "messages": _ROWS,
        "messageCount": 5,
    },
    "Team - general - port [6].json": {
        "guild": {"id": "1", "name": "Team"},
        "channel": {"id": "6", "type": "GuildPublicThread", "name": "port"},
        "messages": [_row(6, "bob", "1. one\n2. two", timestampEdited="2024-03-01T12:00:00+00:00")],
    },
}
_TEN = 1709280000.0
"""Ten o'clock at UTC+2."""
MESSAGES = [
    Message(
        id="106",
        text="one\ntwo",
        thread="6",
        author="bob",
        time=_TEN + 360,
        source="port",
        edited=True,
    ),
    Message(
        id="101",
        text="Joined the server.",
        author="ann",
        time=_TEN + 60,
        source="general",
        is_system=True,
    ),
    Message(
        id="102",
        text="Which port does serve take? See https://example.org",
        author="ann",
        time=_TEN + 120,
        source="general",
    ),
    Message(
        id="103", text="8000 :)", parent="102", author="bob", time=_TEN + 180, source="general"
    ),
    Message(
        id="104",
        text="Try the manual",
        parent="102",
        author="helper",
        time=_TEN + 240,
        source="general",
        is_bot=True,
    ),
    Message(id="105", text="", author="bob", time=_TEN + 300, source="general"),
]
BROKEN = {
    "Team - general [5].json": {
        **FILES["Team - general [5].json"],
        "messages": [*_ROWS, {"id": "8"}, 3, _row(9, "ann", "x", timestamp="yesterday")],
    }
}
EMPTY = {"a.json": {**FILES["Team - general [5].json"], "messages": []}}
REAL = {"discord/GC_3A_5M.json": (6, 0, 3, 1), "discord/DM_2A_2M.json": (3, 2, 1, 0)}
