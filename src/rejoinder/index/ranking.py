"""Hybrid search: ranks messages by words, meaning, conversation and metadata together.

The score of a text is (1 - w) * (s + a) + w * m. For a text alone, s is its BM25 as a share of the
upper bound, and m its cosine with the query. Unlike with reciprocal rank fusion, one list of hits
can't push out another. For a message, more counts than its own words:

- The messages around it in its conversation (`Messages`) add to s and m. A question by somebody
  else right before it, which it may answer, adds most. A mail stands alone.
- a is higher if the query names its author or its date, if words of the query are adjacent in it,
  if it does not end with a question mark, and if it is not short.

All weights were chosen on `benchmarks/memory.py`; `notebook/search.md` lists their effects.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain, pairwise, starmap
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rejoinder.index.fields import ENDS, Fields
from rejoinder.index.files import keys_of
from rejoinder.index.hits import ROW_BITS, Found, segments_and_rows
from rejoinder.index.matching import Ranks, WordSearch, rarity
from rejoinder.index.segment import Absent, Segment
from rejoinder.protocols import Embeddings
from rejoinder.text.languages import Stem
from rejoinder.text.normalize import words_of
from rejoinder.text.ragged import offsets_of

DEPTH = 30
"""Fewest candidates by words, and by meaning; their neighbours are candidates, too."""
_MOST_BY = 0.8
"""Largest share of all messages by the authors named in a query; above it, names are ignored."""
_FURTHEST = 2
"""Largest distance of a message around another, in messages."""
_APART = 6 * 3_600.0
"""Seconds of pause in a channel after which messages are no longer around each other."""
_ASKED, _AROUND = 0.5, 0.2
"""Shares of BM25 that a message gets: from a question right before it; and from its author's
message before it, the message after it, and the messages two away."""
_ADJACENT, _FAR = 0.3, 0.1
"""Shares of the cosine that a message gets from the messages next to it, and two away."""
_BY, _ON, _TOGETHER, _ENDS, _SHORT, _LENGTH = 0.2, 0.15, 0.2, 0.08, 0.25, 0.01
"""Bonuses: the query names the author; per part of a date; words adjacent as in the query.
Penalties: a question mark at the end; three words or fewer. The last is a bonus by the logarithm of
the number of words."""
_FEW = 3
_CLOSE = 0.4
"""Lowest cosine for the nearest text to count as close, if no text has a word of the query."""
_ENDING = 8
"""Most characters between the stem of a word and the next word."""
_AT_ONCE = 256
"""Queries whose candidates are compared at once: enough that a loop over them costs little."""
_READ = 20
"""Number of best candidates whose texts are checked for adjacent words."""

Rows = NDArray[np.int64]
Numbers = NDArray[np.float64]


class Messages:
    """The metadata of the texts of all segments; texts are numbered segment after segment.

    Texts that are not deleted are in the order of their conversations: threads, else channels.
    """

    def __init__(self, segments: Sequence[Segment]) -> None:
        """Sorts the texts by conversation, a million messages in a second.

        Raises:
            InputError: the index is damaged.
        """
        parts = [(segment.fields, segment.entry.rows) for segment in segments]
        self.begins = offsets_of(np.array([rows for _, rows in parts], np.int64))
        """(S + 1,) int64: the number of each segment's first text, and the total."""
        self.are_known = any(fields is not None for fields, _ in parts)
        """Whether any text has metadata."""
        self.authors, names = _numbered(parts, "author")
        self.written = np.bincount(self.authors, minlength=len(names))
        """(authors,) int64: number of messages by author, in the order of `authors`."""
        self._named: dict[str, list[int]] = {}
        for number, name in enumerate(names):
            for word in {*words_of(name)}:
                self._named.setdefault(word, []).append(number)
        thread, source = (_numbered(parts, name)[0] for name in ("thread", "source"))
        self.times: Numbers = _column(parts, lambda one: one.times, np.nan)
        self.newest = float(np.nanmax(self.times, initial=-np.inf))
        """Time of the newest message; -inf if unknown."""
        self.titles = _column(parts, lambda one: one.numbers("title"), 0)
        """(texts,) numbers of titles in their segments; above 0 for mails, which have subjects."""
        self.asks = _column(parts, lambda one: one.asks, 0)
        self.lengths = np.concatenate([[0], *(one.words.lengths for one in segments)])[1:]
        group = np.where(thread > 0, thread, -source)
        deleted = np.concatenate([np.empty(0, np.bool_), *(one.deleted for one in segments)])
        kept = np.flatnonzero((group != 0) & ~deleted)
        order = kept[np.lexsort((self.times[kept], group[kept]))]
        gaps, groups = np.diff(self.times[order]), group[order]
        apart = (np.diff(groups) != 0) | ((groups[1:] < 0) & (gaps > _APART))
        # nothing is before the first and after the last text; deleted texts are at 0
        edge = np.full(_FURTHEST, -1)
        self._ordered = np.concatenate([edge, order, edge])
        runs = np.concatenate([[0], np.cumsum(apart)])[: len(order)]
        self._runs = np.concatenate([edge, runs, edge])
        self._runs[0] = -2
        self._at = np.zeros(len(group), np.int64)
        self._at[order] = np.arange(len(order)) + _FURTHEST

    def named(self, word: str) -> list[int]:
        """Returns the numbers of the authors whose names contain a word, also with `'s`."""
        return self._named.get(word.removesuffix("'s"), [])

    def at_distance(self, texts: Rows, distances: Sequence[int]) -> Rows:
        """Returns (D, N) int64: the texts at D signed distances from (N,) texts; -1 for none."""
        at = self._at[texts]
        others = at + np.array(distances)[:, None]
        return np.where(self._runs[others] == self._runs[at], self._ordered[others], -1)


