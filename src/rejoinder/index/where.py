"""Conditions that limit which messages a search finds, as users write them.

Also parses typed queries: quoted phrases, excluded words and conditions.
"""

import datetime
import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from rejoinder.corpus.options import parse_date
from rejoinder.errors import ConditionError, InputError, is_misspelt, nearest

NAMED = ("author", "source", "thread")
"""Fields that are compared with given values, ignoring case."""
_TIMES = ("since", "until")
_WORDS = ("phrase", "without", "has")
KEYS = (*NAMED, *_TIMES, *_WORDS)
"""Keys that can filter a search, besides the user's own fields."""


Where = Mapping[str, str | datetime.date | Iterable[str]]
"""Values by `KEYS` or by the user's own fields, as in `{"source": ["general", "help"], "since":
"2024-01-01"}`."""


@dataclass(frozen=True)
class Conditions:
    """Conditions that a text must meet to be found."""

    values: Mapping[str, frozenset[str]]
    """Allowed case-folded values of each field; a text must have one of them."""
    since: float = -math.inf
    """Seconds since 1970 in UTC."""
    until: float = math.inf
    """First second that is too late, likewise."""
    phrases: tuple[str, ...] = ()
    """Phrases: words that must occur in a row."""
    without: tuple[str, ...] = ()
    """Words that must not occur."""
    has_link: bool = False
    """Whether a text must contain a link."""

    @property
    def read_texts(self) -> bool:
        """Whether the words of texts must be checked."""
        return bool(self.phrases or self.without or self.has_link)

    @property
    def is_timed(self) -> bool:
        """Whether there is a time condition, which leaves out texts without a time."""
        return self.since > -math.inf or self.until < math.inf

    def meets(self, about: Mapping[str, Any]) -> bool:
        """Returns whether a text meets the conditions on metadata; `about` is its metadata."""
        time = about.get("time")
        if self.is_timed and (time is None or not self.since <= time < self.until):
            return False
        return all(
            str(about.get(name, "")).casefold() in wanted for name, wanted in self.values.items()
        )

    @property
    def fields(self) -> tuple[str, ...]:
        """The fields with conditions: of `NAMED`, and `time`."""
        return (*self.values, *(("time",) if self.is_timed else ()))


def conditions_of(where: Where) -> Conditions:
    """Parses the conditions that a user wrote.

    >>> found = conditions_of({"source": "General", "since": "1970-01-02"})
    >>> found.values["source"], found.since
    (frozenset({'general'}), 86400)

    Raises:
        ConditionError: a key is misspelt, or a value is missing, not a string, or not a date.
    """
    values: dict[str, frozenset[str]] = {}
    times: dict[str, int] = {}
    words: dict[str, tuple[str, ...]] = {}
    for key, given in where.items():
        if is_misspelt(str(key), KEYS):
            raise ConditionError(
                f"where: {key!r} is not a field to filter by ({nearest(str(key), KEYS)})."
            )
        listed = _listed(given)
        if not listed or "" in listed:
            example = ", such as 2024-01-31" if key in _TIMES else ""
            raise ConditionError(f"where: {key} needs a value{example}.")
        if key in _TIMES:
            if len(listed) > 1:
                raise ConditionError(f"where: {key} is given {len(listed)} times; give one date.")
            times[key] = _seconds(key, listed[0])
            continue
        wrong = [value for value in listed if not isinstance(value, str)]
        if wrong:
            raise ConditionError(f"where: {key} must be a string or several; got {wrong[0]!r}.")
        if key in _WORDS:
            words[key] = tuple(map(str, listed))
            continue
        values[key] = frozenset(str(value).casefold() for value in listed)
    if words.get("has", ("link",)) != ("link",):
        raise ConditionError(f"where: has must be link; got {words['has'][0]!r}.")
    conditions = Conditions(
        values, **times, phrases=words.get("phrase", ()), without=words.get("without", ()),
        has_link="has" in words,
    )  # fmt: skip
    if conditions.since >= conditions.until:
        raise ConditionError(
            "where: until must be later than since; it is the first day that is left out."
        )
    return conditions


def fields_of(where: Where | None) -> Conditions:
    """Parses conditions on the metadata of messages, not on their words.

    Raises:
        ConditionError: as in `conditions_of`; also if there are conditions on words.
    """
    conditions = conditions_of(where or {})
    if conditions.read_texts:
        raise ConditionError(f"where: {', '.join(_WORDS)} only work in a search of an index.")
    return conditions


_NAMES = {"from": "author", "in": "source", "after": "since", "before": "until", "has": "has"}
_TYPED = re.compile(
    r"""(?<!\S)(?:(?P<name>from|in|before|after|has):(?P<value>"[^"]+"|[^\s"]+)"""
    r"""|-(?P<without>[^\W\d_][\w'-]*)|"(?P<phrase>[^"]+)")(?!\S)"""
)


def read_query(typed: str) -> tuple[str, dict[str, list[str]]]:
    """Splits a typed query into the text to search for and its conditions.

    >>> read_query('"night train" to Rome -bus')
    ('night train to Rome', {'phrase': ['night train'], 'without': ['bus']})
    >>> read_query("the bill from:ann before:2024-06-01")
    ('the bill', {'author': ['ann'], 'until': ['2024-06-01']})

    Raises:
        ConditionError: the query has only conditions.
    """
    where: dict[str, list[str]] = {}

    def take(found: re.Match[str]) -> str:
        for key in ("without", "phrase"):
            if found[key] is not None:
                where.setdefault(key, []).append(found[key])
        if found["name"] is not None:
            where.setdefault(_NAMES[found["name"]], []).append(found["value"].strip('"'))
        return found["phrase"] or ""

    text = " ".join(_TYPED.sub(take, typed).split())
    if where and not text:
        raise ConditionError(f"the query {typed!r} has only conditions; add words to search for.")
    return text if where else typed, where


def _listed(given: object) -> list[object]:
    if isinstance(given, str) or not isinstance(given, Iterable):
        return [given]
    return list(given)


def _seconds(key: str, value: object) -> int:
    if not isinstance(value, str | datetime.date):
        raise ConditionError(f"where: {key} must be a date such as 2024-01-31; got {value!r}.")
    try:
        return parse_date(value) or 0
    except InputError as error:
        raise ConditionError(f"where: {key}={error}") from None
