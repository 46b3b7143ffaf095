"""What a reader of exports is, and the message that all of them give."""

import math
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from msgspec import Struct
from msgspec.structs import force_setattr

from rejoinder.corpus.exports.files import Files
from rejoinder.corpus.manifest import Malformed


class Message(Struct, frozen=True, kw_only=True):
    """A message of a chat, a mail, a post of a forum, a comment on a ticket."""

    id: str
    """Unique within the export, apart from copies of a message. Ids that count within a channel
    have the channel before them."""
    text: str
    """As people read it: mentions by name, links by their words, no marks, no quotes."""
    parent: str | None = None
    """Id of the message that it answers; None where the export does not say."""
    thread: str | None = None
    """What belongs together: the id of a thread, topic or ticket; None where there is none."""
    author: str = ""
    """Name, or the id where the export has no name; empty for a deleted user."""
    time: float | None = None
    """Seconds since 1970 in UTC; None where the export does not say."""
    source: str
    """The channel, chat, list or project."""
    link: str | None = None
    """Address of the message, where the export has one."""
    is_bot: bool = False
    is_system: bool = False
    """Whether the program wrote it: somebody joined, a call ended, a topic was closed."""
    is_private: bool = False
    """Whether the export marks it as internal: a note among agents, a restricted comment."""
    edited: bool = False

    def __post_init__(self) -> None:
        """Refuses what a row of an export had instead of text.

        Halves of surrogate pairs, which no file can hold, become U+FFFD.

        Raises:
            TypeError, ValueError: a field has another type, there is no id, or the time is not
                finite.
        """
        optional = (one for one in (self.parent, self.thread, self.link) if one is not None)
        try:
            "".join((self.id, self.text, self.author, self.source, *optional)).encode()
        except UnicodeEncodeError:
            for name in _TEXTS:
                if isinstance(value := getattr(self, name), str):
                    force_setattr(self, name, _LONE.sub("\ufffd", value))
        if not self.id:
            raise ValueError("no id")
        if self.time is not None and not math.isfinite(self.time):
            raise ValueError(f"{self.time} is not a time")


_TEXTS = ("id", "text", "author", "source", "parent", "thread", "link")
_LONE = re.compile("[\ud800-\udfff]")

Item = Message | Malformed
"""What readers yield: a message, or where there is none and why."""


@dataclass(frozen=True)
class ExportFormat:
    """A program's export, and how to read it."""

    name: str
    """As `--format` names it."""
    title: str
    documented: str
    """Address of a description of the format, or of the code that writes it."""
    recognises: Callable[[Files], bool]
    """Whether files are such an export, by their names and first bytes."""
    read: Callable[[Files], Iterator[Item]]
    """Yields the messages, those of a channel in the order of time where the export has one.

    It raises an `InputError` for a file that can't be read at all."""
    knows_replies: bool = True
    """Whether it says what most messages answer, and not by a guess of the reader."""
    is_public: bool = False
    """Whether everybody can read what it exports, so that no word in it is a secret."""
