"""Reads workplace chats: Slack, Microsoft Teams and Zulip.

Slack: a folder per channel with a file per day, or pages of messages from its API. A single day is
recognised by its content. The channel of pages comes from a file that names the only channel.
`slackdump` writes a page per channel, with the replies inside the messages.

Teams: messages of channels and chats from Microsoft Graph. Keys are `replyToId`, as in Graph's
responses, or `ReplyToId`, as PowerShell writes them.

Zulip: the export of an organization, `realm.json` with files of messages.
"""

import html
import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from rejoinder.exports import rows
from rejoinder.exports.base import ExportFormat, Item, Message, by_time, time_of
from rejoinder.exports.files import Files
from rejoinder.exports.markup import markdown_text, plain_text

# Slack

_DAY = re.compile(r"(?:(.+)/)?\d{4}-\d\d-\d\d\.json")
_PAGES = rows.Layout(["messages.item"], [{"ts", "text", "type"}])
_DAYS = rows.Layout(["item"], _PAGES.keys)
_USERS = ("users.json", "org_users.json")
_PRIVATE = ("groups.json", "dms.json", "mpims.json")
"""Lists of private channels and direct messages."""
_BY_PEOPLE = (None, "bot_message", "file_comment", "file_share", "me_message", "thread_broadcast")
"""Subtypes of messages by people and bots; Slack writes all others."""
_MARKUP = re.compile(r"<([@#!]?)([^<>|]*)(?:\|([^<>]*))?>")
_QUOTE = re.compile(r"^&gt;.*\n?", re.MULTILINE)


def _recognises(files: Files) -> bool:
    days = [name for name in files.names if _DAY.fullmatch(name)]
    if days and b'"ts"' in files.head(days[0]):
        return True
    return bool(_day_alone(files)) or _PAGES.recognises(files)


def _day_alone(files: Files) -> tuple[str, ...]:
    """Returns the name of the only file, if it has a day of a channel; it may have any name."""
    is_day = len(files.names) == 1 and _DAYS.path(rows.shape(files, files.names[0]))
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
    """Yields the entries with an id from lists of people or channels."""
    for name in names:
        listed = files.json(name) if name in files.names else []
        for row in listed if isinstance(listed, list) else []:
            if isinstance(row, dict) and isinstance(row.get("id"), str):
                yield row


def _day(
    files: Files, name: str, channel: str, people: Mapping[str, str], is_private: bool
) -> Iterator[Item]:
    found = files.json(name)
    listed = enumerate(found if isinstance(found, list) else [found], 1)
    yield from sorted(
        (
            rows.item_of(name, number, _message, row, channel, people, is_private)
            for number, row in listed
        ),
        key=time_of,
    )


def _pages(files: Files, people: dict[str, str]) -> Iterator[Item]:
    pages, channels = [], []
    for name in rows.documents(files):
        if _PAGES.path(rows.shape(files, name)):
            pages.append(name)
            continue
        for path, value in rows.json_parts(files, name, ("channel", "members.item")):
            if not isinstance(value, dict) or not isinstance(value.get("id"), str):
                continue
            if path == "channel":
                channels.append(value)
            else:
                people[value["id"]] = _name_of(value)
    only = channels[0] if len(channels) == 1 else {}
    is_private = any(only.get(key) for key in ("is_private", "is_im", "is_mpim", "is_group"))
    for name in pages:
        found = dict(rows.json_parts(files, name, ("name", "channel_id")))
        named = only.get("name") or found.get("name") or found.get("channel_id")
        channel = str(named or name.rpartition("/")[2].removesuffix(".json"))
        for number, row in rows.rows(files, name, _PAGES.paths[0]):
            replies = _dict(row).get("slackdump_thread_replies")
            for one in [row, *(replies if isinstance(replies, list) else [])]:
                yield rows.item_of(name, number, _message, one, channel, people, is_private)


