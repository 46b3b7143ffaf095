"""Defines readers of exports (`ExportFormat`) and the `Message` that all of them yield.

Also sorts messages by time, however large the export.

Also numbers millions of hashes, in a seventh of the memory of a dictionary, and finds the first
message of each thread by these numbers.
"""

import math
import re
from array import array
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

import msgspec
from msgspec import Struct
from msgspec.structs import force_setattr

from rejoinder.exports.files import Files
from rejoinder.io.files.hashed import Record
from rejoinder.io.files.storage import scratch_folder


class Malformed(Record, frozen=True):
    """A line that can't be read as a comment."""

    file: str
    line: int
    """Line number, from 1."""
    problem: str


class Message(Struct, frozen=True, kw_only=True):
    """A message of a chat, a mail, a post of a forum, a comment on a ticket."""

    id: str
    """Unique within the export, except for copies of a message. Ids that are only unique within a
    channel are prefixed with the channel."""
    text: str
    """The text as people read it: mentions by name, links by their words, no markup, no quotes."""
    parent: str | None = None
    """Id of the message that it answers; None if the export does not say."""
    thread: str | None = None
    """Id of its thread, topic or ticket; None if it has none."""
    title: str = ""
    """The subject of a mail, without "Re:" and the names of lists."""
    author: str = ""
    """Name, or the id if the export has no name; empty for a deleted user."""
    time: float | None = None
    """Seconds since 1970 in UTC; None if the export does not say."""
    source: str
    """The channel, chat, list or project."""
    link: str | None = None
    """URL of the message, if the export has one."""
    is_bot: bool = False
    is_system: bool = False
    """Whether the program wrote it: somebody joined, a call ended, a topic was closed."""
    is_private: bool = False
    """Whether the export marks it as internal: a note among agents, a restricted comment."""
    edited: bool = False

    def __post_init__(self) -> None:
        """Checks the types of the fields.

        Halves of surrogate pairs, which can't be written to files, become U+FFFD.

        Raises:
            TypeError, ValueError: a field has another type, there is no id, or the time is not
                finite.
        """
        optional = (one for one in (self.parent, self.thread, self.link) if one is not None)
        try:
            "".join((self.id, self.text, self.title, self.author, self.source, *optional)).encode()
        except UnicodeEncodeError:
            for name in _TEXTS:
                if isinstance(value := getattr(self, name), str):
                    force_setattr(self, name, _LONE.sub("\ufffd", value))
        if not self.id:
            raise ValueError("no id")
        if self.time is not None and not math.isfinite(self.time):
            raise ValueError(f"{self.time} is not a time")


def why_not(message: Message, *, include_private: bool = False) -> str | None:
    """Returns the reason to leave out a message, whatever its text; None to keep it."""
    if message.is_system:
        return "system"
    if message.is_bot:
        return "bot"
    if message.is_private and not include_private:
        return "private"
    return None if message.text.strip() else "empty"


_TEXTS = ("id", "text", "title", "author", "source", "parent", "thread", "link")
_LONE = re.compile("[\ud800-\udfff]")

Item = Message | Malformed
"""What readers yield: a message, or the place of a malformed message and its problem."""


@dataclass(frozen=True)
class ExportFormat:
    """An export format of a program, with its reader."""

    name: str
    """Its name for `--format`."""
    title: str
    recognises: Callable[[Files], bool]
    """Returns whether files are such an export, by their names and first bytes."""
    read: Callable[[Files], Iterator[Item]]
    """Yields the messages, in the order of time within a channel if the export has times.

    It raises an `InputError` for a file that can't be read at all."""
    knows_replies: bool = True
    """Whether it states the parents of most messages, so that the reader does not guess them."""
    is_public: bool = False
    """Whether its exports are public, so that no word in them is secret."""


