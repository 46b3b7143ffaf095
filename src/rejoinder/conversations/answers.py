"""Works out which message each message answers: as the export states it, or the likeliest one.

In a thread or ticket that states no answers, a message answers the last one by another author.
Outside threads, a `Linker` chooses the answered message and its confidence.
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
"""Share of messages that name what they answer; below it, messages that name none get an answer,
too: comments in trackers rarely name another, in forums two in five do."""


def with_answers(collection: Collection, linker: Linker | None = None) -> Collection:
    """Returns the collection, with likely answers added if few messages say what they answer.

    A likely answer has a `confidence` of at least `SURE`.
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
    """Returns the messages of an export, with likely answers for those outside threads.

    Args:
        entries: Messages; few of those outside threads say what they answer (`says_little`).
        linker: Chooses the likely answers.
        same: How many of the first messages of each channel were linked before and are unchanged
            (see `Linker.link`). In the result, None stands for messages that need no new link.
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
    """Returns messages with answers worked out in threads, and without stated ones outside them."""
    about = [dict(one.about) for one in entries]
    for one in about:
        if "thread" not in one:
            one.pop("answers", None)
    _answer_in_threads(about, [one.id or "" for one in entries])
    return [one._replace(about=known) for one, known in zip(entries, about, strict=True)]


def _are_few(named: NDArray[np.bool_]) -> bool:
    return len(named) > 1 and float(named.mean()) < _FEW


def _in_threads(about: list[dict[str, Any]], ids: Sequence[str], answered: Indices) -> None:
    """Links messages in threads to the last one by another author, if few name another."""
    seen, later, named = set[str](), 0, 0
    for row, one in enumerate(about):
        if (thread := one.get("thread")) is not None:
            later += thread in seen
            named += thread in seen and bool(answered[row] >= 0)
            seen.add(thread)
    if named < _FEW * later:
        _answer_in_threads(about, ids)


def _answer_in_threads(about: list[dict[str, Any]], ids: Sequence[str]) -> None:
    """Links messages in threads that answer none to the last one by another author."""
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
