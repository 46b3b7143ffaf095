"""What was said before a message: the one before it in its thread, or in its channel."""

import sys
from typing import NamedTuple

from rejoinder.corpus.exports.base import Message

_LONGEST, _MOST = 1_000, 2_000
"""Messages after which a channel without pauses is cut: threads are in one split, and one is in
memory at a time. The first to begin is one that answers none, as far as there is one."""


class Position(NamedTuple):
    """Where a message stands in its conversation."""

    before: str | None
    """Id of the message before it; None where it begins a thread, or comes after a pause."""
    is_answer: bool
    """Whether the message before it is by another author."""
    thread: str
    """Its thread, or else the id of the first message of its channel since the last pause."""


class Conversations:
    """Tells where messages stand, which come in the order of time within a channel.

    A message that answers an earlier conversation does not belong to the one around it, unless it
    begins it. The last message of each thread and channel is kept, and the ids since a pause.

    >>> said = [Message(id=i, author=a, time=t, source="x", text="") for i, a, t in
    ...     [("a", "A", 0.0), ("b", "A", 5.0), ("c", "B", 9.0), ("d", "B", 999.0)]]
    >>> seen = Conversations(within=60)
    >>> [tuple(seen.place(one)) for one in said]
    [(None, False, 'a'), ('a', False, 'a'), ('b', True, 'a'), (None, False, 'd')]
    """

    def __init__(self, within: float) -> None:
        """Counts more than `within` seconds as a pause. Threads have none, and are never cut."""
        self._within = within
        self._last: dict[int, tuple[str, str, float | None, str, int]] = {}
        self._said: dict[int, set[int]] = {}
        """Hashes of the ids of each channel since its last pause, at most 2,000."""

    def place(self, message: Message) -> Position:
        """Returns where a message stands; the next one stands after it."""
        key = hash((message.source, message.thread))  # less than a pair of strings for each thread
        last = self._last.get(key)
        if last is None or (message.thread is None and self._ends(last[2], last[4], message)):
            position, count = Position(None, False, message.thread or message.id), 1
        else:
            position, count = Position(last[0], last[1] != message.author, last[3]), last[4] + 1
        if message.thread is None:
            said = self._said[key] = set() if count == 1 else self._said[key]
            if said and message.parent is not None and hash(message.parent) not in said:
                return position
            said.add(hash(message.id))
        time = None if message.thread else message.time
        self._last[key] = (message.id, sys.intern(message.author), time, position.thread, count)
        return position

    def _ends(self, before: float | None, count: int, message: Message) -> bool:
        if count == _MOST or (count >= _LONGEST and message.parent is None):
            return True
        now = message.time
        return before is not None and now is not None and abs(now - before) > self._within