def _message(
    row: Mapping[str, Any], channel: str, people: Mapping[str, str], is_private: bool
) -> Message:
    ts, thread = row["ts"], row.get("thread_ts")
    author = rows.first_of(row, "user", "username", "bot_id")
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
    return rows.first_of(profile, "display_name", "real_name") or rows.first_of(user, "name", "id")


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


# https://slack.com/help/articles/220556107
SLACK = ExportFormat(
    "slack",
    "Slack",
    _recognises,
    _read,
)


# Microsoft Teams

_PATHS = ("item", "value.item", "")
_OF_GRAPH = rows.Layout(
    _PATHS,
    (
        {"Id", "Body", "CreatedDateTime", "MessageType"},
        {"id", "body", "createdDateTime", "messageType"},
    ),
    "messages_",
)
_NAMED = rows.Layout(
    _PATHS,
    ({"Id", "DisplayName"}, {"id", "displayName"}, {"GroupsId", "Name"}),
    unless=[_OF_GRAPH],
)
"""Keys of channels, people and teams."""
_EMOJI = re.compile(r'<emoji\b((?:[^<>"]|"[^"<]*")*+)>(?:</emoji>)?')
_ALT = re.compile(r'\balt="([^"]*)"')
_QUOTES = "blockquote, attachment"
_QUOTED = "messageReference"


def _graph_messages(files: Files) -> Iterator[Item]:
    names, private = dict[str, str](), set[str]()
    for _, _, row in _NAMED.rows(files):
        row = row if isinstance(row, dict) else {}
        id_, name = row.get("GroupsId") or _get(row, "Id"), _get(row, "DisplayName")
        name = name or row.get("Name")
        if isinstance(id_, str) and name:
            names[id_] = str(name)
            if _get(row, "MembershipType") == "private":
                private.add(id_)
    for name, number, row in _OF_GRAPH.rows(files):
        yield from rows.items_of(name, number, _with_replies(row, name, names, private))


def _with_replies(
    row: Any, file: str, names: Mapping[str, str], private: set[str]
) -> Iterator[rows.Part]:
    for one in [row, *rows.list_of(_get(row, "Replies"))]:
        yield _teams_message(one, file, names, private)


def _get(row: Mapping[str, Any], key: str) -> Any:
    """Returns the value of a key that may begin with a small letter."""
    return row[key] if key in row else row.get(key[0].lower() + key[1:])


def _teams_message(
    row: Mapping[str, Any], file: str, names: Mapping[str, str], private: set[str]
) -> Message:
    kind = _get(row, "MessageType")
    if kind is None:
        raise KeyError("messageType")
    channel, chat = _get(row, "ChannelIdentity") or {}, _get(row, "ChatId")
    place = _get(channel, "ChannelId") or chat or ""
    team = _get(channel, "TeamId") or ""
    of = (names.get(team, ""), names.get(place, place))
    sender = _get(row, "From") or {}
    user, program = _get(sender, "User") or {}, _get(sender, "Application")
    person = user or program or {}
    key = _get(person, "Id") or ""
    answered = _get(row, "ReplyToId") or _quoted(row)
    root = _get(row, "ReplyToId") if place and not chat else None
    id_ = rows.id_of(row, "Id" if "Id" in row else "id")
    return Message(
        id=f"{place}/{id_}",
        parent=f"{place}/{answered}" if answered else None,
        thread=f"{place}/{root or id_}" if not chat else None,
        author=str(_get(person, "DisplayName") or names.get(key, key)),
        time=rows.seconds(_get(row, "CreatedDateTime")),
        text="" if _get(row, "DeletedDateTime") else _teams_text(row),
        source="/".join(filter(None, of)) or file,
        link=_get(row, "WebUrl"),
        is_bot=not user and bool(program),
        is_system=kind != "message",
        is_private=bool(chat) or place in private,
        edited=_get(row, "LastEditedDateTime") is not None,
    )


def _quoted(row: Mapping[str, Any]) -> str | None:
    """Returns the id of the message that a chat message quotes."""
    for attachment in rows.list_of(_get(row, "Attachments")):
        if _get(attachment, "ContentType") == _QUOTED:
            content = json.loads(_get(attachment, "Content") or "{}")
            return str(content.get("messageId") or _get(attachment, "Id") or "") or None
    return None


