"""Exports of chats, mail, forums and tickets: a line below for each format, and how it is found.

What a file must have so that a program may have written it is told without importing its reader.
Each reader decides itself (`ExportFormat.recognises`); most need not be asked.
"""

import re
import warnings
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
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


@dataclass(frozen=True)
class Signature:
    """What one file of an export has in its name or in its first 64 KiB."""

    words: tuple[tuple[bytes, ...], ...] = ()
    """Words of which a head has all of one row; empty: any head will do."""
    names: re.Pattern[str] = re.compile("")
    """What is in the name of that file, unless it is the only one."""
    by_name: re.Pattern[str] | None = None
    """A name that suffices, of any file."""

    def fits(self, name: str, head: bytes, *, alone: bool) -> bool:
        """Returns whether a file may be of the program."""
        named = alone or self.names.search(name)
        return bool(named) and (
            not self.words or any(all(word in head for word in row) for row in self.words)
        )


def _keys(*rows: str) -> tuple[tuple[bytes, ...], ...]:
    """Returns the keys of JSON objects, a row for each kind of object."""
    return tuple(tuple(f'"{key}"'.encode() for key in row.split()) for row in rows)


SIGNATURES = {
    "slack": Signature(_keys("ts")),
    "discord": Signature(_keys("guild")),
    "whatsapp": Signature(names=re.compile(r"\.txt\Z", re.IGNORECASE)),
    "telegram": Signature(
        (*_keys("messages", "chats", "left_chats", "personal_information"), (b"Exported Data",))
    ),
    "irc": Signature(
        names=re.compile(r"\.(?:log|txt|\w*irc\w*|weechatlog)\b|#|(?:\A|/)[^./]*\Z", re.I)
    ),
    "mattermost": Signature(
        _keys(
            "channel_id", "version type", "team type", "channel type", "user type", "bot type",
            "post type", "direct_channel type", "direct_post type",
        )
    ),
    "matrix": Signature(_keys("event_id content sender type")),
    "zulip": Signature(_keys("zerver_message")),
    "rocketchat": Signature(
        _keys("_id rid u ts", "ts username msg"), by_name=re.compile(r"rocketchat_message\.bson")
    ),
    "teams": Signature(
        _keys("Body MessageType CreatedDateTime Id", "createdDateTime body messageType id")
    ),
    "messenger": Signature(_keys("sender_name timestamp_ms", "senderName timestamp")),
    "zendesk": Signature(
        (
            *_keys(
                "submitter_id requester_id", "via requester_id", "requester via",
                "public author_id", "public audit_id", "child_events ticket_id",
                "author_id events ticket_id",
            ),
            (b"Summation column",),
        )
    ),
    "mbox": Signature(((b"From ",),)),
    "stackexchange": Signature(
        (
            (b"<posts",),
            *_keys(
                "owner creation_date question_id", "owner creation_date answer_id",
                "post_id creation_date comment_id",
            ),
        )
    ),
    "discourse": Signature(
        _keys("post_number", "post_stream", "category_id chunk_size archetype")
    ),
    "reddit": Signature(_keys("kind data", "subreddit author")),
    "convokit": Signature(_keys("speaker text", "user text")),
    "hackernews": Signature(
        _keys("id time by type", "id children author", "id children by", "objectID created_at_i")
    ),
    "github": Signature(
        _keys(
            "html_url", "pull_request_url", "comments title", "body url type", "repository url",
            "payload actor",
        )
    ),
    "maildir": Signature(((b":",),), re.compile(r"(?:\A|/)(?:cur|new)/|(?:\A|/)\d|\.eml\Z", re.I)),
    "freshdesk": Signature(
        _keys("responder_id requester_id", "description_text requester_id", "incoming private")
    ),
    "intercom": Signature(
        _keys(
            "conversation_parts", "ticket_parts ticket_attributes", "source contacts teammates",
            "source admin_assignee_id statistics", "part_type conversation_id",
        )
    ),
    "jira": Signature(
        (
            (b"<rss",),
            (b"Issue key",),
            *_keys(
                "key fields", "body updateAuthor self", "jsdPublic body", "issueId body author",
            ),
        )
    ),
    "redmine": Signature(_keys("subject tracker id", "journals tracker id")),
    "gitlab": Signature(
        _keys("iid title", "noteable_type body noteable_id", "individual_note notes")
    ),
    "bugzilla": Signature(
        ((b"<bugzilla",), *_keys("summary product creator id", "creator bug_id text is_private"))
    ),
}  # fmt: skip
"""By the names in `FORMATS`. A format without one is always asked."""


def candidates(files: Files, names: Iterable[str]) -> list[str]:
    """Returns those of the formats that may have written the files, in their order."""
    names = list(names)
    waiting = [name for name in names if name in SIGNATURES]
    found = set(names) - set(waiting)
    for name in waiting:
        by_name = SIGNATURES[name].by_name
        if by_name is not None and any(map(by_name.search, files.names)):
            found.add(name)
    waiting = [name for name in waiting if name not in found]
    alone = len(files.names) == 1
    for file in dict.fromkeys(_looked_at(files)):
        if not waiting:
            break
        head = files.head(file)
        fit = {name for name in waiting if SIGNATURES[name].fits(file, head, alone=alone)}
        found |= fit
        waiting = [name for name in waiting if name not in fit]
    return [name for name in names if name in found]


def _looked_at(files: Files) -> Iterator[str]:
    """Yields the files that a reader may look at to recognise an export."""
    yield from files.names[:_ENDS]
    yield from files.names[-_ENDS:]
    for pattern in {one.names: None for one in SIGNATURES.values() if one.names.pattern}:
        yield from islice(filter(pattern.search, files.names), _ENDS)
    yield from filter(_TREES.search, files.names)