_Parts = Sequence[tuple[Fields | None, int]]
"""The metadata of each segment's texts, and their number."""


def _column(parts: _Parts, read: Callable[[Fields], NDArray[Any]], unknown: float) -> NDArray[Any]:
    columns = [np.full(n, unknown) if one is None else read(one) for one, n in parts]
    return np.concatenate(columns) if columns else np.empty(0)


def _numbered(parts: _Parts, name: str) -> tuple[Rows, list[str]]:
    """Returns (texts,) int64 numbers of a field's values, alike in all segments, and the values.

    Number 0 means unknown.
    """
    known = {"": 0}

    def read(one: Fields) -> NDArray[Any]:
        numbers = one.numbers(name)
        used = np.unique(numbers)
        values = [known.setdefault(one.value(number), len(known)) for number in used.tolist()]
        return np.array(values, np.int64)[np.searchsorted(used, numbers)]

    return _column(parts, read, 0).astype(np.int64), list(known)


@dataclass(frozen=True)
class Asked:
    """The authors, date and adjacent words that a query asks for."""

    date: "Date"
    authors: NDArray[np.bool_] | None
    """Whether the query names each author, by the numbers of `Messages`; None if it names none."""
    pairs: Sequence[tuple[str, str]]
    """Stems of adjacent words in the query."""


@dataclass(frozen=True)
class Date:
    """The parts of a date in a query; 0 for a missing part."""

    year: int = 0
    month: int = 0
    day: int = 0

    def __str__(self) -> str:
        """Returns the date in words.

        >>> str(Date(2023, 5, 8)), str(Date(month=3)), str(Date(2023))
        ('8 May 2023', 'March', '2023')
        """
        month = _NAMES[self.month - 1].split()[0].title() if self.month else ""
        parts = [self.day, month, self.year]
        return " ".join(str(part) for part in parts if part)

    def matches(self, times: Numbers) -> Numbers:
        """Returns how many parts of the date match, for (N,) seconds since 1970 in UTC."""
        known = np.isfinite(times)
        days = np.where(known, times, 0).astype("M8[s]").astype("M8[D]")
        months, years = days.astype("M8[M]"), days.astype("M8[Y]")
        since = np.stack([part.astype(np.int64) for part in (years, months - years, days - months)])
        wanted = np.array([[self.year], [self.month], [self.day]])
        same = (wanted > 0) & (since == wanted - [[1970], [1], [1]])
        return np.where(known, same.sum(axis=0), 0.0)


