"""Reads Telegram, Messenger and Instagram. Chats of two people are not marked as private.

Telegram Desktop writes `result.json` for one chat or for all chats of an account; or HTML pages,
`messages.html` and its parts. A date without a zone, the only date in older versions, is read as
UTC.

For Facebook and Instagram, reads the JSON downloads.
"""

import re
from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import IO, Any

from rejoinder.exports import rows
from rejoinder.exports.base import ExportFormat, Item, Message, by_time
from rejoinder.exports.files import Files
from rejoinder.exports.markup import parsed, plain_text
from rejoinder.io.formats.compression import file_of

# Telegram

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


def _recognises(files: Files) -> bool:
    names = sorted(rows.documents(files), key=lambda name: not name.endswith("result.json"))
    if any(_is_ours(files.head(name)) for name in names[: rows.LOOKED_AT]):
        return True
    named = sorted(_pages(files), key=lambda name: not _PART.search(name))
    return any(_is_page(files, name) for name in named[: rows.LOOKED_AT])


def _is_ours(head: bytes) -> bool:
    if _ACCOUNT.match(head):
        return any(key in head for key in (b'"personal_information"', b'"chats"', b'"left_chats"'))
    return b'"messages"' in head and bool(_CHAT.search(head))


def _read(files: Files) -> Iterator[Item]:
    sources: dict[str, Any] = {}
    for name in rows.documents(files):
        if _is_ours(files.head(name)):
            yield from _document(files, name, sources)
    if not sources:  # an export may be in both formats
        # pages of a chat in order
        for name in sorted(_pages(files), key=_place):
            if _is_page(files, name):
                yield from _page(files, name)


def _document(files: Files, name: str, sources: dict[str, Any]) -> Iterator[Item]:
    file_name = name.rpartition("/")[2].removesuffix(".json")
    chat: dict[str, Any] = {"file": file_name}
    topics: dict[Any, Any] = {}
    number = 0
    for path, value in rows.json_parts(files, name, _PATHS, _CHATS, _valid):
        key = path.rpartition(".")[2]
        if path in _CHATS:
            chat, topics = {"file": file_name}, {}
        elif key in _HEADER:
            chat[key] = value
        else:
            number += 1
            yield rows.item_of(name, number, _message, value, number, chat, topics, sources)


def _message(
    row: Mapping[str, Any],
    number: int,
    chat: Mapping[str, Any],
    topics: dict[Any, Any],
    sources: dict[str, Any],
) -> Message:
    """Converts a row to a message.

    Records the message's forum topic in `topics`, and the owner of the chat's name in `sources`.
    """
    kind = row["type"] if "text" not in row else row.get("type")
    chat_id = chat.get("id") or chat.get("name") or chat["file"]
    author_id = row.get("from_id") or row.get("actor_id") or ""
    source = str(chat.get("name") or chat.get("type") or chat_id)
    if sources.setdefault(source, chat_id) != chat_id:
        source = f"{source} ({chat_id})"
    id_, answered = row.get("id"), row.get("reply_to_message_id")
    if row.get("action") == "topic_created":
        topics[id_] = id_
    elif answered in topics:
        topics[id_] = topics[answered]
    there = re.sub(r"\D", "", row.get("reply_to_peer_id") or "") or chat_id
    thread = topics.get(id_)
    answers = answered is not None and answered != thread  # all answer the first of their topic
    return Message(
        id=f"{chat_id}/{f'#{number}' if id_ is None else id_}",
        parent=f"{there}/{answered}" if answers else None,
        thread=None if thread is None else f"{chat_id}/{thread}",
        author=str(row.get("from") or row.get("actor") or author_id),
        time=rows.seconds(row.get("date_unixtime") or row.get("date")),
        text=_text(row),
        source=source,
        is_bot=chat.get("type") == "bot_chat" and author_id == f"user{chat_id}",
        is_system=kind == "service",
        edited="edited" in row,
    )


