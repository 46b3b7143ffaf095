"""Replies where exports do not say what a message answers: the one before it, as in extraction."""

from dataclasses import replace
from typing import Any

from rejoinder.api.collection import Collection

_WITHIN = 600.0
"""Most seconds between a message and its reply, as `rejoinder extract` has it."""
_FEW = 0.25
"""Share of messages in threads that name what they answer, below which the others answer the one
before: in trackers, comments name another one rarely, in forums two in five do."""


def with_adjacent(collection: Collection) -> Collection:
    """Returns a collection in which messages answer those before them, if few answer another.

    A message answers the last one by another author in its thread or ticket. Outside threads, that
    is the last one in its channel, at most ten minutes earlier, if no message answers another.
    """
    linked = collection.answered >= 0
    threads, later, named = set[str](), 0, 0
    for row, one in enumerate(collection.about):
        if (thread := one.get("thread")) is not None:
            later += thread in threads
            named += thread in threads and bool(linked[row])
            threads.add(thread)
    none_answers = not linked.any()
    if not none_answers and named >= _FEW * later:
        return collection
    about: list[dict[str, Any]] = [dict(one) for one in collection.about]
    timed = [row for row, one in enumerate(about) if one.get("author") and "time" in one]
    last: dict[tuple[str, str | None], int] = {}
    for row in sorted(timed, key=lambda row: (about[row]["time"], row)):
        one, thread = about[row], about[row].get("thread")
        before = last.get((one.get("source", ""), thread))
        is_near = before is not None and one["time"] - about[before]["time"] <= _WITHIN
        if before is not None and not linked[row] and (thread or (is_near and none_answers)):
            same = about[before]["author"] == one["author"]
            answers = about[before].get("answers") if same else collection.ids[before]
            if answers:
                one["answers"] = answers
        last[one.get("source", ""), thread] = row
    return replace(collection, about=about)
