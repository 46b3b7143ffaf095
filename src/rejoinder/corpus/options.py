"""Checked options of an extraction: columns, filters and limits.

Also the rules that drop comments: each is an Ibis column expression, tested in a fixed order.

An expression is true for a comment to be dropped. Lengths, letters and beginnings refer to the text
as published, before entities and white space are cleaned. Engines differ in their regular
expressions, so rules avoid them where a plain function will do.

To add a rule, write a function and add a line to a profile (see `docs/extend/rule.md`).
"""

import datetime
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from rejoinder.errors import InputError, nearest
from rejoinder.io.formats.compression import LONGEST_LINE

if TYPE_CHECKING:
    import ibis.expr.types as ir


ExtractProgress = Callable[[str, int, int | None], None]
"""Called with the name of a stage, how much of it is done, and the total or None if unknown.
The stages are `checking` (with `carry`), `reading` (bytes of the files), `joining`, `sorting` and
`writing` (pairs)."""

FIELDS = ("id", "parent", "thread", "author", "source", "created", "text")
"""The fields of a comment that extraction reads, all text."""

COMMENTS: Mapping[str, str] = {
    **dict.fromkeys(FIELDS, "string"),
    "clean": "string",
    "letters": "int32",
}
"""Columns and types of the table that readers deliver: the fields, the cleaned text (null if
cleaning changes nothing), and the number of Unicode letters in the text as published."""

REDDIT: Mapping[str, str] = {
    "id": "id",
    "parent": "parent_id",
    "thread": "link_id",
    "author": "author",
    "source": "subreddit",
    "created": "created_utc",
    "text": "body",
}
"""The fields of the public Reddit comment dumps."""

PAIR_FIELDS = ("message", "reply")
_MESSAGES = {"message", "input", "question", "query", "prompt", "instruction", "context"}
_REPLIES = {"reply", "response", "answer", "output", "completion"}
"""Usual names for the columns of messages and replies in published data sets."""
_LEAST_LINE = 1_000_000
"""Files come in pieces of this size; only longer lines are checked."""


@dataclass(frozen=True)
class Columns:
    """Maps fields to columns of the files."""

    names: Mapping[str, str] = field(default_factory=lambda: dict(REDDIT))
    """Column by field, for comments or for pairs of `message` and `reply`."""
    given: bool = False
    """Whether the user named the columns. If so, all must exist."""

    @property
    def are_pairs(self) -> bool:
        """Whether the files hold messages with their replies rather than comments."""
        return "message" in self.names

    @property
    def are_numbers(self) -> bool:
        """Whether the columns are numbers from 1, for tables without a header."""
        return all(name.isdigit() for name in self.names.values())

    @property
    def wanted(self) -> tuple[str, ...]:
        """The columns to read, once each."""
        return tuple(dict.fromkeys(self.names.values()))

    @property
    def needed(self) -> tuple[str, ...]:
        """The columns without which a row is malformed."""
        fields = PAIR_FIELDS if self.are_pairs else ("id", "text")
        return tuple(self.names[name] for name in fields)

    def missing(self, present: Sequence[str]) -> list[str]:
        """Returns the named or needed columns that are not in `present`."""
        needed = set(self.names) if self.given else {"id", "parent", "text"} & set(self.names)
        return sorted(self.names[name] for name in needed if self.names[name] not in present)

    def check(self, present: Sequence[str], source: str) -> None:
        """Refuses files without a named or needed column."""
        if missing := self.missing(present):
            raise InputError(
                f"{source} has no column {', '.join(map(repr, missing))}; its columns are "
                f"{', '.join(map(repr, present))}. Name yours with "
                "`columns='id=…,parent=…,text=…'` or `columns='message=…,reply=…'`."
            )


def known_pairs(present: Sequence[str]) -> Columns | None:
    """Finds the columns of messages and replies by their usual names; None if unclear.

    >>> known_pairs(["id", "Question", "answer"]).names
    {'message': 'Question', 'reply': 'answer'}
    """
    if not Columns().missing(present):
        return None
    found = [
        [name for name in present if name.strip().lower() in usual]
        for usual in (_MESSAGES, _REPLIES)
    ]
    if any(len(names) != 1 for names in found):
        return None
    return Columns({"message": found[0][0], "reply": found[1][0]}, given=True)


