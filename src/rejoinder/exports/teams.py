"""Microsoft Teams: messages of channels and chats as Microsoft Graph gives them.

Keys are `replyToId` as in Graph's answers, or `ReplyToId` as PowerShell writes them.
"""

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from rejoinder.exports.base import ExportFormat, Item, Message, by_time
from rejoinder.exports.files import Files
from rejoinder.exports.markup import plain_text
from rejoinder.exports.rows import FAULTS, Layout, id_of, list_of, no_message, seconds

_PATHS = ("item", "value.item", "")
_MESSAGES = Layout(
    _PATHS,
    (
        {"Id", "Body", "CreatedDateTime", "MessageType"},
        {"id", "body", "createdDateTime", "messageType"},
    ),
    "messages_",
)
_NAMED = Layout(_PATHS, ({"Id", "DisplayName"}, {"id", "displayName"}, {"GroupsId", "Name"}))
"""Keys of channels, people and teams."""
_EMOJI = re.compile(r'<emoji\b((?:[^<>"]|"[^"<]*")*+)>(?:</emoji>)?')
_ALT = re.compile(r'\balt="([^"]*)"')
_QUOTES = "blockquote, attachment"
_QUOTED = "messageReference"


def _messages(files: Files) -> Iterator[Item]:
    known = _Known()
    of_messages = dict(_MESSAGES.places(files))
    for name, _, row in _NAMED.rows(files):
        if name not in of_messages:
            known.add(row)
    for name, number, row in _MESSAGES.rows(files):
        try:
            for one in [row, *list_of(_get(row, "Replies"))]:
                yield known.message(one, name)
        except FAULTS as error:
            yield no_message(name, number, "Teams", error)


def _get(row: Mapping[str, Any], key: str) -> Any:
    """Returns the value of a key that may begin with a small letter."""
    return row[key] if key in row else row.get(key[0].lower() + key[1:])


class _Known:
    """Names of channels, people and teams by their ids."""

    def __init__(self) -> None:
        self._names: dict[str, str] = {}
        self._private: set[str] = set()

    def add(self, row: Any) -> None:
        """Notes what a row says of a channel, a person or a team."""
        if not isinstance(row, dict):
            return
        id_ = row.get("GroupsId") or _get(row, "Id")
        name = _get(row, "DisplayName") or row.get("Name")
        if isinstance(id_, str) and name:
            self._names[id_] = str(name)
            if _get(row, "MembershipType") == "private":
                self._private.add(id_)

    def message(self, row: Mapping[str, Any], file: str) -> Message:
        """Returns the message of a row."""
        kind = _get(row, "MessageType")
        if kind is None:
            raise KeyError("messageType")
        channel, chat = _get(row, "ChannelIdentity") or {}, _get(row, "ChatId")
        place = _get(channel, "ChannelId") or chat or ""
        team = _get(channel, "TeamId") or ""
        names = [self._names.get(team, ""), self._names.get(place, place)]
        sender = _get(row, "From") or {}
        user, program = _get(sender, "User") or {}, _get(sender, "Application")
        answered = _get(row, "ReplyToId") or _quoted(row)
        root = _get(row, "ReplyToId") if place and not chat else None
        id_ = id_of(row, "Id" if "Id" in row else "id")
        return Message(
            id=f"{place}/{id_}",
            parent=f"{place}/{answered}" if answered else None,
            thread=f"{place}/{root or id_}" if not chat else None,
            author=self._author(user or program or {}),
            time=seconds(_get(row, "CreatedDateTime")),
            text="" if _get(row, "DeletedDateTime") else _text(row),
            source="/".join(name for name in names if name) or file,
            link=_get(row, "WebUrl"),
            is_bot=not user and bool(program),
            is_system=kind != "message",
            is_private=bool(chat) or place in self._private,
            edited=_get(row, "LastEditedDateTime") is not None,
        )

    def _author(self, row: Mapping[str, Any]) -> str:
        id_ = _get(row, "Id") or ""
        return str(_get(row, "DisplayName") or self._names.get(id_, id_))


def _quoted(row: Mapping[str, Any]) -> str | None:
    """Returns the id of the message that one in a chat quotes."""
    for attachment in list_of(_get(row, "Attachments")):
        if _get(attachment, "ContentType") == _QUOTED:
            content = json.loads(_get(attachment, "Content") or "{}")
            return str(content.get("messageId") or _get(attachment, "Id") or "") or None
    return None


def _emoji(tag: re.Match[str]) -> str:
    alt = _ALT.search(tag[1])
    return alt[1] if alt else tag[0]


def _text(row: Mapping[str, Any]) -> str:
    body = _get(row, "Body") or {}
    content, subject = _get(body, "Content") or "", _get(row, "Subject") or ""
    if _get(body, "ContentType") != "text":
        content = plain_text(_EMOJI.sub(_emoji, content), without=_QUOTES)
    return f"{subject}\n{content}".strip()


TEAMS = ExportFormat(
    "teams",
    "Microsoft Teams (Microsoft Graph)",
    "https://learn.microsoft.com/en-us/graph/api/resources/chatmessage",
    _MESSAGES.recognises,
    lambda files: by_time(_messages(files)),  # which leaves out that others in a chat have it, too
)