def by_time(items: Iterable[Item], *, newest_first: bool = False) -> Iterator[Item]:
    """Yields the messages of each source by time, sources in the order of their first message.

    A message in several files (same source, time and id) is yielded once. Malformed messages come
    first, and messages without a time come last in their source. Texts wait in a temporary file;
    each message takes 32 bytes of memory. With `newest_first`, the last of several messages with
    the same time is the earliest.
    """
    import numpy as np  # not loaded by commands that read no export

    encoder, decoder = msgspec.msgpack.Encoder(), msgspec.msgpack.Decoder(Message)
    codes: dict[str, int] = {}
    sources, times, ends = array("q"), array("d"), array("q", [0])
    with scratch_folder() as folder, (folder / "messages").open("w+b") as file:
        for item in items:
            if not isinstance(item, Message):
                yield item
                continue
            sources.append(codes.setdefault(item.source, len(codes)))
            times.append(np.inf if item.time is None else item.time)
            ends.append(ends[-1] + file.write(encoder.encode(item)))
        rows = np.arange(len(times)) * (-1 if newest_first else 1)
        order = np.lexsort((rows, np.frombuffer(times), np.frombuffer(sources, np.int64)))
        del rows
        last, seen = None, set[str]()
        for row in map(int, order):
            file.seek(ends[row])
            message = decoder.decode(file.read(ends[row + 1] - ends[row]))
            if last != (sources[row], times[row]):
                last = (sources[row], times[row])
                seen.clear()
            if message.id not in seen:
                seen.add(message.id)
                yield message


def time_of(item: Item) -> float:
    """Returns the time of a message; 0 if it has none."""
    return (item.time or 0.0) if isinstance(item, Message) else 0.0


_FIRST_SLOTS = 1_024
_EMPTY = -1


class KeyNumbers:
    """Numbers distinct keys (64-bit signed integers) from 0. Each takes 14 to 24 bytes.

    >>> numbers = KeyNumbers()
    >>> [numbers.add(key) for key in (hash("a"), hash("b"), hash("a"))], numbers.find(hash("c"))
    ([0, 1, 0], -1)
    """

    def __init__(self) -> None:
        self._keys = array("q")
        self._slots = array("i", [_EMPTY]) * _FIRST_SLOTS

    def __len__(self) -> int:
        return len(self._keys)

    def find(self, key: int) -> int:
        """Returns the number of a key; -1 for an unknown key."""
        return self._slots[self._slot(key)]

    def add(self, key: int) -> int:
        """Returns the number of a key; a new one gets the next."""
        slot = self._slot(key)
        number = self._slots[slot]
        if number == _EMPTY:
            number = self._slots[slot] = len(self._keys)
            self._keys.append(key)
            if 3 * len(self._keys) > 2 * len(self._slots):
                self._grow()
        return number

    def _slot(self, key: int) -> int:
        """Returns the slot of a key, or the free slot where it would go."""
        keys, slots = self._keys, self._slots
        last = len(slots) - 1
        slot = key & last
        while (number := slots[slot]) != _EMPTY and keys[number] != key:
            slot = (slot + 1) & last
        return slot

    def _grow(self) -> None:
        self._slots = array("i", [_EMPTY]) * (2 * len(self._slots))
        for number, key in enumerate(self._keys):
            self._slots[self._slot(key)] = number


_PAGE = 1 << 12
_LARGEST_LIST = 1 << 31


class Roots:
    """Numbers of threads by numbers of messages, in four bytes each.

    >>> roots = Roots()
    >>> roots.add(8, to=7)
    >>> roots.add(9, to=8)
    >>> roots.of(9), roots.of(5)
    (7, 5)
    """

    def __init__(self) -> None:
        self._pages: dict[int, array[int]] = {}

    def add(self, number: int, to: int) -> None:
        """Adds a message that answers another."""
        root = self.of(to)
        if 0 <= number < _LARGEST_LIST and 0 < root < _LARGEST_LIST:
            page = self._pages.setdefault(number // _PAGE, array("i", bytes(4 * _PAGE)))
            page[number % _PAGE] = root

    def of(self, number: int) -> int:
        """Returns the root of a message as far as known; the message itself if it has no parent."""
        page = self._pages.get(number // _PAGE)
        return (page[number % _PAGE] if page else 0) or number
