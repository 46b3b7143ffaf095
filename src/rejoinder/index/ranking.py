"""Search by words and meaning together: which message answers, by what is known of it.

The score of a text is (1 - w) * (s + a) + w * m. For a text alone, s is its BM25 as a share of what
a text could have at most, and m its cosine with the query; no list of hits can push out another, as
the places in lists do (reciprocal rank fusion). A message has more than its own words:

- Those around it in its conversation (`Order`): s and m get parts of theirs. Most gives a question
  of somebody else right before it, which it may answer.
- a: its author is named in the query, its day is of the query's date, words of the query stand side
  by side, it does not end with a question mark, and it is not short.

All was chosen on `benchmarks/memory.py`; `notebook/search.md` has what each is worth.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from rejoinder.index.fields import ASKS, ENDS
from rejoinder.index.hits import Found, placed, segments_and_rows
from rejoinder.index.matching import Ranks, WordSearch, rarity
from rejoinder.index.segment import Absent, Segment
from rejoinder.protocols import Embeddings
from rejoinder.text.normalize import normalize_text, words_of
from rejoinder.text.stems import Stem

DEPTH = 50
"""Texts by words and by meaning, at least, that are candidates with those next to them."""
_APART = 6 * 3_600.0
"""Seconds between messages of a channel that are not around each other."""
_ASKED, _AROUND = 0.5, 0.2
"""What a message gets of the words of a question right before it, and of its author's message
before it, of the one after it, and of those two away."""
_BESIDE, _FAR = 0.3, 0.1
"""Likewise of the cosines of those next to it and two away."""
_BY, _ON, _TOGETHER, _ENDS, _LENGTH = 0.2, 0.15, 0.1, 0.08, 0.01
_READ = 40
"""Best candidates whose texts are read for words side by side."""

Rows = NDArray[np.int64]
Numbers = NDArray[np.float64]


class Order:
    """The messages of a segment in the order of their conversations: threads, else channels."""

    def __init__(self, segment: Segment) -> None:
        """Puts the messages that are not deleted in order.

        Raises:
            InputError: the index is damaged.
        """
        self._at = np.full(segment.entry.rows, -1)
        self._rows = np.array([-1])
        self._runs = np.array([0])
        if (fields := segment.fields) is None:
            return
        thread, source = (fields.numbers(name).astype(np.int64) for name in ("thread", "source"))
        group = np.where(thread > 0, thread, -source)
        kept = np.flatnonzero((group != 0) & ~segment.deleted)
        order = kept[np.lexsort((fields.times[kept], group[kept]))]
        self._at[order] = np.arange(len(order))
        gaps, groups = np.diff(fields.times[order]), group[order]
        apart = (np.diff(groups) != 0) | ((groups[1:] < 0) & (gaps > _APART))
        # -1 stands after the last message, for a place that none has
        self._rows = np.append(order, -1)
        self._runs = np.concatenate([[0], np.cumsum(apart), [-1]])[-len(self._rows) :]

    def beside(self, rows: Rows, distance: int) -> Rows:
        """Returns the (N,) rows so many messages after (N,) rows, or before; -1 where none is."""
        at = self._at[rows]
        other = np.where(at < 0, -1, np.clip(at + distance, -1, len(self._rows) - 1))
        return np.where(self._runs[other] == self._runs[at], self._rows[other], -1)


@dataclass(frozen=True)
class Asked:
    """What a query asks for besides its words and its meaning."""

    date: "Date"
    names: frozenset[str]
    """Words that name an author."""
    pairs: Sequence[tuple[str, str]]
    """Stems of words that stand side by side in it."""


@dataclass(frozen=True)
class Date:
    """Parts of a date, as far as a query has them; 0: it does not."""

    year: int = 0
    month: int = 0
    day: int = 0

    def matches(self, times: Numbers) -> Numbers:
        """Returns how many parts of the date (N,) seconds since 1970 in UTC have."""
        if not any((self.year, self.month, self.day)):
            return np.zeros(len(times))
        known = np.isfinite(times)
        days = np.where(known, times, 0).astype("M8[s]").astype("M8[D]")
        months, years = days.astype("M8[M]"), days.astype("M8[Y]")
        parts = (
            (years.astype(np.int64) + 1970 == self.year, self.year),
            ((months - years).astype(np.int64) + 1 == self.month, self.month),
            ((days - months).astype(np.int64) + 1 == self.day, self.day),
        )
        found = sum((same.astype(np.float64) for same, part in parts if part), np.zeros(len(times)))
        return np.where(known, found, 0)


_MONTHS = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"]
_MONTH = (
    r"(jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|"
    r"sept?(?:ember)?|oct(?:ober)?|nov(?:ember)?|dec(?:ember)?)"
)
_DATES = (
    re.compile(r"\b(?P<year>(?:19|20)\d\d)-(?P<number>\d\d)(?:-(?P<day>\d\d))?\b"),
    re.compile(rf"\b(?P<day>\d\d?)(?:st|nd|rd|th)?(?: of)? {_MONTH}\b\.?,?(?: (?P<year>\d{{4}}))?"),
    re.compile(rf"\b{_MONTH}\.? (?P<day>\d\d?)(?:st|nd|rd|th)?\b(?:,? (?P<year>\d{{4}}))?"),
    re.compile(rf"\b(?:in|of|since|last|during|until|by|before|after|early|late) {_MONTH}\b"
               r"(?:,? (?:of )?(?P<year>\d{4}))?"),
    re.compile(rf"\b{_MONTH},? (?P<year>(?:19|20)\d\d)\b"),
    re.compile(r"\b(?:in|of|since|during|until|by|before|after) (?P<year>(?:19|20)\d\d)\b"),
)  # fmt: skip
"""Match dates. A month alone counts after a word that dates begin with: people march, and may."""


def date_in(query: str) -> Date:
    """Returns the date that a query names, as far as it does.

    >>> date_in("What did Ann do on 8 May, 2023?"), date_in("the party last March")
    (Date(year=2023, month=5, day=8), Date(year=0, month=3, day=0))
    >>> date_in("May I march in 3 days?")
    Date(year=0, month=0, day=0)
    """
    text = query.lower()
    for pattern in _DATES:
        if (found := pattern.search(text)) is None:
            continue
        parts = found.groupdict()
        names = [one for one in found.groups() if one and one[:3] in _MONTHS]
        month = _MONTHS.index(names[0][:3]) + 1 if names else int(parts.get("number") or 0)
        return Date(int(parts.get("year") or 0), month, int(parts.get("day") or 0))
    return Date()


def asked_by(query: str, stem: Stem, ranks: Ranks, names: frozenset[str]) -> Asked:
    """Returns what a query asks for, where some of its words name authors.

    >>> asked_by("Did Ann take the night train?", list, {"the": 1}, frozenset({"ann"})).pairs
    [('night', 'train')]
    """
    words = words_of(query)
    stems = stem(words)
    says = [word not in names and rarity(ranks.get(word)) > 0 for word in words]
    pairs = zip(pairwise(stems), pairwise(says), strict=True)
    return Asked(date_in(query), names, [pair for pair, both in pairs if all(both)])


class Candidates:
    """Texts of a segment that may be the best for a query, and those around them."""

    def __init__(self, found: Rows, segment: Segment, order: Order, absent: Absent) -> None:
        """Takes texts that were found, and the messages next to them.

        Args:
            found: (N,) int64, rows.
            segment: Where they are.
            order: The order of its messages.
            absent: Texts that are not to be found.
        """
        near = [found, order.beside(found, -1), order.beside(found, 1)]
        rows = np.unique(np.concatenate(near))
        rows = rows[rows >= 0]
        self.rows: Rows = rows if absent is None else rows[~absent[rows]]
        """(C,) int64: the candidates, ascending."""
        around = np.stack([order.beside(self.rows, distance) for distance in (-2, -1, 1, 2)])
        self.read: Rows = np.unique(np.concatenate([self.rows, around[around >= 0]]))
        """(R,) int64: rows whose words and meaning are compared, ascending."""
        self._own = np.searchsorted(self.read, self.rows)
        self._around = np.where(around < 0, len(self.read), np.searchsorted(self.read, around))
        fields = segment.fields
        self._fields = fields
        self._texts = segment.texts
        self._lengths = segment.matcher.lengths
        if fields is None:
            return
        before = self.read[np.minimum(self._around[1], len(self.read) - 1)]
        author = fields.numbers("author")
        is_same = author[before] == author[self.rows]
        self._after_question = ~is_same & (fields.asks[before] & ASKS > 0)
        self._after_own = is_same & (author[before] > 0)

    def by_words(self, shares: Numbers) -> Numbers:
        """Returns what the (R,) shares of texts and of those around them give, (C,)."""
        own, far_before, before, after, far_after = self._parts(shares)
        if self._fields is None:
            return own
        from_before = before * (_ASKED * self._after_question + _AROUND * self._after_own)
        return np.asarray(own + from_before + _AROUND * (after + far_before + far_after))

    def by_meaning(self, cosines: Embeddings) -> Numbers:
        """Returns likewise what (R,) cosines give, (C,)."""
        own, far_before, before, after, far_after = self._parts(cosines.astype(np.float64))
        return np.asarray(own + _BESIDE * (before + after) + _FAR * (far_before + far_after))

    def _parts(self, values: Numbers) -> tuple[Numbers, ...]:
        values = np.append(values, 0.0)
        return (values[self._own], *values[self._around])

    def by_fields(self, asked: Asked) -> Numbers:
        """Returns what is known of the messages adds, (C,)."""
        found = _LENGTH * np.log1p(self._lengths[self.rows])
        if (fields := self._fields) is None:
            return np.zeros(len(self.rows))
        found -= _ENDS * (fields.asks[self.rows] & ENDS > 0)
        if asked.names:
            authors = np.concatenate([fields.named(name) for name in asked.names])
            found += _BY * np.isin(fields.numbers("author")[self.rows], authors)
        if asked.date != Date():
            found += _ON * asked.date.matches(fields.times[self.rows])
        return found


class Together:
    """Search by words and meaning in segments that stay as they are."""

    def __init__(self, segments: Sequence[Segment], stem: Stem) -> None:
        """Prepares a search. The messages of a segment are put in order once they are searched."""
        self._segments, self._stem = segments, stem
        self._orders: dict[int, Order] = {}

    def best(
        self,
        words: WordSearch,
        asked: Sequence[Asked],
        queries: Embeddings,
        lists: Iterable[tuple[Found, Found]],
        absent: Sequence[Absent],
        weight: float,
        top_k: int,
    ) -> list[Found]:
        """Returns for each query the `top_k` best texts, best first.

        Args:
            words: The queries by their words.
            asked: What else they ask for.
            queries: (Q, D) float32, unit or zero rows.
            lists: For each query the best texts by meaning and by words. These and the messages
                next to them are candidates.
            absent: Texts of each segment that are not found.
            weight: Share of meaning, from 0 to 1.
            top_k: Number of texts.
        """
        results = []
        for number, (both, what) in enumerate(zip(lists, asked, strict=True)):
            segments, rows = segments_and_rows(np.concatenate([one.places for one in both]))
            found = []
            for part in np.unique(segments).tolist():
                segment = self._segments[part]
                some = Candidates(rows[segments == part], segment, self._order(part), absent[part])
                cosines = segment.scores(some.read, queries[number], map_file=True)
                scores = some.by_words(words.shares(number, part, some.read))
                scores = (1 - weight) * (scores + some.by_fields(what))
                scores += weight * some.by_meaning(cosines)
                found.append(Found(placed(part, some.rows), scores))
            results.append(self._with_pairs(_best(found, None), what, 1 - weight, top_k))
        return results

    def _order(self, part: int) -> Order:
        if part not in self._orders:
            self._orders[part] = Order(self._segments[part])
        return self._orders[part]

    def _with_pairs(self, found: Found, asked: Asked, weight: float, top_k: int) -> Found:
        """Adds what words side by side are worth to the best of what was found."""
        if not asked.pairs:
            return Found(found.places[:top_k], found.scores[:top_k])
        scores = found.scores.copy()
        for at, (part, row) in enumerate(
            zip(*segments_and_rows(found.places[:_READ]), strict=True)
        ):
            stands = _side_by_side(self._segments[part].texts[row], asked.pairs, self._stem)
            scores[at] += weight * _TOGETHER * stands
        return _best([Found(found.places, scores)], top_k)


def _side_by_side(text: str, pairs: Sequence[tuple[str, str]], stem: Stem) -> int:
    """Returns how many pairs of stems stand side by side in a text."""
    text = normalize_text(text)
    # a stem may end with another letter than its words
    likely = [pair for pair in pairs if all(one[:-1] in text for one in pair)]
    if not likely:
        return 0
    there = {*pairwise(stem(words_of(text)))}
    return sum(pair in there for pair in likely)


def _best(found: Sequence[Found], top_k: int | None) -> Found:
    places = np.concatenate([np.empty(0, np.int64), *(one.places for one in found)])
    scores = np.concatenate([np.empty(0), *(one.scores for one in found)])
    order = np.lexsort((places, -scores))[:top_k]
    return Found(places[order], scores[order])
