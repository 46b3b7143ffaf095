"""A team with two channels and a chat, as PowerShell writes them, and an answer of Graph."""

import json
from typing import Any

from rejoinder.exports.base import Message

_TEAM, _GENERAL, _BOARD, _CHAT = "t1", "19:a@thread.tacv2", "19:b@thread.tacv2", "19:c@unq.gbl"


def _row(second: int, name: str | None, html: str, **others: Any) -> dict[str, Any]:
    user = {"Id": f"u-{name}", "DisplayName": name}
    return {
        "Id": f"170928720{second}000",
        "Body": {"ContentType": "html", "Content": html},
        "CreatedDateTime": f"2024-03-01T10:00:0{second}+00:00",
        "LastEditedDateTime": None,
        "DeletedDateTime": None,
        "Subject": "",
        "ReplyToId": None,
        "WebUrl": None,
        "From": {"Application": None, "User": user} if name else None,
        "Attachments": [],
        "MessageType": "message",
        "ChannelIdentity": {"TeamId": _TEAM, "ChannelId": _GENERAL},
        "ChatId": None,
        **others,
    }


def _in_chat(second: int, name: str, html: str, **others: Any) -> dict[str, Any]:
    return _row(second, name, html, ChannelIdentity=None, ChatId=_CHAT, **others)


_APP = {"Application": {"Id": "a", "DisplayName": "CI"}, "User": None}
_ROOT = "1709287201000"
_MESSAGES = [
    _row(3, None, "<systemEventMessage/>", MessageType="unknownFutureValue"),
    _row(2, "Bob", "<blockquote><p>Which</p></blockquote><p>8000</p>", ReplyToId=_ROOT),
    _row(1, "Ann", "<p>Which&nbsp;<b>one</b>?</p>", Subject="Ports", WebUrl="https://a.b/1"),
    _row(4, "", "<p>Build passed</p>", From=_APP),
    _row(5, "Ann", "<p>gone</p>", DeletedDateTime="2024-03-01T11:00:00Z"),
    _row(6, "Ann", "Between us", ChannelIdentity={"TeamId": _TEAM, "ChannelId": _BOARD}),
]
_REFERENCE = {
    "Id": "1709287207000",
    "ContentType": "messageReference",
    "Content": json.dumps({"messageId": "1709287207000", "messagePreview": "Coming?"}),
}
_ATTACHED = '<attachment id="1709287207000"></attachment><p>Yes <emoji alt="👍"></emoji></p>'
_SAID = [
    _in_chat(8, "Bob", _ATTACHED, Attachments=[_REFERENCE]),
    _in_chat(7, "Ann", '<p><at id="0">Bob</at>, coming?</p>', LastEditedDateTime="2024-03-01"),
]
_GRAPH = {
    "id": "1709287201000",
    "messageType": "message",
    "createdDateTime": "2024-03-01T10:00:01Z",
    "body": {"contentType": "text", "content": "1 < 2?"},
    "from": {"user": {"id": "u-Ann", "displayName": None}},
    "channelIdentity": {"teamId": "t2", "channelId": "19:d"},
}
_REPLY = {
    **_GRAPH,
    "id": "1709287202000",
    "replyToId": "1709287201000",
    "createdDateTime": "2024-03-01T10:00:02Z",
    "body": {"contentType": "text", "content": "Yes"},
}
FILES: dict[str, Any] = {
    "teams/teamsList.json": [{"Name": "Core", "Privacy": "Public", "GroupsId": _TEAM}],
    "teams/t1/channels_t1.json": [
        {"Id": _GENERAL, "DisplayName": "General", "MembershipType": "standard"},
        {"Id": _BOARD, "DisplayName": "Board", "MembershipType": "private"},
    ],
    "teams/t1/messages_t1.json": _MESSAGES,
    "users/usersList.json": [{"Id": "u-Ann", "DisplayName": "Ann A.", "Mail": "ann@example.org"}],
    "users/u1/messages_u1.json": _SAID,
    "users/u2/messages_u2.json": _SAID,
    "graph.json": {"@odata.context": "https://a.b", "value": [{**_GRAPH, "replies": [_REPLY]}]},
}
_TEN = 1709287200.0
"""Ten o'clock on 1 March 2024."""


def _message(
    place: str, second: int, author: str, text: str, source: str, **others: Any
) -> Message:
    others = {"thread": f"{place}/{_ROOT}"} | others
    return Message(
        id=f"{place}/170928720{second}000",
        author=author,
        text=text,
        time=_TEN + second,
        source=source,
        **others,
    )


def _general(second: int, author: str, text: str, **others: Any) -> Message:
    others = {"thread": f"{_GENERAL}/170928720{second}000"} | others
    return _message(_GENERAL, second, author, text, "Core/General", **others)


MESSAGES = [
    _message("19:d", 1, "Ann A.", "1 < 2?", "19:d"),
    _message("19:d", 2, "Ann A.", "Yes", "19:d", parent="19:d/1709287201000"),
    _general(1, "Ann", "Ports\nWhich one?", link="https://a.b/1"),
    _general(2, "Bob", "8000", parent=f"{_GENERAL}/{_ROOT}", thread=f"{_GENERAL}/{_ROOT}"),
    _general(3, "", "", is_system=True),
    _general(4, "CI", "Build passed", is_bot=True),
    _general(5, "Ann", ""),
    _message(
        _BOARD,
        6,
        "Ann",
        "Between us",
        "Core/Board",
        thread=f"{_BOARD}/1709287206000",
        is_private=True,
    ),
    _message(_CHAT, 7, "Ann", "Bob, coming?", _CHAT, thread=None, is_private=True, edited=True),
    _message(
        _CHAT,
        8,
        "Bob",
        "Yes 👍",
        _CHAT,
        parent=f"{_CHAT}/1709287207000",
        thread=None,
        is_private=True,
    ),
]
BROKEN = {"teams/t1/messages_t1.json": [*_MESSAGES, 3, {"Id": "9"}, _row(9, "x", "", From=3)]}
EMPTY: dict[str, Any] = {"teams/teamsList.json": [], "teams/t1/messages_t1.json": []}
REAL: dict[str, tuple[int, int, int, int]] = {}
