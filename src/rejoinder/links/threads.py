"""Channels whose links are known: pieces of them to learn from, and quiet chats made of these.

Links of a piece are hidden, and then found again by a `Linker`.
"""

import random
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from rejoinder.links.linker import SURE, Linker

AROUND = 300, 64
"""Messages before the first known link and after the last one that are read with them."""
SHARES, SLOWEST, LEAST = (0.04, 0.1, 0.25, 0.5), 64, 4
"""Shares of conversations of a channel that quiet chats keep, how much slower they become at most,
and the fewest messages of one."""


@dataclass(frozen=True)
class Channel:
    """Messages of a channel, or of a part of it, and what some of them answer."""

    authors: Sequence[str]
    times: Sequence[float]
    """Seconds; NaN where unknown."""
    texts: Sequence[str]
    labels: Mapping[int, Sequence[int]]
    """What some messages answer, by index; themselves where they begin a conversation."""


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
    """Returns a channel in which messages begin a conversation that a linker says do so.

    Nobody states that a message answers none: learned from replies alone, each would answer one.
    """
    found = linker.link(channel.texts, channel.authors, channel.times)
    begin = (found.parents < 0) & (found.confidence >= 0.5)
    known = {row: [row] for row in range(min(channel.labels), max(channel.labels)) if begin[row]}
    return replace(channel, labels={**known, **channel.labels})


def quiet_chats(channel: Channel, draw: random.Random) -> Iterator[Channel]:
    """Yields some conversations of a channel without the rest, slower, as a few people talk.

    There is at most one for each of `SHARES`.
    """
    labels = channel.labels
    groups: dict[int, list[int]] = {}
    for row in sorted(labels):  # what a message answers comes before it
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
    """Share of messages whose answer, or that they begin a conversation, is right."""
    precision: float
    """Share of right ones among links that are `SURE`."""
    recall: float
    """Share of links that are right and `SURE`."""


def found_again(linker: Linker | None, channels: Iterable[Channel]) -> FoundAgain:
    """Returns how well a linker, None for the message before, finds the links of channels."""
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
