"""The fields of a comment, and the columns of a file that hold them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import polars as pl

from rejoinder.errors import InputError, nearest

FIELDS = ("id", "parent", "thread", "author", "source", "created", "text")
"""The fields of a comment that extraction reads, all text."""

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

COMMENTS: Mapping[str, type[pl.DataType]] = {
    **dict.fromkeys(FIELDS, pl.String),
    "clean": pl.String,
    "letters": pl.Int32,
}
"""The table that readers deliver: the fields, the cleaned text (null if cleaning changes nothing),
and the number of Unicode letters in the text as published."""


@dataclass(frozen=True)
class Columns:
    """Which column of the files holds which field."""

    names: Mapping[str, str] = field(default_factory=lambda: dict(REDDIT))
    """Column by field, for comments or for pairs of `message` and `reply`."""
    given: bool = False
    """Whether the user named the columns. Then each one must exist."""

    @property
    def are_pairs(self) -> bool:
        """Whether the files hold messages with their replies rather than comments."""
        return "message" in self.names

    @property
    def are_numbers(self) -> bool:
        """Whether the columns are numbers from 1, for tables without a header."""
        return all(name.isdigit() for name in self.names.values())

    @property
    def needed(self) -> tuple[str, ...]:
        """The columns without which a row is malformed."""
        fields = PAIR_FIELDS if self.are_pairs else ("id", "text")
        return tuple(self.names[name] for name in fields)

    def without_dates(self) -> "Columns":
        """Returns the columns without the time of a comment, which only filters by date need."""
        names = {name: column for name, column in self.names.items() if name != "created"}
        return self if self.given else Columns(names)

    def missing(self, present: Sequence[str]) -> list[str]:
        """Returns the named or needed columns that are not in `present`."""
        needed = set(self.names) if self.given else {"id", "parent", "text"} & set(self.names)
        return sorted(self.names[name] for name in needed if self.names[name] not in present)

    def check(self, present: Sequence[str], source: str) -> None:
        """Refuses files that lack a named or needed column."""
        if missing := self.missing(present):
            raise InputError(
                f"{source} has no column {', '.join(map(repr, missing))}; its columns are "
                f"{', '.join(map(repr, present))}. Name yours with --columns id=…,parent=…,text=…."
            )


def _parsed(text: str) -> dict[str, str]:
    """Parses `id=msg_id,parent=reply_to,text=message`."""
    names: dict[str, str] = {}
    for item in text.split(","):
        name, equals, column = (part.strip() for part in item.partition("="))
        if not equals or not column:
            raise InputError(f"--columns: {item!r} is not FIELD=COLUMN.")
        if name in names:
            raise InputError(f"--columns names {name!r} twice.")
        names[name] = column
    return names


def as_columns(columns: "Columns | Mapping[str, str] | str | None") -> Columns:
    """Returns columns from a mapping of fields to columns or from its text; None means Reddit's.

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
        raise InputError(f"--columns: unknown field {unknown[0]!r}, {nearest(unknown[0], known)}.")
    needed = set(PAIR_FIELDS) if names.keys() & set(PAIR_FIELDS) else {"id", "parent", "text"}
    if missing := sorted(needed - names.keys()):
        raise InputError(f"--columns names no {', '.join(missing)}; {sorted(needed)} are needed.")
    return Columns(names, given=True)
