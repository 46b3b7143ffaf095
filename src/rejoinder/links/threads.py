"""Makes training pieces and quiet chats from channels with known links, and scores a `Linker`.

`found_again` measures how many of the known links a `Linker` finds.
"""

import random
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from rejoinder.links.linker import SURE, Linker

AROUND = 300, 64
"""Numbers of messages to read before the first known link and after the last."""
SHARES, SLOWEST, LEAST = (0.04, 0.1, 0.25, 0.5), 64, 4
"""Shares of a channel's conversations that quiet chats keep, their greatest slowdown, and their
fewest messages."""


@dataclass(frozen=True)
class Channel:
    """Messages of a channel or a part of it, and what some of them answer."""

    authors: Sequence[str]
    times: Sequence[float]
    """Seconds; NaN where unknown."""
    texts: Sequence[str]
    labels: Mapping[int, Sequence[int]]
    """The messages that some messages answer, by index; themselves if they begin a conversation."""


def pieces(channel: Channel, size: int) -> Iterator[Channel]:
    """Yields parts of a channel with `size` known links each, and the messages around them."""
    known = sorted(channel.labels)
    for start in range(0, len(known), size):
        some = known[start : start + size]
        low, high = max(some[0] - AROUND[0], 0), some[-1] + 1 + AROUND[1]
        yield Channel(
            channel.authors[low:high],
            channel.times[low:high],
            channel.texts[low:high],
            {row - low: [max(one - low, 0) for one in channel.labels[row]] for row in some},
        )


def with_beginnings(channel: Channel, linker: Linker) -> Channel:
    """Returns a channel that also labels the messages that begin a conversation by a linker.

    Exports don't say that a message answers none. From replies alone, a network would learn that
    every message answers one.
    """
    found = linker.link(channel.texts, channel.authors, channel.times)
    begin = (found.parents < 0) & (found.confidence >= 0.5)
    known = {row: [row] for row in range(min(channel.labels), max(channel.labels)) if begin[row]}
    return replace(channel, labels={**known, **channel.labels})


def quiet_chats(channel: Channel, draw: random.Random) -> Iterator[Channel]:
    """Yields chats with only some conversations of a channel, slower, like chats of a few people.

    There is at most one chat for each of `SHARES`.
    """
    labels = channel.labels
    groups: dict[int, list[int]] = {}
    for row in sorted(labels):  # a message comes after the message that it answers
        first = groups.get(min(labels[row], default=row), [])
        groups[row] = first
        first.append(row)
    conversations = {id(rows): rows for rows in groups.values()}.values()
    for share in SHARES:
        slower = SLOWEST ** draw.random()
        kept = sorted(row for rows in conversations if draw.random() < share for row in rows)
        place = {row: at for at, row in enumerate(kept)}
        if len(kept) >= LEAST:
            yield Channel(
                [channel.authors[row] for row in kept],
                [channel.times[row] * slower for row in kept],
                [channel.texts[row] for row in kept],
                {
                    place[row]: [place[one] for one in labels[row] if one in place] or [place[row]]
                    for row in kept
                },
            )


@dataclass(frozen=True)
class FoundAgain:
    """How well hidden links were found."""

    messages: int
    right: float
    """Share of messages with the right answer, or rightly found to begin a conversation."""
    precision: float
    """Share of right links among links that are `SURE`."""
    recall: float
    """Share of the known links that are found and `SURE`."""


def found_again(linker: Linker | None, channels: Iterable[Channel]) -> FoundAgain:
    """Returns how well a linker finds the links of channels; None links to the previous message."""
    count = right = links = sure = good = 0
    for channel in channels:
        found = linker.link(channel.texts, channel.authors, channel.times) if linker else None
        for row, answered in channel.labels.items():
            parent = int(found.parents[row]) if found else row - 1
            is_right = (row if parent < 0 else parent) in answered
            is_sure = parent >= 0 and (found is None or bool(found.confidence[row] >= SURE))
            count, right, links = count + 1, right + is_right, links + (row not in answered)
            sure, good = sure + is_sure, good + (is_sure and is_right)
    return FoundAgain(count, right / max(count, 1), good / max(sure, 1), good / max(links, 1))
