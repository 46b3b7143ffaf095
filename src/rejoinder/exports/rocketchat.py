"""Rocket.Chat: a dump of its database, messages from its API, or the export of a user's rooms.

BSON, the documents of a MongoDB dump (`mongodump`), one at a time.

Own code: the `bson` package comes only with the MongoDB driver.
"""

import re
import struct
from collections.abc import Iterator, Mapping
from typing import IO, Any

from rejoinder.errors import InputError
from rejoinder.exports.base import ExportFormat, Item, Message, by_time
from rejoinder.exports.files import Files
from rejoinder.exports.markup import markdown_text
from rejoinder.exports.rows import Layout, item_of, seconds

_MESSAGES = Layout(
    ("messages.item", "item", ""), ({"_id", "rid", "ts", "u"}, {"msg", "username", "ts"})
)
_ROOMS = Layout(
    ("channel", "channels.item", "group", "groups.item", "ims.item", "rooms.item", "item", ""),
    ({"_id", "t", "name"}, {"_id", "t", "usernames"}, {"_id", "t", "uids"}),
)
_USERS = Layout(("users.item", "item", ""), [{"_id", "username", "type"}])
_DUMP = re.compile(r"(?:.*/)?(rocketchat_message|rocketchat_room|users)\.bson(?:\.gz)?")
_PRIVATE = ("d", "p")
"""Types of direct and private rooms."""
_ENCRYPTED = "e2e"
_QUOTE = re.compile(r"\[\s*\]\((?>[^\s()\[\]]*?[?&]msg=)(\w++)[^\s()\[\]]*\)\s*")
"""Matches the link without words by which a message quotes another."""

_Rows = Iterator[tuple[str, int, Any]]


def _recognises(files: Files) -> bool:
    dumped = any(_dumped(name) == "rocketchat_message" for name in files.names)
    return dumped or _MESSAGES.recognises(files)


def _dumped(name: str) -> str:
    found = _DUMP.fullmatch(name)
    return found[1] if found else ""


def _all(files: Files, dumped: str, layout: Layout) -> _Rows:
    """Yields rows of a kind from all files, with the file's name and their numbers."""
    for name in files.names:
        if _dumped(name) == dumped:
            with files.open(name) as file:
                for number, row in enumerate(bson_documents(file, files.where(name)), 1):
                    yield name, number, row
    yield from (found for found in layout.rows(files) if not _dumped(found[0]))


def _messages(files: Files) -> Iterator[Item]:
    rooms: dict[str, tuple[str, bool]] = {}
    for _, _, row in _all(files, "rocketchat_room", _ROOMS):
        if isinstance(row, dict) and isinstance(row.get("_id"), str) and "rid" not in row:
            rooms[row["_id"]] = (_room_name(row), row.get("t") in _PRIVATE)
    users = _all(files, "users", _USERS)
    bots = {row.get("_id") for _, _, row in users if _is_bot(row)}
    for name, number, row in _all(files, "rocketchat_message", _MESSAGES):
        yield item_of(name, number, "Rocket.Chat", _message, row, f"{name}:{number}", rooms, bots)


def _room_name(row: Mapping[str, Any]) -> str:
    names = row.get("usernames")
    people = ", ".join(sorted(map(str, names))) if isinstance(names, list) else ""
    return str(row.get("fname") or row.get("name") or people or row["_id"])


def _is_bot(row: Any) -> bool:
    return isinstance(row, dict) and row.get("type") == "bot" and isinstance(row.get("_id"), str)


def _message(
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
        # a hidden message is what another was before it was edited
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
    return value / 1000 if isinstance(value, int | float) else seconds(value)


ROCKETCHAT = ExportFormat(
    "rocketchat",
    "Rocket.Chat (database dump, API, or a user's data)",
    "https://developer.rocket.chat/apidocs/get-channel-history",
    _recognises,
    lambda files: by_time(_messages(files)),
)


_LARGEST = 1 << 26
_SIZE = struct.Struct("<i")
_NUMBERS = {0x01: struct.Struct("<d"), 0x10: _SIZE, 0x12: struct.Struct("<q")}
_WIDTHS = {0x06: 0, 0x0A: 0, 0x11: 8, 0x13: 16, 0x7F: 0, 0xFF: 0}
"""Bytes of values that are not read: timestamps, decimals, null and such."""


def bson_documents(file: IO[bytes], where: str) -> Iterator[dict[str, Any]]:
    """Yields documents as JSON has them: dates as `{"$date": milliseconds}`, ids as digits.

    Values of other types, such as pictures, are None.

    Raises:
        InputError: the file is damaged. Documents before the fault have been yielded.
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
    """Returns the elements from a place on, and the place after them."""
    found: dict[str, Any] = {}
    while kind := data[at]:
        end = data.index(b"\0", at + 1)
        name = data[at + 1 : end].decode("utf-8", "replace")
        found[name], at = _value(kind, data, end + 1)
    return found, at + 1


def _value(kind: int, data: bytes, at: int) -> tuple[Any, int]:
    if number := _NUMBERS.get(kind):
        return number.unpack_from(data, at)[0], at + number.size
    if kind in _WIDTHS:
        return None, at + _WIDTHS[kind]
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
        case 0x08:
            return data[at] != 0, at + 1
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
