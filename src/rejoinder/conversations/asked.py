"""Questions that were asked again and again, each with the replies that it got.

Records of questions that were asked again and again.
"""

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from rejoinder.conversations.collection import Collection
from rejoinder.conversations.duplicates import Duplicates


@dataclass(frozen=True)
class Reply:
    """Replies that say nearly the same."""

    id: str
    """Of the first of them."""
    text: str
    author: str | None
    time: float | None
    """Seconds since 1970 in UTC."""
    count: int
    """How often it was said."""


@dataclass(frozen=True)
class Asked:
    """Messages that ask the same."""

    id: str
    """Of the message that stands for them."""
    text: str
    count: int
    authors: int
    """Number of different authors; 0 if none is known."""
    first: float | None
    """Seconds since 1970 in UTC of the first and the last of them; None if they have no time."""
    last: float | None
    ways: list[str]
    """Other ways in which it was asked, without greetings; the most frequent first."""
    ids: list[str]
    """Ids of the messages, at most 50."""
    replies: list[Reply]
    """What was replied, the most frequent first; at most 8."""
    replied: int
    """Number of all replies."""
    begins: bool
    """Whether they begin conversations. If not, each answers a message, or all but one do."""


MOST = 500
"""Most questions that are returned."""
_MOST_WAYS, _MOST_REPLIES, _MOST_IDS = 6, 8, 50
_WORDS = """
a about actually all am an and any anybody anyone anything are as at be been but by can could
did do does doing done else error even ever exactly example first for from get go going good got
had happened has have hello help here hey hi how i idea if in into is issue it its just kind
know like link look make matter maybe me mean mine more much my need no not now of ok on one or
other our out please point problem question really right say see should so some somebody someone
something sort still such sure tell than thank thanks that the their them then there these they
thing things think this those to too tried try trying up us use used using very want was way we
well were what when where which while who why will with work working works would wrong yes yet
you your yours
"""
_COMMON = frozenset(_WORDS.split())
"""Words that do not say what a question is about."""
_WORD = re.compile(r"[^\W_]+")
_FEW = 2
_BEGINS = re.compile(
    r"\s*(?:anyone|anybody|are|can|could|did|do|does|has|have|how|is|should|was|were|what|"
    r"when|where|which|who|why|will|would)\b(?>.*?\s(?=\S))\S++.*?\s\S",
    re.IGNORECASE,
)
"""Matches an English text that begins as a question does, and has three words or more."""
_ASKED = re.compile(
    r"(?<![^.!?\n])[^\w.!?\n]*+(\w[^.!?\n]*+(?:(?:\n\S|(?<=\s)[.!?])[^.!?\n]*+){0,2})\?"
)
"""Matches what is asked, in up to three lines. Words such as `.py` do not end it."""
_LEAST_WORDS = 3


def asks(text: str) -> bool:
    """Returns whether an English message asks something.

    >>> asks("How do I reset my password"), asks("It is late. Is the bus?"), asks("Really? I know.")
    (True, True, False)
    """
    return _BEGINS.match(text) is not None or any(
        len(found[1].split()) >= _LEAST_WORDS for found in _ASKED.finditer(text)
    )


def is_vague(question: str) -> bool:
    """Returns whether an English question says nothing without what was said before it.

    >>> is_vague("What do you mean by that?"), is_vague("Which version do you use?")
    (True, False)
    """
    words = (word.casefold() for word in _WORD.findall(question))
    return all(word in _COMMON or len(word) < _FEW for word in words)


def asked_again(
    collection: Collection, duplicates: Duplicates, *, linked: bool = True
) -> list[Asked]:
    """Returns questions that were asked twice or more: the most frequent first.

    Those that begin conversations come before those that were asked in answer to a message. What
    one person repeats is not asked again. Questions that say nothing without what was said before
    are left out, and so are replies of those who asked.

    Args:
        collection: Messages.
        duplicates: Those of all messages of the collection.
        linked: Whether the messages say what they answer; if not, any may begin a conversation.
    """
    found = []
    several = len({*collection.column("author")} - {None}) > _FEW
    for group in duplicates.groups:
        rows = [group.index, *(one.index for one in group.dropped)]
        asking = [row for row in rows if asks(collection.cores[row])]
        if len(asking) < _FEW or 2 * len(asking) < len(rows) or is_vague(group.text):
            continue
        beginning = [row for row in asking if not linked or collection.answered[row] < 0]
        begins = len(beginning) >= _FEW
        one = _asked(collection, duplicates, beginning if begins else asking, begins=begins)
        # in tickets, all customers may have one name
        repeats = several and one.authors == 1
        if not repeats and (begins or one.replied):
            found.append(one)
    found.sort(key=lambda one: (not one.begins, -one.count))
    return found[:MOST]


def _asked(
    collection: Collection, duplicates: Duplicates, rows: Sequence[int], *, begins: bool
) -> Asked:
    cores = [collection.cores[row] for row in rows]
    written = {_plain(core): core for core in reversed(cores)}
    ways = [written[plain] for plain, _ in Counter(map(_plain, cores)).most_common()]
    first = rows[0]
    about = [collection.about[row] for row in rows]
    times = [one["time"] for one in about if one.get("time") is not None]
    replies = [reply for row in rows for reply in _replies(collection, row)]
    said = Counter(int(duplicates.kept_for[reply]) for reply in replies)
    firsts = {int(duplicates.kept_for[reply]): reply for reply in reversed(replies)}
    return Asked(
        collection.ids[first],
        ways[0],
        len(rows),
        len({one["author"] for one in about if one.get("author")}),
        min(times, default=None),
        max(times, default=None),
        ways[1 : 1 + _MOST_WAYS],
        [collection.ids[row] for row in rows[:_MOST_IDS]],
        [
            _reply(collection, firsts[head], count)
            for head, count in said.most_common(_MOST_REPLIES)
        ],
        len(replies),
        begins,
    )


def _replies(collection: Collection, row: int) -> list[int]:
    """Returns the replies to a message, without those of its author."""
    author = collection.about[row].get("author")
    return [
        reply
        for reply in collection.replies[row]
        if author is None or collection.about[reply].get("author") != author
    ]


def _reply(collection: Collection, row: int, count: int) -> Reply:
    about = collection.about[row]
    return Reply(
        collection.ids[row], collection.cores[row], about.get("author"), about.get("time"), count
    )


def _plain(text: str) -> str:
    return " ".join(re.findall(r"\w+", text.casefold()))
