"""What messages answer: as the export says, or else as is likely.

In a thread or a ticket whose messages name none, the last one by another author is answered.
Outside threads a `Linker` tells which one it is, and how sure that is.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rejoinder.conversations.collection import Collection
from rejoinder.corpus.texts import Entry
from rejoinder.links.linker import KEPT, SURE, Linker
from rejoinder.measures import Indices

_FEW = 0.25
"""Share of messages that name what they answer, below which others answer one before, too: in
trackers, comments name another one rarely, in forums two in five do."""


def with_answers(collection: Collection, linker: Linker | None = None) -> Collection:
    """Returns a collection in which messages answer others, if few say which they answer.

    What is likely has its `confidence`, from `SURE` on.
    """
    if any(collection.column("confidence")):
        return collection
    about = [dict(one) for one in collection.about]
    _in_threads(about, collection.ids, collection.answered)
    outside = [not one.get("thread") for one in about]
    if _are_few(collection.answered[outside] >= 0) and any(one.get("author") for one in about):
        entries = list(map(Entry, collection.ids, collection.texts, about))
        about = [dict(one.about) for one in filter(None, linked(entries, linker or Linker()))]
    return collection if about == [*collection.about] else replace(collection, about=about)


def linked(
    entries: Sequence[Entry], linker: Linker, *, same: Mapping[str | None, int] = {}
) -> list[Entry | None]:
    """Returns the messages of an export; those outside threads say what they likely answer.

    Args:
        entries: Messages, of which few outside threads say what they answer (`says_little`).
        linker: What tells it.
        same: How many first messages of each channel were linked before, with the same ones after
            them (see `Linker.link`). None stands for those that need not be linked again.
    """
    found: list[Entry | None] = list(entries)
    times = [one.about.get("time") for one in entries]
    rows = [row for row, one in enumerate(entries) if not one.about.get("thread")]
    rows.sort(key=lambda row: (times[row] is None, times[row] or 0.0))
    about = [dict(entries[row].about) for row in rows]
    links = linker.link(
        [entries[row].text for row in rows],
        [one.get("author") for one in about],
        [times[row] for row in rows],
        sources=[one.get("source") for one in about],
        same=same,
    )
    parents, confidence = links.parents.tolist(), links.confidence.tolist()
    for row, one, parent, sure in zip(rows, about, parents, confidence, strict=True):
        if parent >= 0 and sure >= SURE and not one.get("answers"):
            one |= {"answers": entries[rows[parent]].id or "", "confidence": round(sure, 2)}
        found[row] = None if parent == KEPT else entries[row]._replace(about=one)
    return found


def says_little(entries: Sequence[Entry]) -> bool:
    """Returns whether few messages outside threads say what they answer."""
    outside = [one.about for one in entries if not one.about.get("thread")]
    return _are_few(np.array([bool(one.get("answers")) for one in outside], np.bool_))


def untrusted(entries: Sequence[Entry]) -> list[Entry]:
    """Returns messages of which those outside threads answer none, and those in threads another."""
    about = [dict(one.about) for one in entries]
    for one in about:
        if "thread" not in one:
            one.pop("answers", None)
    _answer_in_threads(about, [one.id or "" for one in entries])
    return [one._replace(about=known) for one, known in zip(entries, about, strict=True)]


def _are_few(named: NDArray[np.bool_]) -> bool:
    return len(named) > 1 and float(named.mean()) < _FEW


def _in_threads(about: list[dict[str, Any]], ids: Sequence[str], answered: Indices) -> None:
    """Lets messages in threads answer the last one by another author, if few name another."""
    seen, later, named = set[str](), 0, 0
    for row, one in enumerate(about):
        if (thread := one.get("thread")) is not None:
            later += thread in seen
            named += thread in seen and bool(answered[row] >= 0)
            seen.add(thread)
    if named < _FEW * later:
        _answer_in_threads(about, ids)


def _answer_in_threads(about: list[dict[str, Any]], ids: Sequence[str]) -> None:
    """Lets messages in threads that answer none answer the last one by another author."""
    timed = [row for row, one in enumerate(about) if one.get("thread") and "time" in one]
    last: dict[tuple[str, str], int] = {}
    for row in sorted(timed, key=lambda row: (about[row]["time"], row)):
        one = about[row]
        place = one.get("source", ""), one["thread"]
        before = last.get(place)
        if before is not None and not one.get("answers"):
            same = about[before].get("author") == one.get("author")
            if answers := about[before].get("answers") if same else ids[before]:
                one["answers"] = answers
        last[place] = row
