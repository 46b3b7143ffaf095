"""What a reader of exports is, and the message that all of them give.

Messages in the order of time, however large the export.

Numbers for millions of hashes, in a seventh of the memory that a dictionary takes, and the first
message of each thread, by their numbers.
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
    """A line that is not a comment."""

    file: str
    line: int
    """Line number, from 1."""
    problem: str


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
    title: str = ""
    """The subject of a mail, without "Re:" and the names of lists."""
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
    """Returns the reason for which a message is left out whatever it says, None for none."""
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
"""What readers yield: a message, or where there is none and why."""


@dataclass(frozen=True)
class ExportFormat:
    """A program's export, and how to read it."""

    name: str
    """As `--format` names it."""
    title: str
    recognises: Callable[[Files], bool]
    """Whether files are such an export, by their names and first bytes."""
    read: Callable[[Files], Iterator[Item]]
    """Yields the messages, those of a channel in the order of time where the export has one.

    It raises an `InputError` for a file that can't be read at all."""
    knows_replies: bool = True
    """Whether it says what most messages answer, and not by a guess of the reader."""
    is_public: bool = False
    """Whether everybody can read what it exports, so that no word in it is a secret."""


def by_time(items: Iterable[Item], *, newest_first: bool = False) -> Iterator[Item]:
    """Yields the messages of each source by time, sources in the order of their first message.

    A message that several files have is given once: same source, time and id. Malformed ones come
    first, and messages without a time after the others of their source. Texts wait in a temporary
    file; 32 bytes for each message are in memory. `newest_first` says that of messages of the same
    time, the last is the earliest.
    """
    import numpy as np  # which commands that read no export do not load

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
    """Returns the time of a message; 0 where there is none."""
    return (item.time or 0.0) if isinstance(item, Message) else 0.0


_FIRST_SLOTS = 1_024
_EMPTY = -1


class KeyNumbers:
    """Numbers different keys, 64-bit signed integers, from 0 on. Each takes 14 to 24 bytes.

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
        """Returns the number of a key; -1 for one that has none."""
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
        """Returns where the number of a key is, or would go: the first free place from its own."""
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
        """Returns the root of a message, as far as it is known: itself, if nothing is."""
        page = self._pages.get(number // _PAGE)
        return (page[number % _PAGE] if page else 0) or number
