"""Telegram Desktop: `result.json` of one chat, or of all chats of an account; or pages of HTML.

Chats between two people are not marked as private, as in other messengers. A date without a zone,
which older versions write alone, is taken as UTC.
"""

import io
import re
from collections.abc import Iterator, Mapping
from typing import IO, Any

from rejoinder.corpus.exports.base import ExportFormat, Item, Message
from rejoinder.corpus.exports.files import Files
from rejoinder.corpus.exports.json_items import json_parts
from rejoinder.corpus.exports.rows import FAULTS, documents, no_message, seconds
from rejoinder.corpus.exports.telegram_html import is_in_pages, pages

_CHAT = re.compile(
    rb'"type":\s*"(?:(?:personal|bot|replies)_chat|saved_messages|verify_codes|'
    rb'(?:private|public)_(?:group|supergroup|channel))"|"(?:date_unixtime|from_id)":'
)
_ACCOUNT = re.compile(rb'\{\s*"(?:about|personal_information|contacts|chats|left_chats)":')
_CHATS = ("chats.list.item", "left_chats.list.item")
_HEADER = frozenset(("name", "type", "id"))
_PATHS = _HEADER | {"messages.item"}
_PATHS |= {f"{chat}.{path}" for chat in _CHATS for path in _PATHS}
_ESCAPE = re.compile(rb"\\(?:x([0-9a-fA-F]{2})|.)", re.DOTALL)
_CUT = re.compile(rb"(?<!\\)(?:\\\\)*(\\(?:x[0-9a-fA-F]?)?)\Z")
_PIECE = 1 << 16
_LOOKED_AT = 20


def _recognises(files: Files) -> bool:
    names = sorted(documents(files), key=lambda name: not name.endswith("result.json"))
    if any(_is_ours(files.head(name)) for name in names[:_LOOKED_AT]):
        return True
    return is_in_pages(files)


def _is_ours(head: bytes) -> bool:
    if _ACCOUNT.match(head):
        return any(key in head for key in (b'"personal_information"', b'"chats"', b'"left_chats"'))
    return b'"messages"' in head and bool(_CHAT.search(head))


def _read(files: Files) -> Iterator[Item]:
    sources: dict[str, Any] = {}
    for name in documents(files):
        if _is_ours(files.head(name)):
            yield from _document(files, name, sources)
    if not sources:  # an export may be in both formats
        yield from pages(files)


def _document(files: Files, name: str, sources: dict[str, Any]) -> Iterator[Item]:
    file_name = name.rpartition("/")[2].removesuffix(".json")
    chat: dict[str, Any] = {"file": file_name}
    topics: dict[Any, Any] = {}
    number = 0
    with files.open(name) as file:
        valid = io.BufferedReader(_Valid(file), _PIECE)
        for path, value in json_parts(valid, _PATHS, files.where(name), begins=_CHATS):
            key = path.rpartition(".")[2]
            if path in _CHATS:
                chat, topics = {"file": file_name}, {}
            elif key in _HEADER:
                chat[key] = value
            else:
                number += 1
                try:
                    yield _message(value, number, chat, topics, sources)
                except FAULTS as error:
                    yield no_message(name, number, "Telegram", error)


def _message(
    row: Mapping[str, Any],
    number: int,
    chat: Mapping[str, Any],
    topics: dict[Any, Any],
    sources: dict[str, Any],
) -> Message:
    """Returns a message.

    Notes in `topics` to which topic of a forum it belongs, in `sources` whose the chat's name is.
    """
    kind = row["type"] if "text" not in row else row.get("type")
    chat_id = chat.get("id") or chat.get("name") or chat["file"]
    author_id = row.get("from_id") or row.get("actor_id") or ""
    source = str(chat.get("name") or chat.get("type") or chat_id)
    id_, answered = row.get("id"), row.get("reply_to_message_id")
    if row.get("action") == "topic_created":
        topics[id_] = id_
    elif answered in topics:
        topics[id_] = topics[answered]
    there = re.sub(r"\D", "", row.get("reply_to_peer_id") or "") or chat_id
    thread = topics.get(id_)
    answers = answered is not None and answered != thread  # in a topic, all answer its first
    return Message(
        id=f"{chat_id}/{f'#{number}' if id_ is None else id_}",
        parent=f"{there}/{answered}" if answers else None,
        thread=None if thread is None else f"{chat_id}/{thread}",
        author=str(row.get("from") or row.get("actor") or author_id),
        time=_time(row),
        text=_text(row),
        source=source
        if sources.setdefault(source, chat_id) == chat_id
        else f"{source} ({chat_id})",
        is_bot=chat.get("type") == "bot_chat" and author_id == f"user{chat_id}",
        is_system=kind == "service",
        edited="edited" in row,
    )


def _time(row: Mapping[str, Any]) -> float | None:
    if row.get("date_unixtime"):
        return float(row["date_unixtime"])
    return seconds(row.get("date"))


def _text(row: Mapping[str, Any]) -> str:
    """Returns what a message says without its quotes; of a poll, the question.

    >>> _text({"text": ["See ", {"type": "text_link", "text": "this", "href": "https://a.b"}]})
    'See this'
    """
    text = row.get("text") or row.get("text_entities") or (row.get("poll") or {}).get("question")
    parts = text if isinstance(text, list) else [text or ""]
    return "".join(
        part if isinstance(part, str) else part["text"]
        for part in parts
        if isinstance(part, str) or part.get("type") != "blockquote"
    ).strip()


class _Valid(io.RawIOBase):
    r"""A file with `\u00NN` for `\xNN`, as Telegram writes control characters, which JSON lacks."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self._cut = self._ready = b""

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        while not self._ready and (piece := self._file.read(_PIECE)):
            piece = self._cut + piece
            cut = _CUT.search(piece) if b"\\" in piece[-3:] else None
            self._cut = cut[1] if cut else b""
            self._ready = piece[: len(piece) - len(self._cut)]
            if rb"\x" in self._ready:
                self._ready = _ESCAPE.sub(_escape, self._ready)
        count = min(len(buffer), len(self._ready))
        buffer[:count], self._ready = self._ready[:count], self._ready[count:]
        return count


def _escape(match: re.Match[bytes]) -> bytes:
    return rb"\u00" + match[1] if match[1] else match[0]


TELEGRAM = ExportFormat(
    "telegram",
    "Telegram (Telegram Desktop)",
    "https://telegram.org/blog/export-and-more",
    _recognises,
    _read,
)
