"""The rules by which comments are dropped: each one Ibis column expression, in a fixed order.

An expression is true for a comment to be dropped. Lengths, letters and starts are those of the
text as published: with entities and white space as they come. Engines differ in the regular
expressions that they know, so rules use none where a plain function will do.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rejoinder.errors import InputError, nearest

if TYPE_CHECKING:
    import ibis.expr.types as ir


@dataclass(frozen=True)
class Rule:
    """A name, what it drops in words, and the expression over the table of comments."""

    name: str
    drops: str
    broken_by: "Callable[[ir.Table], ir.BooleanValue]"


def _deleted(comments: "ir.Table") -> "ir.BooleanValue":
    return comments.clean.coalesce(comments.text).isin(["", "[deleted]", "[removed]"])


def _too_long(limit: int) -> "Callable[[ir.Table], ir.BooleanValue]":
    return lambda comments: comments.text.length() >= limit


def _too_short(limit: int) -> "Callable[[ir.Table], ir.BooleanValue]":
    return lambda comments: comments.text.length() < limit


def _not_alphabetic(comments: "ir.Table") -> "ir.BooleanValue":
    # in whole numbers: 70 % of 340 is exactly 238, which no float says
    return comments.letters * 10 <= comments.text.length() * 7


def _bad_start(comments: "ir.Table") -> "ir.BooleanValue":
    text = comments.text
    return text.startswith("https") | text.startswith("/r/") | text.startswith("@")


def _bot(comments: "ir.Table") -> "ir.BooleanValue":
    return comments.author.lower().contains("bot")


DELETED = Rule("deleted", "empty, [deleted] or [removed]", _deleted)

PROFILES: Mapping[str, tuple[Rule, ...]] = {
    # Yang et al. 2018, section 3; `deleted` is ours: without it the pairs are worthless
    "paper": (
        DELETED,
        Rule("too_long", "350 characters or more", _too_long(350)),
        Rule("not_alphabetic", "70 % letters or less", _not_alphabetic),
        Rule("bad_start", "starts with https, /r/ or @", _bad_start),
        Rule("bot", "author's name contains bot", _bot),
    ),
    # Henderson et al. 2019, A Repository of Conversational Datasets
    "polyai": (
        DELETED,
        Rule("too_short", "fewer than 9 characters", _too_short(9)),
        Rule("too_long", "128 characters or more", _too_long(128)),
    ),
    "none": (DELETED,),
}


def profile(name: str) -> tuple[Rule, ...]:
    """The rules of a profile, in the order in which they are tested.

    Raises:
        InputError: no such profile.
    """
    if name not in PROFILES:
        raise InputError(f"--rules {name!r}: {nearest(name, PROFILES)}.")
    return PROFILES[name]
