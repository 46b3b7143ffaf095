"""The options of an extraction, checked."""

import datetime
from collections.abc import Callable
from dataclasses import dataclass, field

from rejoinder.corpus.rules import profile
from rejoinder.corpus.schema import Columns
from rejoinder.errors import InputError

ExtractProgress = Callable[[str, int, int | None], None]
"""Called with the name of a stage, how much of it is done, and the total or None if unknown.
The stages are `checking` (with `carry`), `reading` (bytes of the files), `joining`, `sorting` and
`writing` (pairs)."""


@dataclass(frozen=True)
class Filters:
    """Which comments are read. The others count as filtered."""

    subreddits: tuple[str, ...] = ()
    """Sources in lower case. Empty means all."""
    since: int | None = None
    """First second since 1970 that is read."""
    until: int | None = None
    """First second since 1970 that is not read any more."""


@dataclass(frozen=True)
class ExtractOptions:
    """The checked options of `extract`, which documents them."""

    rules: str = "paper"
    columns: Columns = field(default_factory=Columns)
    filters: Filters = field(default_factory=Filters)
    limit: int | None = None
    max_reply_count: int | None = None
    split: tuple[float, float, float] = (95.0, 2.5, 2.5)
    strict: bool = False
    separator: str | None = None

    def __post_init__(self) -> None:
        profile(self.rules)
        if len(self.split) != 3 or min(self.split) < 0 or sum(self.split) <= 0:
            raise InputError(
                f"--split {self.split} must be three shares, of which none is negative."
            )
        if self.separator is not None and (len(self.separator) != 1 or self.separator in '"\r\n'):
            raise InputError(
                f"--separator {self.separator!r}: one character, such as ';', and not a quote or "
                "line end."
            )


def parse_date(date: str | datetime.date | None) -> int | None:
    """Returns the seconds from 1970 to a date such as 2021-02-28, in UTC, None for None."""
    if date is None:
        return None
    try:
        day = datetime.datetime.fromisoformat(str(date))
    except ValueError:
        raise InputError(f"{str(date)!r} is not a date; write it as 2021-02-28.") from None
    return int(day.replace(tzinfo=day.tzinfo or datetime.UTC).timestamp())
