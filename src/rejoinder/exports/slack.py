"""Slack: a folder for each channel, with a file for each day; or pages of messages from its API.

A day alone is known by its content. Of pages, a file with the name of the only channel tells which
one it is. `slackdump` writes a page for each channel, with the replies within the messages.
"""

import html
import re
from collections.abc import Iterator, Mapping
from typing import Any

from rejoinder.exports.base import ExportFormat, Item, Message, by_time
from rejoinder.exports.files import Files
from rejoinder.exports.rows import (
    Layout,
    documents,
    first_of,
    item_of,
    json_parts,
    path_of,
    rows,
    shape,
)

_DAY = re.compile(r"(?:(.+)/)?\d{4}-\d\d-\d\d\.json")
_PAGES = Layout(["messages.item"], [{"ts", "text", "type"}])
_USERS = ("users.json", "org_users.json")
_PRIVATE = ("groups.json", "dms.json", "mpims.json")
"""Lists of private channels and direct messages."""
_BY_PEOPLE = (None, "bot_message", "file_comment", "file_share", "me_message", "thread_broadcast")
"""Subtypes of what people and bots write; all others are written by Slack."""
_MARKUP = re.compile(r"<([@#!]?)([^<>|]*)(?:\|([^<>]*))?>")
_QUOTE = re.compile(r"^&gt;.*\n?", re.MULTILINE)


def _recognises(files: Files) -> bool:
    days = [name for name in files.names if _DAY.fullmatch(name)]
    if days and b'"ts"' in files.head(days[0]):
        return True
    return bool(_day_alone(files)) or _PAGES.recognises(files)


def _day_alone(files: Files) -> tuple[str, ...]:
    """Returns the name of the only file, if it has a day of a channel, whatever it is called."""
    is_day = len(files.names) == 1 and path_of(shape(files, files.names[0]), ["item"], *_PAGES.keys)
    return files.names if is_day else ()


def _read(files: Files) -> Iterator[Item]:
    people = {user["id"]: _name_of(user) for user in _listed(files, _USERS)}
    channels = list(_listed(files, _PRIVATE))
    private = {str(channel.get(key)) for channel in channels for key in ("id", "name")}
    days = [name for name in files.names if _DAY.fullmatch(name)] or _day_alone(files)
    for name in days:
        channel = name.rpartition("/")[0] or files.path.stem
        yield from _day(files, name, channel, people, channel in private)
    if not days:
        yield from by_time(_pages(files, people))


def _listed(files: Files, names: tuple[str, ...]) -> Iterator[Mapping[str, Any]]:
    """Yields what lists of people or channels have that has an id."""
    for name in names:
        listed = files.json(name) if name in files.names else []
        for row in listed if isinstance(listed, list) else []:
            if isinstance(row, dict) and isinstance(row.get("id"), str):
                yield row


def _day(
    files: Files, name: str, channel: str, people: Mapping[str, str], is_private: bool
) -> Iterator[Item]:
    found = files.json(name)
    items = [
        item_of(name, number, "Slack", _message, row, channel, people, is_private)
        for number, row in enumerate(found if isinstance(found, list) else [found], 1)
    ]
    yield from (item for item in items if not isinstance(item, Message))
    messages = (item for item in items if isinstance(item, Message))
    yield from sorted(messages, key=lambda message: message.time or 0.0)


def _pages(files: Files, people: dict[str, str]) -> Iterator[Item]:
    pages, channels = [], []
    for name in documents(files):
        if _PAGES.path(shape(files, name)):
            pages.append(name)
            continue
        with files.open(name) as file:
            for path, value in json_parts(file, ("channel", "members.item"), files.where(name)):
                if not isinstance(value, dict) or not isinstance(value.get("id"), str):
                    continue
                if path == "channel":
                    channels.append(value)
                else:
                    people[value["id"]] = _name_of(value)
    only = channels[0] if len(channels) == 1 else {}
    is_private = any(only.get(key) for key in ("is_private", "is_im", "is_mpim", "is_group"))
    for name in pages:
        with files.open(name) as file:
            found = dict(json_parts(file, ("name", "channel_id"), files.where(name)))
        named = only.get("name") or found.get("name") or found.get("channel_id")
        channel = str(named or name.rpartition("/")[2].removesuffix(".json"))
        for number, row in rows(files, name, _PAGES.paths[0]):
            replies = _dict(row).get("slackdump_thread_replies")
            for one in [row, *(replies if isinstance(replies, list) else [])]:
                yield item_of(name, number, "Slack", _message, one, channel, people, is_private)


def _message(
    row: Mapping[str, Any], channel: str, people: Mapping[str, str], is_private: bool
) -> Message:
    ts, thread = row["ts"], row.get("thread_ts")
    author = first_of(row, "user", "username", "bot_id")
    kind = row.get("subtype")
    text, is_system = str(row.get("text") or ""), kind not in _BY_PEOPLE
    if kind == "file_share" and text.startswith("<@"):
        # "@somebody uploaded a file", as Slack wrote until 2018
        comment = _dict(_dict(row.get("file")).get("initial_comment"))
        text, is_system = str(comment.get("comment") or ""), False
    elif kind == "file_comment" and (comment := _dict(row.get("comment"))):
        author, text = str(comment.get("user") or author), str(comment.get("comment") or "")
    return Message(
        id=f"{channel}/{ts}",
        parent=f"{channel}/{thread}" if thread not in (None, ts) else None,
        thread=f"{channel}/{thread}" if thread else None,
        author=people.get(author, author),
        time=float(ts),
        text=_text(text, people),
        source=channel,
        link=row.get("permalink"),
        is_bot=kind == "bot_message" or "bot_id" in row,
        is_system=is_system,
        is_private=is_private,
        edited="edited" in row,
    )


def _dict(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _name_of(user: Mapping[str, Any]) -> str:
    profile = _dict(user.get("profile"))
    return first_of(profile, "display_name", "real_name") or first_of(user, "name", "id")


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
