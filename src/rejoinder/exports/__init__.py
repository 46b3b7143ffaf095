"""Exports of chats, mail, forums and tickets: a line below for each format, and how it is found.

What a file must have so that a program may have written it is told without importing its reader.
Each reader decides itself (`ExportFormat.recognises`); most need not be asked.
"""

import re
import warnings
from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import islice
from pathlib import Path

import msgspec

from rejoinder.errors import LeftOutWarning
from rejoinder.exports.base import ExportFormat, Item, Message
from rejoinder.exports.files import Files, opened
from rejoinder.registry import Registry

FORMATS: Registry[ExportFormat] = Registry(
    "`format`",
    {
        "slack": "rejoinder.exports.workplaces:SLACK",
        "discord": "rejoinder.exports.servers:DISCORD",
        "whatsapp": "rejoinder.exports.logs:WHATSAPP",
        "telegram": "rejoinder.exports.messengers:TELEGRAM",
        "irc": "rejoinder.exports.logs:IRC",
        "mattermost": "rejoinder.exports.servers:MATTERMOST",
        "matrix": "rejoinder.exports.servers:MATRIX",
        "zulip": "rejoinder.exports.workplaces:ZULIP",
        "rocketchat": "rejoinder.exports.servers:ROCKETCHAT",
        "teams": "rejoinder.exports.workplaces:TEAMS",
        "messenger": "rejoinder.exports.messengers:MESSENGER",
        "zendesk": "rejoinder.exports.tickets:ZENDESK",
        "mbox": "rejoinder.exports.mail:MBOX",
        "stackexchange": "rejoinder.exports.forums:STACKEXCHANGE",
        "discourse": "rejoinder.exports.forums:DISCOURSE",
        "reddit": "rejoinder.exports.boards:REDDIT",
        "convokit": "rejoinder.exports.boards:CONVOKIT",
        "hackernews": "rejoinder.exports.boards:HACKERNEWS",
        "github": "rejoinder.exports.issues:GITHUB",
        "maildir": "rejoinder.exports.mail:MAILDIR",
        "freshdesk": "rejoinder.exports.tickets:FRESHDESK",
        "intercom": "rejoinder.exports.tickets:INTERCOM",
        "jira": "rejoinder.exports.jira:JIRA",
        "redmine": "rejoinder.exports.issues:REDMINE",
        "gitlab": "rejoinder.exports.issues:GITLAB",
        "bugzilla": "rejoinder.exports.issues:BUGZILLA",
    },
)
"""Every format: its name, and its record."""


def exports_of(path: Path, most: int | None = None) -> list[ExportFormat]:
    """Returns the formats of an export by its content, none for anything else.

    Of a folder or an archive with files of several programs, each reads its own, and gives ids that
    begin with its name. `most`: see `opened`.

    Raises:
        InputError: the path can't be read.
    """
    with opened(path, most) as files:
        if _are_comments(files.first):
            return []
        asked = (FORMATS[name] for name in candidates(files, FORMATS))
        found = (one for one in asked if one.recognises(files))
        main = next(found, None)
        if main is None or len(files.names) == 1:
            return [main] if main else []
        left = dict.fromkeys(files.names)
        parts: list[ExportFormat] = []
        for other in found:
            names = [name for name in left if other.recognises(files.only([name]))]
            if names and len(names) < len(left):
                parts.append(_reading(other, names))
                left = {name: None for name in left if name not in {*names}}
            elif most is None:  # nobody reads the warnings of a server
                warnings.warn(
                    f"{path} is read as an export of {_program(main)}, without its files of "
                    f"{_program(other)}. Read each program's export on its own.",
                    LeftOutWarning,
                    stacklevel=2,
                )
        return [_reading(main, left), *parts] if parts else [main]


def format_of_export(path: Path, most: int | None = None) -> ExportFormat | None:
    """Returns the first of what `exports_of` returns, or None."""
    return next(iter(exports_of(path, most)), None)