def as_columns(columns: Columns | Mapping[str, str] | str | None) -> Columns:
    """Returns columns from a mapping of fields to columns, or its text; None: Reddit's columns.

    >>> as_columns("message=question,reply=answer").needed
    ('question', 'answer')
    """
    if columns is None:
        return Columns()
    if isinstance(columns, Columns):
        return columns
    names = _parsed(columns) if isinstance(columns, str) else dict(columns)
    known = (*FIELDS, *PAIR_FIELDS)
    if unknown := [name for name in names if name not in known]:
        raise InputError(f"`columns`: unknown field {unknown[0]!r}, {nearest(unknown[0], known)}.")
    needed = set(PAIR_FIELDS) if names.keys() & set(PAIR_FIELDS) else {"id", "parent", "text"}
    if missing := sorted(needed - names.keys()):
        raise InputError(f"`columns` has no {', '.join(missing)}; {sorted(needed)} are needed.")
    return Columns(names, given=True)


def _parsed(text: str) -> dict[str, str]:
    """Parses `id=msg_id,parent=reply_to,text=message`."""
    names: dict[str, str] = {}
    for item in text.split(","):
        name, equals, column = (part.strip() for part in item.partition("="))
        if not equals or not column:
            raise InputError(f"`columns`: {item!r} is not FIELD=COLUMN.")
        if name in names:
            raise InputError(f"`columns` names {name!r} twice.")
        names[name] = column
    return names


@dataclass(frozen=True)
class ExtractOptions:
    """The checked options of `extract`, which documents them."""

    rules: str = "paper"
    columns: Columns = field(default_factory=Columns)
    subreddits: tuple[str, ...] = ()
    """Sources to read, in lower case. Empty means all."""
    since: int | None = None
    """First second to read, since 1970."""
    until: int | None = None
    """First second no longer read, since 1970."""
    limit: int | None = None
    max_reply_count: int | None = None
    split: tuple[float, float, float] = (95.0, 2.5, 2.5)
    strict: bool = False
    separator: str | None = None
    max_line: int = LONGEST_LINE
    """Most bytes of a line; longer lines are malformed."""

    def __post_init__(self) -> None:
        profile(self.rules)
        if len(self.split) != 3 or min(self.split) < 0 or sum(self.split) <= 0:
            raise InputError(f"`split` {self.split} must be three shares, none of them negative.")
        if self.separator is not None and (len(self.separator) != 1 or self.separator in '"\r\n'):
            raise InputError(
                f"`separator` {self.separator!r}: one character, such as ';', and not a quote or "
                "line end."
            )

        if self.max_line < _LEAST_LINE:
            raise InputError(f"`max_line` {self.max_line:,} bytes is too little; 1MB is the least.")

    @property
    def columns_read(self) -> Columns:
        """The columns, without the time of a comment if no filter needs it."""
        if self.columns.given or (self.since, self.until) != (None, None):
            return self.columns
        names = self.columns.names.items()
        return Columns({name: column for name, column in names if name != "created"})

    @property
    def rule_names(self) -> list[str]:
        """The names under which comments are dropped, in the order of the rules."""
        filters = (self.subreddits, self.since, self.until)
        filtered = [] if filters == ((), None, None) else ["filtered"]
        return filtered + [rule.name for rule in profile(self.rules)]


def parse_date(date: str | datetime.date | None) -> int | None:
    """Returns the seconds from 1970 to a date such as 2021-02-28, in UTC; None for None."""
    if date is None:
        return None
    try:
        day = datetime.datetime.fromisoformat(str(date))
    except ValueError:
        raise InputError(f"{str(date)!r} is not a date; write it as 2021-02-28.") from None
    return int(day.replace(tzinfo=day.tzinfo or datetime.UTC).timestamp())


@dataclass(frozen=True)
class Rule:
    """A reason to drop a comment."""

    name: str
    """Its key in the counts of the manifest, such as `too_long`."""
    drops: str
    """Description for the printed table, such as `350 characters or more`."""
    broken_by: "Callable[[ir.Table], ir.BooleanValue]"
    """Function of the table of comments (columns as in `schema.COMMENTS`); returns an expression
    that is true for the comments to drop."""


def _deleted(comments: "ir.Table") -> "ir.BooleanValue":
    return comments.clean.coalesce(comments.text).isin(["", "[deleted]", "[removed]"])


def _not_alphabetic(comments: "ir.Table") -> "ir.BooleanValue":
    # with integers: 70 % of 340 is exactly 238, which floats miss
    return comments.letters * 10 <= comments.text.length() * 7


def _bad_start(comments: "ir.Table") -> "ir.BooleanValue":
    text = comments.text
    return text.startswith("https") | text.startswith("/r/") | text.startswith("@")


RESERVED = ("filtered", "kept", "replies")
"""Names of other counts of comments; rules can't use them."""

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
    """Adds a profile from outside this package, for `extract(…, rules=name)`.

    Raises:
        InputError: the profile's name is taken, or a rule's name is repeated or reserved.
    """
    names = [rule.name for rule in rules]
    if name in PROFILES:
        raise InputError(f"the profile {name!r} already exists; choose another name.")
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
