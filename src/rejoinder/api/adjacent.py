"""Replies in chats that do not say what a message answers: the one before it, as in extraction."""

from dataclasses import replace
from typing import Any

from rejoinder.api.collection import Collection

_WITHIN = 600.0
"""Most seconds between a message and its reply, as `rejoinder extract` has it."""


def with_adjacent(collection: Collection) -> Collection:
    """Returns a collection in which messages answer those before them, if none answers another.

    A message answers the last one by another author in its channel, at most ten minutes earlier.
    """
    if (collection.answered >= 0).any():
        return collection
    about: list[dict[str, Any]] = [dict(one) for one in collection.about]
    timed = [row for row, one in enumerate(about) if one.get("author") and "time" in one]
    last: dict[str, int] = {}
    for row in sorted(timed, key=lambda row: (about[row]["time"], row)):
        one, before = about[row], last.get(about[row].get("source", ""))
        if before is not None and one["time"] - about[before]["time"] <= _WITHIN:
            same = about[before]["author"] == one["author"]
            answers = about[before].get("answers") if same else collection.ids[before]
            if answers:
                one["answers"] = answers
        last[one.get("source", "")] = row
    return replace(collection, about=about)
