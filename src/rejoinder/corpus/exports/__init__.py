"""Exports of chats, mail, forums and tickets: a file for each format, and a line below."""

from pathlib import Path

from rejoinder.corpus.exports.base import ExportFormat
from rejoinder.corpus.exports.files import opened
from rejoinder.registry import Registry

FORMATS: Registry[ExportFormat] = Registry(
    "`format`",
    {
        "slack": "rejoinder.corpus.exports.slack:SLACK",
        "discord": "rejoinder.corpus.exports.discord:DISCORD",
        "whatsapp": "rejoinder.corpus.exports.whatsapp:WHATSAPP",
        "telegram": "rejoinder.corpus.exports.telegram:TELEGRAM",
        "irc": "rejoinder.corpus.exports.irc:IRC",
        "mattermost": "rejoinder.corpus.exports.mattermost:MATTERMOST",
        "matrix": "rejoinder.corpus.exports.matrix:MATRIX",
        "zulip": "rejoinder.corpus.exports.zulip:ZULIP",
        "rocketchat": "rejoinder.corpus.exports.rocketchat:ROCKETCHAT",
        "teams": "rejoinder.corpus.exports.teams:TEAMS",
        "messenger": "rejoinder.corpus.exports.messenger:MESSENGER",
        "zendesk": "rejoinder.corpus.exports.zendesk:ZENDESK",
        "mbox": "rejoinder.corpus.exports.mbox:MBOX",
        "stackexchange": "rejoinder.corpus.exports.stackexchange:STACKEXCHANGE",
        "discourse": "rejoinder.corpus.exports.discourse:DISCOURSE",
        "reddit": "rejoinder.corpus.exports.reddit:REDDIT",
        "convokit": "rejoinder.corpus.exports.convokit:CONVOKIT",
        "hackernews": "rejoinder.corpus.exports.hackernews:HACKERNEWS",
        "github": "rejoinder.corpus.exports.github:GITHUB",
        "maildir": "rejoinder.corpus.exports.maildir:MAILDIR",
        "freshdesk": "rejoinder.corpus.exports.freshdesk:FRESHDESK",
        "intercom": "rejoinder.corpus.exports.intercom:INTERCOM",
        "jira": "rejoinder.corpus.exports.jira:JIRA",
        "redmine": "rejoinder.corpus.exports.redmine:REDMINE",
        "gitlab": "rejoinder.corpus.exports.gitlab:GITLAB",
        "gitter": "rejoinder.corpus.exports.gitter:GITTER",
        "bugzilla": "rejoinder.corpus.exports.bugzilla:BUGZILLA",
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
        return next((one for one in FORMATS.values() if one.recognises(files)), None)


def _are_comments(head: bytes) -> bool:
    """Returns whether a file has comments of Reddit alone, which are read as they are.

    Asking every format imports 26 of them: a fortieth of the extraction of a month.
    """
    lines = head.split(b"\n")[:-1]
    return bool(lines) and all(b'"link_id"' in line and b'"title"' not in line for line in lines)
