"""The columns of a comment, and how those of a file map to them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import polars as pl

from rejoinder.errors import InputError, nearest

FIELDS = ("id", "parent", "thread", "author", "source", "created", "text")
"""What a comment has, as far as extraction cares; all text."""

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
"""The table that readers deliver: the fields, the text as it is written (null: as published), and
the number of Unicode letters of the text as published."""


@dataclass(frozen=True)
class Columns:
    """Which column of the files holds which field."""

    names: Mapping[str, str] = field(default_factory=lambda: dict(REDDIT))
    """Column by field: of comments, or of a two-column file `message` and `reply`."""
    given: bool = False
    """Whether a person named them: then each one has to be there."""

    @property
    def are_pairs(self) -> bool:
        """Whether the files hold messages with their replies rather than comments."""
        return "message" in self.names

    @property
    def are_numbers(self) -> bool:
        """Whether they are positions from 1 on, in tables without a line of names."""
        return all(name.isdigit() for name in self.names.values())

    @property
    def needed(self) -> tuple[str, ...]:
        """The columns without which a row is no comment."""
        fields = PAIR_FIELDS if self.are_pairs else ("id", "text")
        return tuple(self.names[name] for name in fields)

    def without_dates(self) -> "Columns":
        """These but for the time of a comment, which only filters by date need."""
        names = {name: column for name, column in self.names.items() if name != "created"}
        return self if self.given else Columns(names)

    def missing(self, present: Sequence[str]) -> list[str]:
        """The columns that were asked for, or without which nothing works, and are not there."""
        needed = set(self.names) if self.given else {"id", "parent", "text"} & set(self.names)
        return sorted(self.names[name] for name in needed if self.names[name] not in present)

    def check(self, present: Sequence[str], place: str) -> None:
        """Refuse files that lack a column which was asked for, or without which nothing works.

        Raises:
            InputError: names the missing columns and those that are there.
        """
        if missing := self.missing(present):
            raise InputError(
                f"{place} has no column {', '.join(map(repr, missing))}; its columns are "
                f"{', '.join(map(repr, present))}. Name yours with --columns id=…,parent=…,text=…."
            )


def parse_columns(text: str) -> Columns:
    """The map in `id=msg_id,parent=reply_to,text=message`.

    >>> parse_columns("message=question,reply=answer").are_pairs
    True

    Raises:
        InputError: an unknown field, one named twice, or one that is needed and not named.
    """
    names: dict[str, str] = {}
    for item in text.split(","):
        name, found, column = (part.strip() for part in item.partition("="))
        known = (*FIELDS, *PAIR_FIELDS)
        if not found or not column:
            raise InputError(f"--columns: {item!r} is not FIELD=COLUMN.")
        if name not in known:
            raise InputError(f"--columns: unknown field {name!r}, {nearest(name, known)}.")
        if name in names:
            raise InputError(f"--columns names {name!r} twice.")
        names[name] = column
    needed = set(PAIR_FIELDS) if names.keys() & set(PAIR_FIELDS) else {"id", "parent", "text"}
    if missing := sorted(needed - names.keys()):
        raise InputError(f"--columns names no {', '.join(missing)}; {sorted(needed)} are needed.")
    return Columns(names, given=True)