def _emoji(tag: re.Match[str]) -> str:
    alt = _ALT.search(tag[1])
    return alt[1] if alt else tag[0]


def _teams_text(row: Mapping[str, Any]) -> str:
    body = _get(row, "Body") or {}
    content, subject = _get(body, "Content") or "", _get(row, "Subject") or ""
    if _get(body, "ContentType") != "text":
        content = plain_text(_EMOJI.sub(_emoji, content), without=_QUOTES)
    return f"{subject}\n{content}".strip()


# https://learn.microsoft.com/en-us/graph/api/resources/chatmessage
TEAMS = ExportFormat(
    "teams",
    "Microsoft Teams (Microsoft Graph)",
    _OF_GRAPH.recognises,
    # which leaves out that others in a chat have it, too
    lambda files: by_time(_graph_messages(files)),
)


# Zulip

_ZULIP_MESSAGES = rows.Layout(
    ["zerver_message.item"], [{"id", "sender", "recipient", "content"}], "messages-"
)
_SYSTEM = "zerver_userprofile_crossrealm.item"
"""Zulip's system bots, which announce that a topic was moved."""
_ZULIP_USERS = ("zerver_userprofile.item", "zerver_userprofile_mirrordummy.item", _SYSTEM)
_STREAM, _RECIPIENT = "zerver_stream.item", "zerver_recipient.item"
_PERSON, _CHANNEL = 1, 2
"""Types of recipients; others are groups of people."""
_ANSWERS = re.compile(r"\A@_\*\*[^*\n]+\*\* \[[^\]\n]*\]\([^\s)]*/near/(\d+)\)[^\n]*\n")
"""Matches the text that "quote and reply" inserts before the quote."""
_ZULIP_QUOTE = re.compile(r"(`{3,}|~{3,})[ \t]*quote[ \t]*")
"""Matches the line above a quote, which ends with a line of the same signs."""
_MENTION = re.compile(r"([@#])_?\*{1,2}([^*|\n]+)(?:\|\d+)?\*{1,2}")
_COMMAND = re.compile(r"\A/(?:me|poll|todo)\s")


class _Realm:
    """The people and channels of an organization."""

    def __init__(self, files: Files) -> None:
        self._people: dict[Any, str] = {}
        self._bots: set[Any] = set()
        self._system: set[Any] = set()
        self._channels: dict[Any, Mapping[str, Any]] = {}
        self._recipients: dict[Any, tuple[Any, Any]] = {}
        paths = {*_ZULIP_USERS, _STREAM, _RECIPIENT}
        for name in files.names:
            if name.rpartition("/")[2] == "realm.json":
                for path, row in rows.json_parts(files, name, paths):
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
            id=rows.id_of(row),
            parent=answers[1] if answers else None,
            thread=None if is_direct else f"{source}/{row.get('subject') or ''}",
            author=self._people.get(sender, str(sender)),
            time=rows.seconds(row.get("date_sent", row.get("pub_date"))),
            text=_zulip_text(content),
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


def _zulip_text(content: str) -> str:
    r"""Returns a text without markup and quotes.

    >>> said = "@_**Ann|8** [said](https://z.org/#narrow/near/3):\n```quote\nWhy?\n```\n"
    >>> _zulip_text(said + "@**Ann|8**, see #**help** and **this**")
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
        elif (begin := _ZULIP_QUOTE.fullmatch(line)) and last.get(begin[1], 0) > number:
            end = begin[1]
        else:
            kept.append(line)
    return "\n".join(kept)


# https://zulip.com/help/export-your-organization
ZULIP = ExportFormat(
    "zulip",
    "Zulip (export of an organization)",
    _ZULIP_MESSAGES.recognises,
    lambda files: by_time(_ZULIP_MESSAGES.messages(files, _Realm(files).message)),
)