_NAMES = (
    "january jan januar janvier enero gennaio ocak",
    "february feb februar février febrero febbraio şubat", "march mar märz mars marzo mart",
    "april apr avril abril aprile nisan", "may mai mayo maggio mayıs",
    "june jun juni juin junio giugno haziran", "july jul juli juillet julio luglio temmuz",
    "august aug août agosto ağustos", "september sept sep septembre septiembre settembre eylül",
    "october oct oktober octobre octubre ottobre ekim", "november nov novembre noviembre kasım",
    "december dec dezember décembre diciembre dicembre aralık",
)  # fmt: skip
"""Names of months, in six languages."""
_MONTHS = {name: number for number, names in enumerate(_NAMES, 1) for name in names.split()}
_MONTH = rf"(?P<month>{'|'.join(sorted(_MONTHS, reverse=True))})"
_YEAR = r"(?P<year>(?:19|20)\d\d)"
_DATES = (
    re.compile(rf"\b{_YEAR}-(?P<number>\d\d)(?:-(?P<day>\d\d))?\b"),
    re.compile(
        rf"\b(?P<day>\d\d?)(?:st|nd|rd|th|er|\.)?(?: of| de)? {_MONTH}\b\.?,?"
        rf"(?: (?:del? )?{_YEAR})?"
    ),
    re.compile(rf"\b{_MONTH}\.? (?P<day>\d\d?)(?:st|nd|rd|th)?\b(?:,? {_YEAR})?"),
    re.compile(
        r"\b(?:in|of|since|last|during|until|by|before|after|early|late|im|seit|ab|bis|vor|nach|en|"
        rf"depuis|avant|après|desde|hasta|nel|da|a) {_MONTH}\b(?:,? (?:(?:of|del?) )?{_YEAR})?"
    ),
    re.compile(rf"\b{_MONTH},? (?:del? )?{_YEAR}\b"),
    re.compile(
        r"\b(?:in|of|since|during|until|by|before|after|seit|en|depuis|avant|après|desde|hasta|"
        rf"nel) {_YEAR}\b"
    ),
)
"""Match dates. A month alone needs a word such as "in" before it: people march, and may."""
_HOLIDAYS = {
    "christmas eve": (12, 24), "christmas": (12, 25), "new year's eve": (12, 31),
    "new year": (1, 1), "valentine": (2, 14), "halloween": (10, 31),
}  # fmt: skip
_HOLIDAY = re.compile(
    rf"\b(?:on|at|last|this|before|after) (?P<holiday>{'|'.join(_HOLIDAYS)})(?:'s)?(?: day)?\b"
    rf"(?: {_YEAR})?"
)
_LAST = re.compile(rf"\blast {_MONTH}")


def date_rules() -> dict[str, Any]:
    """Returns the patterns, months and holidays of `date_in`, for use in other programs."""
    patterns = [one.pattern for one in (*_DATES, _HOLIDAY)]
    return {"patterns": patterns, "last": _LAST.pattern, "months": _MONTHS, "holidays": _HOLIDAYS}


def date_in(query: str) -> tuple[str, Date]:
    """Returns the words of a query that name a date (empty if none do), and the date.

    >>> date_in("What did Ann do on 8 May, 2023?")
    ('8 may, 2023', Date(year=2023, month=5, day=8))
    >>> date_in("What did we eat on Christmas 2023?")[1], date_in("Was war im März?")[1]
    (Date(year=2023, month=12, day=25), Date(year=0, month=3, day=0))
    >>> date_in("May I march in 3 days?")
    ('', Date(year=0, month=0, day=0))
    """
    text = query.lower()
    for pattern in (*_DATES, _HOLIDAY):
        if (found := pattern.search(text)) is None:
            continue
        parts = {key: value for key, value in found.groupdict().items() if value}
        if "holiday" in parts:
            month, day = _HOLIDAYS[parts["holiday"]]
        else:
            month = _MONTHS[parts["month"]] if "month" in parts else int(parts.get("number", 0))
            day = int(parts.get("day", 0))
        return found[0], Date(int(parts.get("year", 0)), month, day)
    return "", Date()


