"""Reads chats of community servers: Mattermost, Rocket.Chat, Matrix and Discord.

Mattermost: a bulk export with an object on each line, or pages of posts from its API. Rocket.Chat:
a database dump, messages from its API, or the export of a user's rooms. Matrix: a room exported
from Element, pages of its events, or an event on each line. Discord: a JSON document per channel or
part of a channel, from DiscordChatExporter.
"""

import re
import struct
from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import IO, Any

import msgspec

from rejoinder.errors import InputError
from rejoinder.exports import rows
from rejoinder.exports.base import ExportFormat, Item, Message, by_time
from rejoinder.exports.files import Files
from rejoinder.exports.markup import markdown_text, plain_text

# Mattermost

_LINE = re.compile(
    rb'\s*\{\s*"type":\s*"(version|team|channel|user|bot|post|direct_channel|direct_post)",'
    rb'\s*"\1":'
)
_PAGE = re.compile(rb'\s*\{\s*"(?:order|posts)":')
_NEWS = re.compile(
    r"@?\S+ (?:(?:joined|left) the (?:channel|team)|(?:was )?(?:added to|removed from) the "
    r"(?:channel|team)(?: by \S+)?)\."
)
"""Matches what Mattermost says about channels, as exports without the type of posts have it."""


def _recognises(files: Files) -> bool:
    names = sorted(rows.documents(files), key=lambda name: ".jsonl" not in name.lower())
    heads = (files.head(name) for name in names[: rows.LOOKED_AT])
    return any(_LINE.match(head) or _is_page(head) for head in heads)


def _is_page(head: bytes) -> bool:
    return bool(_PAGE.match(head)) and b'"channel_id":' in head


def _messages(files: Files) -> Iterator[Item]:
    names = rows.documents(files)
    for name in names:
        if _LINE.match(files.head(name)):
            yield from _Bulk(name).read(files)
    for name in names:
        if _is_page(files.head(name)):
            for number, (id_, post) in enumerate(rows.json_members(files, name, "posts"), 1):
                yield rows.item_of(name, number, _posted, id_, post)


