"""The rules that drop comments: each is one Ibis column expression, tested in a fixed order.

An expression is true for a comment to be dropped. Lengths, letters and beginnings are those of the
text as published, before entities and white space are cleaned. Engines differ in their regular
expressions, so rules use none where a plain function will do.

To add a rule, write a function and add a line to a profile (see `docs/extend/rule.md`).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rejoinder.errors import InputError, nearest

if TYPE_CHECKING:
    import ibis.expr.types as ir


@dataclass(frozen=True)
class Rule:
    """A reason to drop a comment."""

    name: str
    """Its key in the counts of the manifest, such as `too_long`."""
    drops: str
    """Description for the printed table, such as `350 characters or more`."""
    broken_by: "Callable[[ir.Table], ir.BooleanValue]"
    """Takes the table of comments (columns as in `schema.COMMENTS`) and returns an expression that
    is true for the comments to drop."""


def _deleted(comments: "ir.Table") -> "ir.BooleanValue":
    return comments.clean.coalesce(comments.text).isin(["", "[deleted]", "[removed]"])


def _not_alphabetic(comments: "ir.Table") -> "ir.BooleanValue":
    # in whole numbers: 70 % of 340 is exactly 238, which floats miss
    return comments.letters * 10 <= comments.text.length() * 7


def _bad_start(comments: "ir.Table") -> "ir.BooleanValue":
    text = comments.text
    return text.startswith("https") | text.startswith("/r/") | text.startswith("@")


RESERVED = ("filtered", "kept", "replies")
"""Names of other counts of comments, which no rule may have."""

DELETED = Rule("deleted", "empty, [deleted] or [removed]", _deleted)

PROFILES: dict[str, tuple[Rule, ...]] = {
    # Yang et al. 2018, section 3; `deleted` is added here: without it the pairs are worthless
    "paper": (
        DELETED,
        Rule("too_long", "350 characters or more", lambda table: table.text.length() >= 350),
        Rule("not_alphabetic", "70 % letters or less", _not_alphabetic),
        Rule("bad_start", "starts with https, /r/ or @", _bad_start),
        Rule(
            "bot", "author's name contains bot", lambda table: table.author.lower().contains("bot")
        ),
    ),
    # Henderson et al. 2019, A Repository of Conversational Datasets
    "polyai": (
        DELETED,
        Rule("too_short", "fewer than 9 characters", lambda table: table.text.length() < 9),
        Rule("too_long", "128 characters or more", lambda table: table.text.length() >= 128),
    ),
    "none": (DELETED,),
}
"""The rules by name of their profile. A comment counts under the first rule that it breaks."""


def register_profile(name: str, rules: Sequence[Rule]) -> None:
    """Adds a profile from outside of this package, for `extract(…, rules=name)`.

    Raises:
        InputError: the name of the profile is taken, or that of a rule is repeated or reserved.
    """
    names = [rule.name for rule in rules]
    if name in PROFILES:
        raise InputError(f"there is a profile {name!r} already; choose another name.")
    if len({*names, *RESERVED}) < len(names) + len(RESERVED):
        raise InputError(
            f"the profile {name!r} has the rules {', '.join(names)}; each needs its own name, "
            f"other than {', '.join(RESERVED)}."
        )
    PROFILES[name] = tuple(rules)


def profile(name: str) -> tuple[Rule, ...]:
    """Returns the rules of a profile, in the order in which they are tested.

    Raises:
        InputError: there is no such profile.
    """
    if name not in PROFILES:
        raise InputError(f"`rules` {name!r}: {nearest(name, PROFILES)}.")
    return PROFILES[name]
