"""An account with a forum, chats with a person and a bot, and notes; and one exported chat."""

from typing import Any

from rejoinder.exports.base import Message

_PEOPLE = {"Ann": "user1", "Bob": "user2", "Helper": "user30", None: "user4"}


def _row(number: int, name: str | None, text: Any, **others: Any) -> dict[str, Any]:
    return {
        "id": number,
        "type": "message",
        "date": f"2024-03-01T12:00:0{number % 10}",
        "date_unixtime": str(1709280000 + number),
        "from": name,
        "from_id": _PEOPLE[name],
        "text": text,
        "text_entities": [],
        **others,
    }


_TOPIC = {"id": 3, "type": "service", "date_unixtime": "1709280003", "actor": "Ann",
          "actor_id": "user1", "action": "topic_created", "title": "Ports", "text": ""}  # fmt: skip
_FORUM = [
    _TOPIC,
    _row(4, "Ann", ["Which ", {"type": "bold", "text": "port"}, "?"], reply_to_message_id=3),
    _row(5, "Bob", [{"type": "blockquote", "text": "Which"}, "8000"], reply_to_message_id=4),
    _row(6, None, r"A \x00 of a backslash", edited="2024-03-01T13:00:00"),
]
_OTHER_BOB = _row(10, "Ann", [{"type": "plain", "text": "Another Bob?"}])
FILES: dict[str, Any] = {
    "result.json": {
        "about": "Here is the data you requested.",
        "personal_information": {"user_id": 1, "first_name": "Ann"},
        "contacts": {"about": "", "list": [{"user_id": 2, "first_name": "Bob"}]},
        "chats": {
            "about": "",
            "list": [
                {"name": "Users", "type": "public_supergroup", "id": 77, "messages": _FORUM},
                {"type": "saved_messages", "id": 1, "messages": [_row(7, "Ann", "Buy milk")]},
                {"name": "Empty", "type": "private_group", "id": 8, "messages": []},
                {
                    "name": "Helper",
                    "type": "bot_chat",
                    "id": 30,
                    "messages": [
                        _row(8, "Ann", "/help"),
                        _row(9, "Helper", "", poll={"question": "Any good?", "answers": []}),
                    ],
                },
            ],
        },
        "left_chats": {
            "about": "",
            "list": [
                {"name": "Bob", "type": "personal_chat", "id": 5, "messages": [_OTHER_BOB]},
            ],
        },
    },
    "ChatExport_2024-03-01/result.json": rb"""{
 "name": "Bob",
 "type": "personal_chat",
 "id": 2,
 "messages": [
  {"id": 1, "type": "message", "date": "2019-03-01T08:00:00", "from": "Ann",
   "text": "One\x0btwo \\x41 \u00e9"},
  {"type": "message", "date": "2019-03-01T08:00:05", "from": "Bob", "text": "What?",
   "reply_to_message_id": 5, "reply_to_peer_id": "channel77"}
 ]
}""",
}
MESSAGES = [
    Message(id="2/1", text="One\x0btwo \\x41 é", author="Ann", time=1551427200.0, source="Bob"),
    Message(id="2/#2", text="What?", parent="77/5", author="Bob", time=1551427205.0, source="Bob"),
    Message(
        id="77/3",
        text="",
        thread="77/3",
        author="Ann",
        time=1709280003.0,
        source="Users",
        is_system=True,
    ),
    Message(
        id="77/4",
        text="Which port?",
        thread="77/3",
        author="Ann",
        time=1709280004.0,
        source="Users",
    ),
    Message(
        id="77/5",
        text="8000",
        parent="77/4",
        thread="77/3",
        author="Bob",
        time=1709280005.0,
        source="Users",
    ),
    Message(
        id="77/6",
        text=r"A \x00 of a backslash",
        author="user4",
        time=1709280006.0,
        source="Users",
        edited=True,
    ),
    Message(id="1/7", text="Buy milk", author="Ann", time=1709280007.0, source="saved_messages"),
    Message(id="30/8", text="/help", author="Ann", time=1709280008.0, source="Helper"),
    Message(
        id="30/9",
        text="Any good?",
        author="Helper",
        time=1709280009.0,
        source="Helper",
        is_bot=True,
    ),
    Message(id="5/10", text="Another Bob?", author="Ann", time=1709280010.0, source="Bob (5)"),
]
BROKEN = {
    "result.json": {
        **FILES["result.json"],
        "left_chats": {
            "list": [
                *FILES["result.json"]["left_chats"]["list"],
                {"id": 9, "messages": [3, {"id": 1}, _row(2, "Ann", "x", date_unixtime="?")]},
            ]
        },
    }
}
EMPTY = {"result.json": {"name": "Bob", "type": "personal_chat", "id": 2, "messages": []}}
REAL = {
    "telegram/BIG_20A_5475M.json": (5_475, 0, 0, 0),
    "telegram/DM_2A_7M.json": (8, 0, 2, 0),
    "telegram/chatminer_single.json": (2, 0, 0, 0),
}