class _Bulk:
    """A bulk export, with facts from the lines before the posts."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._teams: set[str] = set()
        self._private: set[tuple[str, str]] = set()
        self._bots: set[str] = set()

    def read(self, files: Files) -> Iterator[Item]:
        """Yields the posts, each with its replies."""
        with files.open(self._name) as file:
            for number, line in enumerate(file, 1):
                if line.strip():
                    yield from rows.items_of(self._name, number, self._line(line, number))

    def _line(self, line: bytes, number: int) -> Iterator[Message]:
        tree = msgspec.json.decode(line)
        kind = tree["type"]
        row = tree[kind]
        if kind == "team":
            self._teams.add(row["name"])
        elif kind == "channel" and row.get("type") == "P":
            self._private.add((row["team"], row["name"]))
        elif kind == "bot":
            self._bots.add(row["username"])
        elif kind in ("post", "direct_post"):
            yield from list(self._posts(row, number))

    def _posts(self, row: Mapping[str, Any], number: int) -> Iterator[Message]:
        channel = (row.get("team") or "", row.get("channel") or "")
        members = row.get("channel_members")
        if members:
            source = ", ".join(sorted(members))
        else:
            source = "/".join(channel) if len(self._teams) > 1 else channel[1]
        is_private = bool(members) or channel in self._private
        first, replies = f"{self._name}:{number}", row.get("replies") or []
        for place, post in enumerate([row, *replies]):
            user = post.get("user") or ""
            yield Message(
                id=f"{first}.{place}" if place else first,
                parent=first if place else None,
                thread=first if replies else None,
                author=user,
                source=source,
                is_bot=user in self._bots or _by_program(post),
                is_private=is_private,
                **_said(post),
            )


def _posted(id_: str, post: Mapping[str, Any]) -> Message:
    return Message(
        id=id_,
        parent=post.get("root_id") or None,
        thread=post.get("root_id") or None,
        author=post.get("user_id") or "",
        source=post["channel_id"],
        is_bot=_by_program(post),
        is_private=post.get("channel_type") in ("P", "D", "G"),
        **_said(post),
    )


def _said(post: Mapping[str, Any]) -> dict[str, Any]:
    text, kind = post["message"] or "", post.get("type")
    is_system = kind.startswith("system_") if kind else bool(_NEWS.fullmatch(text))
    return {
        "time": rows.from_milliseconds(post.get("create_at")),
        "text": "" if post.get("delete_at") else markdown_text(text),
        "is_system": is_system,
        "edited": bool(post.get("edit_at")),
    }


def _by_program(post: Mapping[str, Any]) -> bool:
    props = post.get("props") or {}
    named = any(props.get(key) in ("true", True) for key in ("from_bot", "from_webhook"))
    return named or str(post.get("type") or "").startswith("custom_")


# https://docs.mattermost.com/administration-guide/manage/bulk-export-tool.html
MATTERMOST = ExportFormat(
    "mattermost",
    "Mattermost (bulk export, or posts from its API)",
    _recognises,
    lambda files: by_time(_messages(files)),
)


# Rocket.Chat

_MESSAGES = rows.Layout(
    ("messages.item", "item", ""), ({"_id", "rid", "ts", "u"}, {"msg", "username", "ts"})
)
_ROOMS = rows.Layout(
    ("channel", "channels.item", "group", "groups.item", "ims.item", "rooms.item", "item", ""),
    ({"_id", "t", "name"}, {"_id", "t", "usernames"}, {"_id", "t", "uids"}),
)
_USERS = rows.Layout(("users.item", "item", ""), [{"_id", "username", "type"}])
_DUMP = re.compile(r"(?:.*/)?(rocketchat_message|rocketchat_room|users)\.bson(?:\.gz)?")
_PRIVATE = ("d", "p")
"""Types of direct and private rooms."""
_ENCRYPTED = "e2e"
_QUOTE = re.compile(r"\[\s*\]\((?>[^\s()\[\]]*?[?&]msg=)(\w++)[^\s()\[\]]*\)\s*")
"""Matches the link without text by which a message quotes another."""

_Rows = Iterator[tuple[str, int, Any]]


def _dumped(name: str) -> str:
    found = _DUMP.fullmatch(name)
    return found[1] if found else ""


def _all(files: Files, dumped: str, layout: rows.Layout) -> _Rows:
    """Yields rows of a kind from all files, with the file's name and their numbers."""
    for name in files.names:
        if _dumped(name) == dumped:
            with files.open(name) as file:
                for number, row in enumerate(bson_documents(file, files.where(name)), 1):
                    yield name, number, row
    yield from (found for found in layout.rows(files) if not _dumped(found[0]))


def _rocketchat_messages(files: Files) -> Iterator[Item]:
    rooms: dict[str, tuple[str, bool]] = {}
    for _, _, row in _all(files, "rocketchat_room", _ROOMS):
        if isinstance(row, dict) and isinstance(row.get("_id"), str) and "rid" not in row:
            rooms[row["_id"]] = (_room_name(row), row.get("t") in _PRIVATE)
    users = _all(files, "users", _USERS)
    bots = {row.get("_id") for _, _, row in users if _is_bot(row)}
    for name, number, row in _all(files, "rocketchat_message", _MESSAGES):
        place = f"{name}:{number}"
        yield rows.item_of(name, number, _rocketchat_message, row, place, rooms, bots)


def _room_name(row: Mapping[str, Any]) -> str:
    names = row.get("usernames")
    people = ", ".join(sorted(map(str, names))) if isinstance(names, list) else ""
    return str(row.get("fname") or row.get("name") or people or row["_id"])


def _is_bot(row: Any) -> bool:
    return isinstance(row, dict) and row.get("type") == "bot" and isinstance(row.get("_id"), str)


def _rocketchat_message(
    row: Mapping[str, Any], place: str, rooms: Mapping[str, tuple[str, bool]], bots: set[Any]
) -> Message:
    room, is_private = rooms.get(row.get("rid", ""), (row.get("rid") or "", False))
    if "msg" not in row and "ts" not in row:
        raise KeyError("msg")
    user = row.get("u") or {}
    text, kind = row.get("msg") or "", row.get("t") or row.get("type")
    quoted = _QUOTE.match(text)
    id_, thread = row.get("_id") or place, row.get("tmid")
    return Message(
        id=id_,
        parent=quoted[1] if quoted else thread,
        thread=thread or (id_ if row.get("tcount") else None),
        author=user.get("name") or user.get("username") or row.get("username") or "",
        time=_time(row.get("ts")),
        text="" if kind == _ENCRYPTED else markdown_text(_QUOTE.sub("", text)),
        source=room or place.rpartition(":")[0].rpartition("/")[2].removesuffix(".json"),
        is_bot=bool(row.get("bot")) or user.get("_id") in bots,
        # a hidden message is an earlier version of an edited message
        is_system=bool(row.get("_hidden")) or kind not in (None, _ENCRYPTED),
        is_private=is_private,
        edited="editedAt" in row,
    )


