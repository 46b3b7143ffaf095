"""Zulip: the export of an organization, `realm.json` with files of messages."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from rejoinder.exports.base import ExportFormat, Item, Message, by_time
from rejoinder.exports.files import Files
from rejoinder.exports.markup import markdown_text
from rejoinder.exports.rows import Layout, id_of, item_of, json_parts, seconds

_MESSAGES = Layout(["zerver_message.item"], [{"id", "sender", "recipient", "content"}], "messages-")
_SYSTEM = "zerver_userprofile_crossrealm.item"
"""Bots of Zulip itself, which tell that a topic was moved."""
_USERS = ("zerver_userprofile.item", "zerver_userprofile_mirrordummy.item", _SYSTEM)
_STREAM, _RECIPIENT = "zerver_stream.item", "zerver_recipient.item"
_PERSON, _CHANNEL = 1, 2
"""Types of recipients; others are groups of people."""
_ANSWERS = re.compile(r"\A@_\*\*[^*\n]+\*\* \[[^\]\n]*\]\([^\s)]*/near/(\d+)\)[^\n]*\n")
"""Matches what "quote and reply" writes before the quote."""
_QUOTE = re.compile(r"(`{3,}|~{3,})[ \t]*quote[ \t]*")
"""Matches the line above a quote, which ends with a line of the same signs."""
_MENTION = re.compile(r"([@#])_?\*{1,2}([^*|\n]+)(?:\|\d+)?\*{1,2}")
_COMMAND = re.compile(r"\A/(?:me|poll|todo)\s")


def _messages(files: Files) -> Iterator[Item]:
    realm = _Realm(files)
    for name, number, row in _MESSAGES.rows(files):
        yield item_of(name, number, "Zulip", realm.message, row)


class _Realm:
    """The people and channels of an organization."""

    def __init__(self, files: Files) -> None:
        self._people: dict[Any, str] = {}
        self._bots: set[Any] = set()
        self._system: set[Any] = set()
        self._channels: dict[Any, Mapping[str, Any]] = {}
        self._recipients: dict[Any, tuple[Any, Any]] = {}
        paths = {*_USERS, _STREAM, _RECIPIENT}
        for name in files.names:
            if name.rpartition("/")[2] == "realm.json":
                with files.open(name) as file:
                    for path, row in json_parts(file, paths, files.where(name)):
                        if isinstance(row, dict) and isinstance(row.get("id"), int):
                            self._add(path, row)

    def _add(self, path: str, row: Mapping[str, Any]) -> None:
        id_ = row["id"]
        if path == _STREAM:
            self._channels[id_] = {key: row.get(key) for key in ("name", "invite_only")}
        elif path == _RECIPIENT:
            self._recipients[id_] = (row.get("type"), row.get("type_id"))
        else:
            self._people[id_] = str(row.get("full_name") or row.get("email") or id_)
            if row.get("is_bot"):
                self._bots.add(id_)
            if path == _SYSTEM:
                self._system.add(id_)

    def message(self, row: Mapping[str, Any]) -> Message:
        """Returns the message of a row."""
        sender, content = row["sender"], row["content"]
        kind, place = self._recipients.get(row["recipient"], (None, None))
        channel = self._channels.get(place, {}) if kind == _CHANNEL else {}
        source = self._source(row, kind, place)
        answers = _ANSWERS.match(content)
        is_direct = kind is not None and kind != _CHANNEL
        return Message(
            id=id_of(row),
            parent=answers[1] if answers else None,
            thread=None if is_direct else f"{source}/{row.get('subject') or ''}",
            author=self._people.get(sender, str(sender)),
            time=seconds(row.get("date_sent", row.get("pub_date"))),
            text=_text(content),
            source=source,
            is_bot=sender in self._bots,
            is_system=sender in self._system,
            is_private=is_direct or bool(channel.get("invite_only")),
            edited=bool(row.get("last_edit_time") and row.get("edit_history") != "[]"),
        )

    def _source(self, row: Mapping[str, Any], kind: Any, place: Any) -> str:
        if kind == _CHANNEL and place in self._channels:
            return str(self._channels[place]["name"])
        if kind == _PERSON:
            pair = {self._people.get(one, str(one)) for one in (row["sender"], place)}
            return ", ".join(sorted(pair))
        return f"recipient {row['recipient']}"


def _text(content: str) -> str:
    r"""Returns a text without marks and quotes.

    >>> said = "@_**Ann|8** [said](https://z.org/#narrow/near/3):\n```quote\nWhy?\n```\n"
    >>> _text(said + "@**Ann|8**, see #**help** and **this**")
    '@Ann, see #help and this'
    """
    text = _unquoted(_COMMAND.sub("", _ANSWERS.sub("", content)))
    return markdown_text(_MENTION.sub(r"\1\2", text))


def _unquoted(text: str) -> str:
    lines = [line.rstrip(" \t") for line in text.split("\n")]
    last = {line: number for number, line in enumerate(lines)}
    kept, end = list[str](), ""
    for number, line in enumerate(text.split("\n")):
        if end:
            end = "" if lines[number] == end else end
        elif (begin := _QUOTE.fullmatch(line)) and last.get(begin[1], 0) > number:
            end = begin[1]
        else:
            kept.append(line)
    return "\n".join(kept)


ZULIP = ExportFormat(
    "zulip",
    "Zulip (export of an organization)",
    "https://zulip.com/help/export-your-organization",
    _MESSAGES.recognises,
    lambda files: by_time(_messages(files)),
)
