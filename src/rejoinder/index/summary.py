"""What the messages of an index have in common: how many, from when to when, by whom and where."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from rejoinder.index.segment import Segment

MOST_NAMES = 1_000
"""Most authors and most channels of a summary, the busiest."""


@dataclass(frozen=True)
class Summary:
    """The texts of an index."""

    texts: int
    first: float | None
    """Seconds since 1970 in UTC of the first message; None if no text has a time."""
    last: float | None
    authors: list[tuple[str, int]]
    """The authors with most messages, and how many they wrote; at most `MOST_NAMES`."""
    sources: list[tuple[str, int]]
    """Likewise the channels."""
    threads: bool
    """Whether a message is in a thread or a channel, so that others are around it."""


def summary_of(segments: Sequence[Segment]) -> Summary:
    """Returns the summary of segments, without their deleted texts.

    Raises:
        InputError: the index is damaged.
    """
    counts: dict[str, Counter[str]] = {"author": Counter(), "source": Counter()}
    first, last, threads = np.inf, -np.inf, False
    for segment in segments:
        if (fields := segment.fields) is None:
            continue
        kept = ~segment.deleted
        for name, counter in counts.items():
            counter.update(fields.counts(name, kept))
        threads |= fields.has("thread") or fields.has("source")
        times = fields.times[kept]
        times = times[np.isfinite(times)]
        first, last = min(first, times.min(initial=np.inf)), max(last, times.max(initial=-np.inf))
    return Summary(
        sum(segment.entry.count for segment in segments),
        float(first) if np.isfinite(first) else None,
        float(last) if np.isfinite(last) else None,
        counts["author"].most_common(MOST_NAMES),
        counts["source"].most_common(MOST_NAMES),
        threads,
    )