def _time(value: Any) -> float | None:
    """Returns seconds since 1970 of a time of the API, of BSON, or of `mongoexport`.

    >>> _time({"$date": {"$numberLong": "1000"}}), _time("1970-01-01T00:00:01Z")
    (1.0, 1.0)
    """
    if isinstance(value, dict):
        value = value["$date"]
    if isinstance(value, dict):
        value = int(value["$numberLong"])
    return value / 1000 if isinstance(value, int | float) else rows.seconds(value)


# https://developer.rocket.chat/apidocs/get-channel-history
ROCKETCHAT = ExportFormat(
    "rocketchat",
    "Rocket.Chat (database dump, API, or a user's data)",
    lambda files: "rocketchat_message" in map(_dumped, files.names) or _MESSAGES.recognises(files),
    lambda files: by_time(_rocketchat_messages(files)),
)


# BSON, the documents of a MongoDB dump: the `bson` package comes only with the MongoDB driver

_LARGEST = 1 << 26
_SIZE = struct.Struct("<i")
_PLAIN = {
    kind: struct.Struct(form)
    for form, kinds in {
        "<d": (0x01,),
        "<?": (0x08,),
        "<i": (0x10,),
        "<q": (0x12,),
        "": (0x06, 0x0A, 0x7F, 0xFF),
        "8x": (0x11,),
        "16x": (0x13,),
    }.items()
    for kind in kinds
}
"""Values of one size; the last are not read: null and such, timestamps, decimals."""


def bson_documents(file: IO[bytes], where: str) -> Iterator[dict[str, Any]]:
    """Yields documents in JSON form: dates as `{"$date": milliseconds}`, ids as digits.

    Values of other types, such as pictures, are None.

    Raises:
        InputError: the file is damaged. Documents before the damage have been yielded.
    """
    while head := file.read(4):
        try:
            (size,) = _SIZE.unpack(head)
            if not 5 <= size <= _LARGEST:
                raise ValueError(f"a document of {size} bytes")
            body = file.read(size - 4)
            if len(body) < size - 4:
                raise ValueError("it ends within a document")
            document, _ = _document(body, 0)
        except (struct.error, ValueError, IndexError, RecursionError) as error:
            raise InputError(f"{where} is not whole BSON ({error}); dump it again.") from None
        yield document


def _document(data: bytes, at: int) -> tuple[dict[str, Any], int]:
    """Returns the elements that begin at an offset, and the offset after them."""
    found: dict[str, Any] = {}
    while kind := data[at]:
        end = data.index(b"\0", at + 1)
        name = data[at + 1 : end].decode("utf-8", "replace")
        found[name], at = _value(kind, data, end + 1)
    return found, at + 1


def _value(kind: int, data: bytes, at: int) -> tuple[Any, int]:
    if plain := _PLAIN.get(kind):
        return next(iter(plain.unpack_from(data, at)), None), at + plain.size
    match kind:
        case 0x02 | 0x0D | 0x0E:  # text, code, symbol
            end = at + 4 + _size(data, at)
            return data[at + 4 : end - 1].decode("utf-8", "replace"), end
        case 0x03:
            return _document(data, at + 4)
        case 0x04:
            elements, end = _document(data, at + 4)
            return list(elements.values()), end
        case 0x05:
            return None, at + 5 + _size(data, at)
        case 0x07:
            return data[at : at + 12].hex(), at + 12
        case 0x09:
            return {"$date": struct.unpack_from("<q", data, at)[0]}, at + 8
        case 0x0B:  # a regular expression is two strings
            return None, data.index(b"\0", data.index(b"\0", at) + 1) + 1
    raise ValueError(f"a value of type {kind}")


def _size(data: bytes, at: int) -> int:
    (size,) = _SIZE.unpack_from(data, at)
    if not 0 <= size <= len(data) - at:
        raise ValueError(f"a value of {size} bytes")
    return int(size)


# Matrix