def _reading(export: ExportFormat, names: Iterable[str]) -> ExportFormat:
    """Returns a format that reads some files of several programs."""
    some = [*names]

    def read(files: Files) -> Iterator[Item]:
        part = files.only(some)
        for item in export.read(part):
            if isinstance(item, Message):
                ids = (item.id, item.parent, item.thread)
                own, parent, thread = (one and f"{export.name}:{one}" for one in ids)
                yield msgspec.structs.replace(item, id=own, parent=parent, thread=thread)
            else:
                yield item
        files.read.update(part.top + name for name in part.read)

    return replace(export, read=read)


def _program(export: ExportFormat) -> str:
    return export.title.partition(" (")[0]


def _are_comments(head: bytes) -> bool:
    """Returns whether a file has comments of Reddit alone, which are read as they are."""
    lines = head.split(b"\n")[:-1]
    return bool(lines) and all(b'"link_id"' in line and b'"title"' not in line for line in lines)


_ENDS = 20
"""Readers that look at names alone take this many of the first; Reddit's takes the last, too."""
_TREES = re.compile(r"\.(?:json|jsonl|ndjson|csv|xml|html|zst|gz|xz|bz2)\Z", re.IGNORECASE)


_WORDS = {
    "slack": '"ts"',
    "discord": '"guild"',
    "telegram": '"messages" "chats" "left_chats" "personal_information" Exported',
    "mattermost": '"channel_id" "version" "team" "channel" "user" "bot" "post" "direct_post" '
    '"direct_channel"',
    "matrix": '"event_id"',
    "zulip": '"zerver_message"',
    "rocketchat": '"rid" "msg"',
    "teams": '"MessageType" "messageType"',
    "messenger": '"sender_name" "senderName"',
    "zendesk": '"via" "submitter_id" "public" "child_events" "events" Summation',
    "mbox": "From",
    "stackexchange": '<posts "question_id" "answer_id" "comment_id"',
    "discourse": '"post_number" "post_stream" "chunk_size"',
    "reddit": '"kind" "subreddit"',
    "convokit": '"speaker" "user"',
    "hackernews": '"by" "children" "objectID"',
    "github": '"html_url" "pull_request_url" "comments" "url" "payload"',
    "freshdesk": '"requester_id" "incoming"',
    "intercom": '"conversation_parts" "ticket_parts" "teammates" "statistics" "part_type"',
    "jira": '<rss Issue "fields" "updateAuthor" "jsdPublic" "issueId"',
    "redmine": '"tracker"',
    "gitlab": '"iid" "noteable_type" "individual_note"',
    "bugzilla": '<bugzilla "product" "bug_id"',
}
"""Of these words, the first 64 KiB of a file by the program have one."""
_NAMES = {
    "whatsapp": re.compile(r"\.txt\Z", re.IGNORECASE),
    "irc": re.compile(r"\.(?:log|txt|\w*irc\w*|weechatlog)\b|#|(?:\A|/)[^./]*\Z", re.IGNORECASE),
    "maildir": re.compile(r"(?:\A|/)(?:cur|new)/|(?:\A|/)\d|\.eml\Z", re.IGNORECASE),
}
"""What is in the name of such a file, unless it is the only one."""
_DUMP = "rocketchat_message.bson"
"""A name that suffices."""


def candidates(files: Files, names: Iterable[str]) -> list[str]:
    """Returns those of the formats that may have written the files, in their order.

    A format that is not listed above is always asked.
    """
    waiting = {name: _WORDS.get(name, "").encode().split() for name in names}
    found = {name for name in waiting if name not in _WORDS and name not in _NAMES}
    if any(_DUMP in file for file in files.names):
        found.add("rocketchat")
    for file in dict.fromkeys(_looked_at(files)):
        if len(found) == len(waiting):
            break
        head = files.head(file)
        for name, words in waiting.items():
            pattern = None if len(files.names) == 1 else _NAMES.get(name)
            fits = not words or any(word in head for word in words)
            if fits and (pattern is None or pattern.search(file)):
                found.add(name)
    return [name for name in waiting if name in found]


def _looked_at(files: Files) -> Iterator[str]:
    """Yields the files that a reader may look at to recognise an export."""
    yield from files.names[:_ENDS]
    yield from files.names[-_ENDS:]
    for pattern in _NAMES.values():
        yield from islice(filter(pattern.search, files.names), _ENDS)
    yield from filter(_TREES.search, files.names)
