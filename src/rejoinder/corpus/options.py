"""The options of an extraction, checked."""

import datetime
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from rejoinder.corpus.rules import profile
from rejoinder.corpus.schema import Columns
from rejoinder.errors import InputError

ExtractProgress = Callable[[str, int, int | None], None]
"""Called with the name of a stage, how much of it is done, and the total or None if unknown.
The stages are `reading` (bytes of the files), `joining`, `sorting` and `writing` (pairs)."""


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
    engine: str = "duckdb"
    memory: str = "2GB"
    threads: int | None = None
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


def filters_of(
    subreddits: Sequence[str],
    since: str | datetime.date | None,
    until: str | datetime.date | None,
) -> Filters:
    """Returns the filters for names of subreddits, in any case, and dates."""
    return Filters(
        tuple(name.strip().lower() for name in subreddits),
        None if since is None else parse_date(str(since)),
        None if until is None else parse_date(str(until)),
    )


def parse_date(text: str) -> int:
    """Returns the seconds from 1970 to a date such as 2021-02-28, in UTC."""
    try:
        day = datetime.datetime.fromisoformat(text)
    except ValueError:
        raise InputError(f"{text!r} is not a date; write it as 2021-02-28.") from None
    return int(day.replace(tzinfo=day.tzinfo or datetime.UTC).timestamp())
