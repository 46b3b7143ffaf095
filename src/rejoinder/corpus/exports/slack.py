"""Slack: a folder for each channel, with a file for each day."""

import html
import re
from collections.abc import Iterator, Mapping
from typing import Any

from rejoinder.corpus.exports.base import ExportFormat, Item, Message
from rejoinder.corpus.exports.files import Files
from rejoinder.corpus.manifest import Malformed

_DAY = re.compile(r"(?:(.+)/)?\d{4}-\d\d-\d\d\.json")
_USERS = ("users.json", "org_users.json")
_PRIVATE = ("groups.json", "dms.json", "mpims.json")
"""Lists of private channels and direct messages."""
_BY_PEOPLE = (None, "bot_message", "file_comment", "file_share", "me_message", "thread_broadcast")
"""Subtypes of what people and bots write; all others are written by Slack."""
_MARKUP = re.compile(r"<([@#!]?)([^<>|]*)(?:\|([^<>]*))?>")
_QUOTE = re.compile(r"^&gt;.*\n?", re.MULTILINE)


def _recognises(files: Files) -> bool:
    days = [name for name in files.names if _DAY.fullmatch(name)]
    return bool(days) and b'"ts"' in files.head(days[0])


def _read(files: Files) -> Iterator[Item]:
    people = {
        user["id"]: _name_of(user)
        for list_ in _USERS
        if list_ in files.names
        for user in files.json(list_)
        if isinstance(user, dict) and "id" in user
    }
    private = {
        channel.get(key)
        for list_ in _PRIVATE
        if list_ in files.names
        for channel in files.json(list_)
        if isinstance(channel, dict)
        for key in ("id", "name")
    }
    for name in files.names:
        if day := _DAY.fullmatch(name):
            channel = day[1] or files.path.stem
            yield from _day(files, name, channel, people, channel in private)


def _day(
    files: Files, name: str, channel: str, people: Mapping[str, str], is_private: bool
) -> Iterator[Item]:
    messages = []
    for number, row in enumerate(files.json(name), 1):
        if isinstance(row, dict) and isinstance(row.get("ts"), str) and _seconds(row["ts"]):
            messages.append(row)
        else:
            yield Malformed(name, number, "no message with a time 'ts'")
    for row in sorted(messages, key=lambda row: _seconds(row["ts"])):
        ts, thread = row["ts"], row.get("thread_ts")
        author = str(row.get("user") or row.get("username") or row.get("bot_id") or "")
        kind = row.get("subtype")
        text, is_system = str(row.get("text") or ""), kind not in _BY_PEOPLE
        if kind == "file_share" and text.startswith("<@"):
            # "@somebody uploaded a file", as Slack wrote until 2018
            comment = (row.get("file") or {}).get("initial_comment") or {}
            text, is_system = str(comment.get("comment") or ""), False
        yield Message(
            id=f"{channel}/{ts}",
            parent=f"{channel}/{thread}" if thread not in (None, ts) else None,
            thread=f"{channel}/{thread}" if thread else None,
            author=people.get(author, author),
            time=_seconds(ts),
            text=_text(text, people),
            source=channel,
            link=row.get("permalink"),
            is_bot=kind == "bot_message" or "bot_id" in row,
            is_system=is_system,
            is_private=is_private,
            edited="edited" in row,
        )


def _seconds(ts: str) -> float:
    try:
        return float(ts)
    except ValueError:
        return 0.0


def _name_of(user: Mapping[str, Any]) -> str:
    profile = user.get("profile") or {}
    names = (profile.get("display_name"), profile.get("real_name"), user.get("name"), user["id"])
    return next(str(name) for name in names if name)


def _text(text: str, people: Mapping[str, str]) -> str:
    r"""Returns a text without quotes, with names and words for marks.

    >>> _text("&gt; so?\n<@U1>: see <https://a.b|this> &amp; <#C2|help> <!here>", {"U1": "Ann"})
    '@Ann: see this & #help @here'
    """

    def shown(mark: re.Match[str]) -> str:
        kind, target, label = mark.groups()
        if kind == "@":
            return "@" + (people.get(target) or label or target)
        if kind == "#":
            return "#" + (label or target)
        if kind == "!":
            return "@" + (label or target.partition("^")[0]).removeprefix("@")
        return label or target

    return html.unescape(_MARKUP.sub(shown, _QUOTE.sub("", text))).strip()


SLACK = ExportFormat(
    "slack",
    "Slack",
    "https://slack.com/help/articles/220556107",
    _recognises,
    _read,
)
