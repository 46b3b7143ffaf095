"""Lists the export formats of chats, mail, forums and tickets, and recognises them.

Signs of each format are listed here, so that most formats are ruled out without importing their
readers. The readers of the remaining formats decide (`ExportFormat.recognises`).
"""

import os
import re
import warnings
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path

import msgspec

from rejoinder.errors import LeftOutWarning
from rejoinder.exports.base import ExportFormat, Item, Message
from rejoinder.exports.files import Files, opened
from rejoinder.registry import Registry

READERS: dict[str, tuple[str, str | re.Pattern[bytes]]] = {
    "slack": ("workplaces:SLACK", '"ts"'),
    "discord": ("servers:DISCORD", '"guild"'),
    "whatsapp": ("logs:WHATSAPP", re.compile(rb"\.txt\n|\A[^.\n]*\n", re.IGNORECASE)),
    "telegram": (
        "messengers:TELEGRAM",
        '"messages" "chats" "left_chats" "personal_information" Exported',
    ),
    "irc": (
        "logs:IRC",
        re.compile(
            rb"\.(?:log|txt|\w*irc|weechatlog)(?:\.\w+)?\n|\A[^\n]*#|(?:\A|/)[^./\n]*\n",
            re.IGNORECASE,
        ),
    ),
    "mattermost": ("servers:MATTERMOST", re.compile(rb'\n\{\s*"(?:type|order|posts)":')),
    "matrix": ("servers:MATRIX", '"event_id"'),
    "zulip": ("workplaces:ZULIP", '"zerver_message"'),
    "rocketchat": ("servers:ROCKETCHAT", '"rid" "msg" rocketchat_message.bson'),
    "teams": ("workplaces:TEAMS", '"MessageType" "messageType"'),
    "messenger": ("messengers:MESSENGER", '"sender_name" "senderName"'),
    "zendesk": (
        "tickets:ZENDESK",
        '"via" "submitter_id" "public" "child_events" "events" Summation',
    ),
    "mbox": ("mail:MBOX", re.compile(rb"\nFrom ")),
    "stackexchange": ("forums:STACKEXCHANGE", '<posts "question_id" "answer_id" "comment_id"'),
    "discourse": ("forums:DISCOURSE", '"post_number" "post_stream" "chunk_size"'),
    "reddit": ("boards:REDDIT", '"kind" "selftext" "num_comments"'),
    "convokit": ("boards:CONVOKIT", '"conversation_id" "root"'),
    "hackernews": ("boards:HACKERNEWS", '"by" "children" "objectID"'),
    "github": ("issues:GITHUB", '"html_url" "pull_request_url" "comments" "url" "payload"'),
    "maildir": (
        "mail:MAILDIR",
        re.compile(
            rb"(?:cur|new)/[^/\n]+\n|(?:\A|/)(?:\d{9,10}\.[^/\n]+|\d+\.?|[^/\n]+\.eml)\n"
            rb'|\A[^\n]*\n[^\s"\[{:]+:',
            re.IGNORECASE,
        ),
    ),
    "freshdesk": ("tickets:FRESHDESK", '"requester_id" "incoming"'),
    "intercom": (
        "tickets:INTERCOM",
        '"conversation_parts" "ticket_parts" "teammates" "statistics" "part_type"',
    ),
    "jira": ("jira:JIRA", '<rss Issue "fields" "updateAuthor" "jsdPublic" "issueId"'),
    "redmine": ("issues:REDMINE", '"tracker"'),
    "gitlab": ("issues:GITLAB", '"iid" "noteable_type" "individual_note"'),
    "bugzilla": ("issues:BUGZILLA", '<bugzilla "product" "bug_id"'),
}
"""For each format: the place of its record, and words; the name or first 64 KiB of a file has one
of them. Or a part of a file name, a line end, and the first characters of the content."""
FORMATS: Registry[ExportFormat] = Registry(
    "`format`", {name: f"rejoinder.exports.{record}" for name, (record, _) in READERS.items()}
)
"""Every format by name, with its record."""


def exports_of(path: Path, most: int | None = None) -> list[ExportFormat]:
    """Returns the formats of an export, recognised by content; empty if it is not an export.

    If a folder or archive has files of several programs, each format reads its own files, and its
    ids begin with its name. `most`: see `opened`.

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
            elif most is None:  # a server's warnings would go unread
                warnings.warn(
                    f"{path} is read as an export of {_program(main)}, without its files of "
                    f"{_program(other)}. Read the export of each program separately.",
                    LeftOutWarning,
                    stacklevel=2,
                )
        return [_reading(main, left), *parts] if parts else [main]


def format_of_export(path: Path, most: int | None = None) -> ExportFormat | None:
    """Returns the first format of `exports_of`, or None."""
    return next(iter(exports_of(path, most)), None)


def _reading(export: ExportFormat, names: Iterable[str]) -> ExportFormat:
    """Returns a format that only reads the files with these names."""
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
    """Returns whether a file has only Reddit comments, which extraction reads directly."""
    lines = head.split(b"\n")[:-1]
    return bool(lines) and all(b'"link_id"' in line and b'"title"' not in line for line in lines)


_FEW = 1_000
"""Most files to check against `READERS`. With more files, trying all formats is faster."""
_BEGINNING = 100


def candidates(files: Files, names: Iterable[str]) -> list[str]:
    """Returns the formats that may match the files, in their order.

    A format that is not listed above is always included.
    """
    asked = [*names]
    if len(files.names) > _FEW:
        return asked
    signs_of = {name: READERS[name][1] for name in asked if name in READERS}
    left = {
        name: signs.encode().split() if isinstance(signs, str) else signs
        for name, signs in signs_of.items()
    }
    for file in files.names:
        content = b"\n".join((os.fsencode(file), files.head(file).lstrip()))
        left = {name: signs for name, signs in left.items() if not _has(content, signs)}
    return [name for name in asked if name not in left]


def _has(content: bytes, signs: list[bytes] | re.Pattern[bytes]) -> bool:
    if isinstance(signs, list):
        return any(word in content for word in signs)
    return signs.search(content, 0, content.index(b"\n") + _BEGINNING) is not None
