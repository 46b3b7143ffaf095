"""Exports of chats, mail, forums and tickets: a file for each format, and a line below."""

import warnings
from pathlib import Path

from rejoinder.errors import LeftOutWarning
from rejoinder.exports.base import ExportFormat
from rejoinder.exports.files import Files, opened
from rejoinder.exports.signatures import candidates
from rejoinder.io.files.storage import first_names
from rejoinder.registry import Registry

FORMATS: Registry[ExportFormat] = Registry(
    "`format`",
    {
        "slack": "rejoinder.exports.slack:SLACK",
        "discord": "rejoinder.exports.discord:DISCORD",
        "whatsapp": "rejoinder.exports.whatsapp:WHATSAPP",
        "telegram": "rejoinder.exports.telegram:TELEGRAM",
        "irc": "rejoinder.exports.irc:IRC",
        "mattermost": "rejoinder.exports.mattermost:MATTERMOST",
        "matrix": "rejoinder.exports.matrix:MATRIX",
        "zulip": "rejoinder.exports.zulip:ZULIP",
        "rocketchat": "rejoinder.exports.rocketchat:ROCKETCHAT",
        "teams": "rejoinder.exports.teams:TEAMS",
        "messenger": "rejoinder.exports.messenger:MESSENGER",
        "zendesk": "rejoinder.exports.tickets:ZENDESK",
        "mbox": "rejoinder.exports.mbox:MBOX",
        "stackexchange": "rejoinder.exports.stackexchange:STACKEXCHANGE",
        "discourse": "rejoinder.exports.discourse:DISCOURSE",
        "reddit": "rejoinder.exports.reddit:REDDIT",
        "convokit": "rejoinder.exports.convokit:CONVOKIT",
        "hackernews": "rejoinder.exports.hackernews:HACKERNEWS",
        "github": "rejoinder.exports.github:GITHUB",
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