_EVENTS = rows.Layout(
    ("messages.item", "chunk.item", "item", ""), [{"type", "sender", "content", "event_id"}]
)
_BY_PEOPLE = ("m.room.message", "m.room.encrypted", "m.sticker")
_FILES = ("m.audio", "m.file", "m.image", "m.video", "m.location")
_FALLBACK = re.compile(r"\A(?:>.*\n)+\n?")
"""Matches the quoted message, a fallback for clients without replies."""
_QUOTES = "mx-reply, blockquote"


def _matrix_messages(files: Files) -> Iterator[Item]:
    for name, path in _EVENTS.places(files):
        is_room = path == _EVENTS.paths[0]
        _, room = next(rows.rows(files, name, "room_name"), (0, None)) if is_room else (0, None)
        for number, row in rows.rows(files, name, path):
            yield rows.item_of(name, number, _matrix_message, row, f"{name}:{number}", room)


def _matrix_message(row: Mapping[str, Any], place: str, room: str | None) -> Message:
    kind, content = row["type"], row["content"]
    relation = content.get("m.relates_to") or {}
    relates = relation.get("rel_type")
    thread = relation.get("event_id") if relates == "m.thread" else None
    parent = (relation.get("m.in_reply_to") or {}).get("event_id")
    if thread and relation.get("is_falling_back"):
        parent = thread
    related = (row.get("unsigned") or {}).get("m.relations") or {}
    edit = ((related.get("m.replace") or {}).get("content") or {}).get("m.new_content")
    is_notice = content.get("msgtype") == "m.notice"
    return Message(
        id=row.get("event_id") or place,
        parent=parent,
        thread=thread,
        author=row.get("sender") or "",
        time=rows.from_milliseconds(row.get("origin_server_ts")),
        text=_matrix_text(kind, edit or content, is_answer=parent is not None),
        source=room or row.get("room_id") or place.rpartition(":")[0],
        is_bot=is_notice,
        is_system=kind not in _BY_PEOPLE or relates == "m.replace",
        edited=edit is not None,
    )


def _matrix_text(kind: str, content: Mapping[str, Any], *, is_answer: bool) -> str:
    body, html = content.get("body") or "", content.get("formatted_body")
    name = content.get("filename")
    if kind == "m.sticker" or (content.get("msgtype") in _FILES and name in (None, body)):
        return ""  # the body is the name of a file, or where somebody is
    if html and content.get("format") == "org.matrix.custom.html":
        return plain_text(html, without=_QUOTES)
    return str(_FALLBACK.sub("", body) if is_answer else body).strip()


# https://spec.matrix.org/latest/client-server-api/#mroommessage
MATRIX = ExportFormat(
    "matrix",
    "Matrix (Element, JSON)",
    _EVENTS.recognises,
    lambda files: by_time(_matrix_messages(files)),
)


# Discord

_BEGINNING = re.compile(rb'\{\s*"guild":\s*\{')


def _is_discord(files: Files, name: str) -> bool:
    return _BEGINNING.match(files.head(name)) is not None


def _read_discord(files: Files) -> Iterator[Item]:
    for name in files.ending(".json"):
        if _is_discord(files, name):
            _, found = next(rows.rows(files, name, "channel"), (0, None))
            channel: dict[str, Any] = found if isinstance(found, dict) else {}
            source = str(channel.get("name") or name)
            thread = channel if "Thread" in str(channel.get("type")) else None
            for number, row in rows.rows(files, name, "messages.item"):
                yield rows.item_of(name, number, _discord_message, row, source, thread)


def _discord_message(
    row: Mapping[str, Any], source: str, thread: Mapping[str, Any] | None
) -> Message:
    author, kind = row["author"], row["type"]
    reference = row.get("reference") or {}
    answers = kind in ("Default", "Reply") and reference.get("type") != "Forward"
    return Message(
        id=row["id"],
        parent=reference.get("messageId") if answers else None,
        thread=None if thread is None else thread["id"],
        author=author.get("nickname") or author["name"],
        time=datetime.fromisoformat(row["timestamp"]).timestamp(),
        text=markdown_text(row["content"]),
        source=source,
        is_bot=bool(author.get("isBot")),
        is_system=kind not in ("Default", "Reply"),
        edited=row.get("timestampEdited") is not None,
    )


# https://github.com/Tyrrrz/DiscordChatExporter
DISCORD = ExportFormat(
    "discord",
    "Discord (DiscordChatExporter, JSON)",
    lambda files: any(_is_discord(files, name) for name in files.ending(".json")[: rows.LOOKED_AT]),
    _read_discord,
)
