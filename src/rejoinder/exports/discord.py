"""Discord, as DiscordChatExporter writes it: a JSON document for each channel or part of one."""

import re
from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any

from rejoinder.exports.base import ExportFormat, Item, Message
from rejoinder.exports.files import Files
from rejoinder.exports.markup import markdown_text
from rejoinder.exports.rows import item_of, json_items, json_values

_BEGINNING = re.compile(rb'\{\s*"guild":\s*\{')
_TRIED = 20


def _recognises(files: Files) -> bool:
    return any(_BEGINNING.match(files.head(name)) for name in files.ending(".json")[:_TRIED])


def _read(files: Files) -> Iterator[Item]:
    for name in files.ending(".json"):
        if _BEGINNING.match(files.head(name)):
            yield from _channel(files, name)


def _channel(files: Files, name: str) -> Iterator[Item]:
    where = files.where(name)
    with files.open(name) as file:
        found = next(json_values(file, "channel", where), None)
    channel: dict[str, Any] = found if isinstance(found, dict) else {}
    source, is_thread = str(channel.get("name") or name), "Thread" in str(channel.get("type"))
    with files.open(name) as file:
        for number, row in enumerate(json_items(file, "messages", where), 1):
            thread = channel if is_thread else None
            yield item_of(name, number, "Discord", _message, row, source, thread)


def _message(row: Mapping[str, Any], source: str, thread: Mapping[str, Any] | None) -> Message:
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


DISCORD = ExportFormat(
    "discord",
    "Discord (DiscordChatExporter, JSON)",
    "https://github.com/Tyrrrz/DiscordChatExporter",
    _recognises,
    _read,
)