def _text(row: Mapping[str, Any]) -> str:
    """Returns the text of a message without quotes; for a poll, the question.

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


def _valid(file: IO[bytes]) -> IO[bytes]:
    r"""Returns a file with `\u00NN` for `\xNN`, as Telegram writes what JSON lacks."""
    return file_of(_mended(file))


def _mended(file: IO[bytes]) -> Iterator[bytes]:
    cut = b""
    while piece := file.read(_PIECE):
        piece = cut + piece
        found = _CUT.search(piece) if b"\\" in piece[-3:] else None
        cut = found[1] if found else b""
        piece = piece[: len(piece) - len(cut)]
        yield _ESCAPE.sub(_escape, piece) if rb"\x" in piece else piece


def _escape(match: re.Match[bytes]) -> bytes:
    return rb"\u00" + match[1] if match[1] else match[0]


# https://telegram.org/blog/export-and-more
TELEGRAM = ExportFormat(
    "telegram",
    "Telegram (Telegram Desktop)",
    _recognises,
    _read,
)


_LARGEST = 1 << 26
"""A page has a thousand messages."""
_MARK = b"<title>Exported Data</title>"
_NUMBER = re.compile(r"go_to_message(\d+)")
_PART = re.compile(r"messages(\d*)\.html")
_VIA = re.compile(r"(?<!\s)\s+via @\w+$")
_DATE = re.compile(r"(\d\d\.\d\d\.\d{4} \d\d:\d\d:\d\d)(?: UTC([+-]\d\d:?\d\d)?)?")


def _pages(files: Files) -> list[str]:
    return [name for name in files.names if name.lower().endswith(".html")]


def _is_page(files: Files, name: str) -> bool:
    head = files.head(name)
    return _MARK in head and b'class="message ' in head


def _place(name: str) -> tuple[str, int]:
    """Returns a key that sorts `messages10.html` after `messages9.html`."""
    part = _PART.search(name)
    return name.rpartition("/")[0], int(part[1] or 1) if part else 0


def _page(files: Files, name: str) -> Iterator[Item]:
    with files.open(name) as file:
        tree = parsed(file.read(_LARGEST).decode("utf-8", "replace"))
    folder = name.rpartition("/")[0]
    chat = _html_text(tree, ".page_header .text") or folder or files.path.stem
    author = ""
    for number, node in enumerate(tree.css("div.message"), 1):
        if not (node.attributes.get("id") or "").startswith("message-"):  # else a date
            author = _VIA.sub("", _html_text(node, "div.body > .from_name")) or author
            yield rows.item_of(name, number, _html_message, node, author, chat, folder or chat)


def _html_message(node: Any, author: str, chat: str, place: str) -> Message:
    is_system = "service" in (node.attributes["class"] or "").split()
    date, answered = node.css_first("div.date"), node.css_first("div.reply_to a")
    number = _NUMBER.search(answered.attributes.get("href") or "") if answered else None
    return Message(
        id=f"{place}/{node.attributes['id'].removeprefix('message')}",
        parent=f"{place}/{number[1]}" if number else None,
        author="" if is_system else author,
        time=_html_time(date.attributes["title"]) if date else None,
        text=_html_text(node, "div.body" if is_system else "div.text"),
        source=chat,
        is_system=is_system,
    )


def _html_text(node: Any, selector: str) -> str:
    found = node.css_first(selector)
    return plain_text(found.html, without="blockquote, .details .details") if found else ""


def _html_time(title: str) -> float:
    found = _DATE.fullmatch(title.strip())
    if found is None:
        raise ValueError(title)
    time = datetime.strptime(f"{found[1]} {found[2] or '+0000'}", "%d.%m.%Y %H:%M:%S %z")
    return time.timestamp()


# Messenger and Instagram

_MESSAGES = rows.Layout(
    ["messages.item"],
    [{"sender_name", "timestamp_ms"}, {"senderName", "timestamp"}],
    "/message_",
)
_NAMES_OF_CHAT = ("thread_path", "threadName", "title")
_BY_PEOPLE = (None, "", "Generic", "Share", "text", "link", "media")
"""Types of messages by people; `Call`, `Subscribe` and others are events of the chat."""
_NEWS = re.compile(
    r"(?:sent an attachment|unsent a message|joined the (?:call|video chat)|"
    r"(?:sent|shared) a (?:photo|video|sticker|GIF|voice message|link|post|reel|story)|"
    r"(?:named|left|created) the group[^\n]*|(?:added|removed) [^\n]+ (?:to|from) the group|"
    r"(?:started|missed) an? (?>[^\n]*?(?:call|video chat))[^\n]*|(?:changed|set) the "
    r"(?:theme|chat theme|group photo|nickname|emoji|quick reaction)[^\n]*)\.?"
)
"""Matches event texts after a person's name, in English, that look like the person's messages."""
_REACTION = re.compile(r"Reacted .+ to your message|Liked a message")


def _messages(files: Files) -> Iterator[Item]:
    for name, path in _MESSAGES.places(files):
        chat = _chat(files, name)
        for number, row in rows.rows(files, name, path):
            yield rows.item_of(name, number, _messenger_message, row, f"{name}:{number}", chat)


def _chat(files: Files, name: str) -> str:
    """Returns the name of a chat, which comes after its messages in the file.

    Many chats have the same title, `Facebook user`, but folder names differ.
    """
    found = dict(rows.json_parts(files, name, _NAMES_OF_CHAT))
    folder, _, last = name.rpartition("/")
    return (
        _repaired(rows.first_of(found, *_NAMES_OF_CHAT).rpartition("/")[2])
        or folder
        or last.removesuffix(".json")
    )


def _messenger_message(row: Mapping[str, Any], place: str, chat: str) -> Message:
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
        time=rows.from_milliseconds(time),
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


# https://www.facebook.com/help/212802592074644
MESSENGER = ExportFormat(
    "messenger",
    "Messenger and Instagram (JSON)",
    _MESSAGES.recognises,
    lambda files: by_time(_messages(files), newest_first=True),
)