def year_of_last(query: str, month: int, newest: float) -> int:
    """Returns the year of "last March" in a query, from the newest message's time; 0 if none.

    >>> noon = 1_700_000_000.0  # on 14 November 2023
    >>> year_of_last("the party last March", 3, noon), year_of_last("last December", 12, noon)
    (2023, 2022)
    """
    if not _LAST.search(query.lower()) or not np.isfinite(newest):
        return 0
    now = np.datetime64(int(newest), "s").astype("M8[M]").astype(int)
    return int(1970 + (now - (month - 1)) // 12)


NOTHING = Found(np.empty(0, np.int64), np.empty(0))


def is_close(asked: Asked, found: Sequence[Found]) -> bool:
    """Returns whether the texts found by meaning and by words are relevant to a query.

    If no text shares a word with it, the nearest text may be about something else.
    """
    if len(found) < 2 or asked.authors is not None or asked.date != Date():
        return True
    by_meaning, by_words = found
    return len(by_words.places) > 0 or by_meaning.scores.max(initial=0) >= _CLOSE


class Candidates:
    """Texts that may be the best for queries, and the texts around them.

    Each is a key: query number * total number of texts + text number.
    """

    def __init__(self, found: Sequence[Rows], messages: Messages, absent: Absent) -> None:
        """Collects the texts that were found, and the messages next to them.

        Args:
            found: (N,) int64 texts for each query.
            messages: The metadata of all texts.
            absent: (texts,) bool, texts to leave out.
        """
        self._messages, self._count = messages, int(messages.begins[-1])
        self._begins = np.arange(len(found) + 1) * self._count
        keys = _distinct([texts + begin for texts, begin in zip(found, self._begins, strict=False)])
        if messages.are_known:
            keys = _distinct([keys, *self._at_distance(keys, (-1, 1))])
        if absent is not None:
            keys = keys[~absent[keys % self._count]]
        self.texts: Rows = keys % self._count
        """(C,) int64: the candidates, ascending for each query."""
        self.ends: list[int] = np.searchsorted(keys, self._begins).tolist()
        """Where the candidates of each query begin, and the end."""
        self.read: Rows = keys
        """(R,) int64: ascending keys of texts whose words and meaning are compared."""
        if not messages.are_known:
            return
        around = self._at_distance(keys, (-_FURTHEST, -1, 1, _FURTHEST))
        self.read = _distinct([keys, *around])
        self._own = np.searchsorted(self.read, keys)
        self._around = np.where(around < 0, len(self.read), np.searchsorted(self.read, around))
        before, author = around[1] % self._count, messages.authors[self.texts]
        self._is_same = (messages.authors[before] == author) & (author > 0)
        self._after_question = (messages.asks[before] > 0) & ~self._is_same
        self._depends = messages.titles[self.texts] == 0

    def _at_distance(self, keys: Rows, distances: Sequence[int]) -> Rows:
        texts = keys % self._count
        others = self._messages.at_distance(texts, distances)
        return np.where(others < 0, -1, keys - texts + others)

    def stretches(self) -> Iterator[tuple[int, int, slice, Rows]]:
        """Yields a query, a segment, the part of `read` in both, and the rows in that segment."""
        parts = self._messages.begins[:-1]
        begins = (self._begins[:-1, None] + parts).ravel()
        ends = np.append(np.searchsorted(self.read, begins), len(self.read)).tolist()
        for number, (begin, end) in enumerate(pairwise(ends)):
            if begin < end:
                query, part = divmod(number, len(parts))
                yield query, part, slice(begin, end), self.read[begin:end] - begins[number]

    def by_words(self, shares: Numbers) -> Numbers:
        """Returns (C,) scores by words, from (R,) shares of the texts and the texts around them."""
        if not self._messages.are_known:
            return shares
        own, far_before, before, after, far_after = self._parts(shares)
        from_before = before * (_ASKED * self._after_question + _AROUND * self._is_same)
        around = from_before + _AROUND * (after + far_before + far_after)
        return np.asarray(own + self._depends * around)

    def by_meaning(self, cosines: Numbers) -> Numbers:
        """Returns (C,) scores by meaning, likewise from (R,) cosines."""
        if not self._messages.are_known:
            return cosines
        own, far_before, before, after, far_after = self._parts(cosines)
        around = _ADJACENT * (before + after) + _FAR * (far_before + far_after)
        return np.asarray(own + self._depends * around)

    def _parts(self, values: Numbers) -> tuple[Numbers, ...]:
        own, around = values[self._own], np.append(values, 0.0)[self._around]
        return (own, *np.where(around == own, 0, around))  # a repeated text adds nothing

    def by_facts(self, asked: Sequence[Asked]) -> Numbers:
        """Returns (C,) scores by the metadata of the messages."""
        messages, texts = self._messages, self.texts
        if not messages.are_known:
            return np.zeros(len(texts))
        found = _LENGTH * np.log1p(messages.lengths[texts])
        found -= _ENDS * (messages.asks[texts] >= ENDS)
        found -= _SHORT * (messages.lengths[texts] <= _FEW)
        found *= self._depends
        for what, of_query in zip(asked, starmap(slice, pairwise(self.ends)), strict=True):
            if what.authors is not None:
                found[of_query] += _BY * what.authors[messages.authors[texts[of_query]]]
            if what.date != Date():
                found[of_query] += _ON * what.date.matches(messages.times[texts[of_query]])
        return np.asarray(found)


def _distinct(texts: Sequence[Rows]) -> Rows:
    """Returns the distinct texts of arrays, ascending, without -1."""
    found = np.sort(np.concatenate(texts))  # np.unique takes three times as long
    first = np.concatenate([[True], found[1:] != found[:-1]])[: len(found)]
    return np.asarray(found[first & (found >= 0)])


class Together:
    """Hybrid search by words and meaning in segments that do not change."""

    def __init__(self, segments: Sequence[Segment], stem: Stem) -> None:
        """Prepares a search, and reads the metadata of all messages.

        Raises:
            InputError: the index is damaged.
        """
        self._segments, self._stem = segments, stem
        self._messages = Messages(segments)

    def names(self, queries: Sequence[str]) -> list[frozenset[str]]:
        """Returns the words of each query that name an author rather than a topic.

        A word counts as a name if at least as many messages are by such authors as contain it.
        """
        words = [words_of(query) for query in queries]
        written, most = {}, _MOST_BY * len(self._messages.authors)
        for word in dict.fromkeys(chain.from_iterable(words)):
            count = int(self._messages.written[self._messages.named(word)].sum())
            if 0 < count < most:
                written[word] = count
        keys = keys_of(self._stem([word.removesuffix("'s") for word in written]))
        having = sum((one.matcher.find(keys)[1] for one in self._segments), np.zeros(len(keys)))
        counts = zip(written.items(), having.tolist(), strict=True)
        names = {word for (word, count), texts in counts if count >= texts}
        return [frozenset(names.intersection(of_query)) for of_query in words]

    def asked_by(self, query: str, ranks: Ranks, names: frozenset[str]) -> Asked:
        """Returns what a query asks for; `names` are its words that name authors."""
        words = words_of(query)
        says = [word not in names and rarity(ranks.get(word)) > 0 for word in words]
        # a stem may end in another letter than its words
        stems = [one[:-1] if one[3:] else one for one in self._stem(words)]
        pairs = zip(pairwise(stems), pairwise(says), strict=True)
        authors = None
        if names:
            authors = np.zeros(len(self._messages.written), np.bool_)
            authors[list(chain.from_iterable(map(self._messages.named, names)))] = True
        return Asked(self.date(query)[1], authors, [pair for pair, both in pairs if any(both)])

    def date(self, query: str) -> tuple[str, Date]:
        """Like `date_in`, but also works out the year of "last March"."""
        words, date = date_in(query)
        if date.month and not date.year:
            date = replace(date, year=year_of_last(query, date.month, self._messages.newest))
        return words, date

    def best(
        self,
        words: WordSearch,
        asked: Sequence[Asked],
        queries: Embeddings,
        lists: Iterable[Sequence[Found]],
        absent: Sequence[Absent],
        weight: float,
        top_k: int,
    ) -> list[Found]:
        """Returns for each query the `top_k` best texts, best first.

        Args:
            words: The words of the queries.
            asked: The authors, dates and adjacent words that they ask for.
            queries: (Q, D) float32, unit or zero rows.
            lists: For each query, the best texts by meaning, by words, or both. These and the
                messages next to them are candidates.
            absent: Texts of each segment to leave out.
            weight: Weight of meaning, from 0 to 1.
            top_k: Number of texts.
        """
        begins = self._messages.begins
        results: list[Found] = []
        hidden = None
        if any(one is not None for one in absent):
            parts = zip(absent, np.diff(begins).tolist(), strict=True)
            hidden = np.concatenate([np.zeros(n, np.bool_) if a is None else a for a, n in parts])
        places = [segments_and_rows(np.concatenate([one.places for one in both])) for both in lists]
        found = [begins[segments] + rows for segments, rows in places]
        for first in range(0, len(found), _AT_ONCE):
            last = first + _AT_ONCE
            some = Candidates(found[first:last], self._messages, hidden)
            shares, cosines = np.empty((2, len(some.read)))
            for query, part, within, rows in some.stretches():
                shares[within] = words.shares(first + query, part, rows)
                meant = queries[first + query]
                cosines[within] = self._segments[part].scores(rows, meant, map_file=True)
            scores = (1 - weight) * (some.by_words(shares) + some.by_facts(asked[first:last]))
            scores += weight * some.by_meaning(cosines)
            for what, (begin, end) in zip(asked[first:last], pairwise(some.ends), strict=True):
                texts, of_query = some.texts[begin:end], scores[begin:end]
                results.append(self._best(texts, of_query, what, 1 - weight, top_k))
        return results

    def _best(self, texts: Rows, scores: Numbers, asked: Asked, weight: float, top_k: int) -> Found:
        """Returns the best texts, after checking good candidates for adjacent words."""
        parts = np.searchsorted(self._messages.begins, texts, side="right") - 1
        rows = texts - self._messages.begins[parts]
        if asked.pairs:
            read = np.argsort(-scores, kind="stable")[:_READ]
            said = [
                *map(self._said, parts[read].tolist(), rows[read].tolist(), texts[read].tolist())
            ]
            stand = [_side_by_side(text, asked.pairs) for text in said]
            scores[read] += weight * _TOGETHER / len(asked.pairs) * np.array(stand, np.float64)
        best = np.argsort(-scores, kind="stable")[:top_k]
        return Found((parts[best] << ROW_BITS) + rows[best], scores[best])

    def _said(self, part: int, row: int, text: int) -> str:
        """Returns the title and text of a message."""
        segment, title = self._segments[part], int(self._messages.titles[text])
        said = segment.texts[row]
        return f"{segment.fields.value(title)} {said}" if title and segment.fields else said


def _side_by_side(text: str, pairs: Sequence[tuple[str, str]]) -> int:
    """Returns how many pairs of stems are adjacent in a text, with any endings.

    >>> _side_by_side("Our night trains are late.", [("night", "train"), ("train", "night")])
    1
    """
    text = text.lower()
    return sum(
        first in text and second in text and _follows(text, first, second)
        for first, second in pairs
    )


def _follows(text: str, first: str, second: str) -> bool:
    """Returns whether a stem follows another stem, after an ending and a space."""
    end = text.find(first) + len(first)
    while end >= len(first):
        if text.find(second, end + 1, end + _ENDING + len(second)) >= 0:
            return True
        end = text.find(first, end - len(first) + 1) + len(first)
    return False
