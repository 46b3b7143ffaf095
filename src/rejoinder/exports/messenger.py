"""Messenger and Instagram: the JSON that Facebook and Instagram give to download.

Chats between two people are not marked as private, as in other messengers. HTML is not read.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from rejoinder.exports.base import ExportFormat, Item, Message, by_time
from rejoinder.exports.files import Files
from rejoinder.exports.rows import Layout, first_of, from_milliseconds, item_of, json_parts, rows

_MESSAGES = Layout(
    ["messages.item"],
    [{"sender_name", "timestamp_ms"}, {"senderName", "timestamp"}],
    "/message_",
)
_CHAT = ("thread_path", "threadName", "title")
_BY_PEOPLE = (None, "", "Generic", "Share", "text", "link", "media")
"""Types of what people write; `Call`, `Subscribe` and others are news of the chat."""
_NEWS = re.compile(
    r"(?:sent an attachment|unsent a message|joined the (?:call|video chat)|"
    r"(?:sent|shared) a (?:photo|video|sticker|GIF|voice message|link|post|reel|story)|"
    r"(?:named|left|created) the group[^\n]*|(?:added|removed) [^\n]+ (?:to|from) the group|"
    r"(?:started|missed) an? (?>[^\n]*?(?:call|video chat))[^\n]*|(?:changed|set) the "
    r"(?:theme|chat theme|group photo|nickname|emoji|quick reaction)[^\n]*)\.?"
)
"""Matches what they write after a person's name as if the person had, in English."""
_REACTION = re.compile(r"Reacted .+ to your message|Liked a message")


def _messages(files: Files) -> Iterator[Item]:
    for name, path in _MESSAGES.places(files):
        chat = _chat(files, name)
        for number, row in rows(files, name, path):
            yield item_of(name, number, "Messenger", _message, row, f"{name}:{number}", chat)


def _chat(files: Files, name: str) -> str:
    """Returns the name of a chat, which comes after its messages.

    Many chats have the same title, `Facebook user`; those of the folders differ.
    """
    with files.open(name) as file:
        found = dict(json_parts(file, set(_CHAT), files.where(name)))
    folder, _, last = name.rpartition("/")
    return (
        _repaired(first_of(found, *_CHAT).rpartition("/")[2])
        or folder
        or last.removesuffix(".json")
    )


def _message(row: Mapping[str, Any], place: str, chat: str) -> Message:
    author = _repaired(row.get("sender_name") or row.get("senderName") or "")
    text, kind = row.get("content") or row.get("text") or "", row.get("type")
    text = _repaired(text).strip()
    is_gone = row.get("is_unsent") or row.get("isUnsent")
    time = row.get("timestamp_ms", row.get("timestamp"))
    if not author and time is None:
        raise KeyError("sender_name")
    return Message(
        id=place,
        author=author,
        time=from_milliseconds(time),
        text="" if is_gone else text,
        source=chat,
        is_system=kind not in _BY_PEOPLE or _is_news(text, author),
    )


def _is_news(text: str, author: str) -> bool:
    if _REACTION.fullmatch(text):
        return True
    return any(
        text.startswith(f"{name} ") and _NEWS.fullmatch(text, len(name) + 1) is not None
        for name in (author, "You")
    )


def _repaired(text: str) -> str:
    r"""Returns text whose bytes of UTF-8 were written as characters of Latin-1.

    >>> _repaired("Zo\u00c3\u00ab"), _repaired("Zo\u00eb")
    ('Zoë', 'Zoë')
    """
    try:
        return text.encode("latin-1").decode("utf-8")
    except UnicodeError:
        return text


MESSENGER = ExportFormat(
    "messenger",
    "Messenger and Instagram (JSON)",
    "https://www.facebook.com/help/212802592074644",
    _MESSAGES.recognises,
    lambda files: by_time(_messages(files), newest_first=True),
)
