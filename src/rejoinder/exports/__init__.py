"""Exports of chats, mail, forums and tickets: a line below for each format, and how it is found.

What a file must have so that a program may have written it is told without importing its reader.
Each reader decides itself (`ExportFormat.recognises`); most need not be asked.
"""

import re
import warnings
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path

from rejoinder.errors import LeftOutWarning
from rejoinder.exports.base import ExportFormat
from rejoinder.exports.files import Files, opened
from rejoinder.io.files.storage import first_names
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
        "mbox": "rejoinder.exports.mbox:MBOX",
        "stackexchange": "rejoinder.exports.forums:STACKEXCHANGE",
        "discourse": "rejoinder.exports.forums:DISCOURSE",
        "reddit": "rejoinder.exports.boards:REDDIT",
        "convokit": "rejoinder.exports.boards:CONVOKIT",
        "hackernews": "rejoinder.exports.boards:HACKERNEWS",
        "github": "rejoinder.exports.issues:GITHUB",
        "maildir": "rejoinder.exports.mbox:MAILDIR",
        "freshdesk": "rejoinder.exports.tickets:FRESHDESK",
        "intercom": "rejoinder.exports.tickets:INTERCOM",
        "jira": "rejoinder.exports.jira:JIRA",
        "redmine": "rejoinder.exports.issues:REDMINE",
        "gitlab": "rejoinder.exports.issues:GITLAB",
        "bugzilla": "rejoinder.exports.issues:BUGZILLA",
    },
)
"""Every format: its name, and its record."""


def format_of_export(path: Path, most: int | None = None) -> ExportFormat | None:
    """Returns the format of an export by its content, None for anything else.

    `most`: see `opened`.

    Raises:
        InputError: the path can't be read.
    """
    with opened(path, most) as files:
        if _are_comments(files.first):
            return None
        formats = (FORMATS[name] for name in candidates(files, FORMATS))
        return next((one for one in formats if one.recognises(files)), None)


def warn_of_others(files: Files, export: ExportFormat) -> None:
    """Warns of files that other programs exported, where an export has several files."""
    if len(files.names) == 1:
        return
    found = []
    for other in map(FORMATS.__getitem__, candidates(files, FORMATS)):
        if other is not export and other.recognises(files):
            names = [name for name in files.names if other.recognises(files.alone(name))]
            count = f"{len(names):,} " if names else ""
            kind = "file" if len(names) == 1 else "files"
            found.append(
                f"{count}{kind} of {_program(other)}{f' ({first_names(names)})' if names else ''}"
            )
    if found:
        warnings.warn(
            f"{files.path} is read as an export of {_program(export)}, without its "
            f"{' and '.join(found)}. Read each program's export on its own.",
            LeftOutWarning,
            stacklevel=2,
        )


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
