"""Prints messages that a search found: who wrote them, when and where, and what is around them."""

import re
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.text import Text

from rejoinder.cli import output
from rejoinder.corpus.texts import Entry
from rejoinder.io.formats.texts import KEYS
from rejoinder.text.normalize import words_of

if TYPE_CHECKING:
    from rejoinder.index.hits import IndexedText, IndexHit
    from rejoinder.inference.search import Hit


Find = Callable[[Sequence[str]], list[str | None]]
"""Returns the texts with some ids, None where there is none."""


def hits_among(
    entries: Sequence[Entry], found: "Sequence[Sequence[Hit]]"
) -> "list[list[IndexHit]]":
    """Returns which messages were found for each query, as an index does."""
    from rejoinder.index.hits import IndexHit

    return [
        [
            IndexHit(one.id or "", hit.score, one.text, one.about)
            for hit in hits
            if (one := entries[hit.index])
        ]
        for hits in found
    ]


def distinct(
    search: "Callable[[int], list[list[IndexHit]]]", top_k: int, *, folds: bool
) -> "tuple[list[list[IndexHit]], dict[str, int]]":
    """Returns the `top_k` best hits of each query that say different things, and their copies.

    Args:
        search: Returns for each query so many hits, or all if there are fewer.
        top_k: Number of hits.
        folds: If not, the best hits are returned as they are.
    """
    if not folds:
        return search(top_k), {}
    most = top_k + 1  # where one more says something else, all copies of the last were found
    while True:
        found = search(most)
        firsts = [firsts_of(list(map(_name_of, hits))) for hits in found]
        if all(
            len(places) > top_k or len(hits) < most
            for hits, (places, _) in zip(found, firsts, strict=True)
        ):
            break
        most *= 2
    copies: dict[str, int] = {}
    for _, numbers in firsts:
        copies |= {name: max(count, copies.get(name, 0)) for name, count in numbers.items()}
    return [
        [hits[place] for place in places[:top_k]]
        for hits, (places, _) in zip(found, firsts, strict=True)
    ], copies


def firsts_of(names: Sequence[str]) -> tuple[list[int], dict[str, int]]:
    """Returns the places of names that none before them equals, and how often each is there.

    >>> firsts_of(["thank you", "why", "thank you"])
    ([0, 1], {'thank you': 2, 'why': 1})
    """
    places = {name: place for place, name in reversed([*enumerate(names)])}
    return sorted(places.values()), dict(Counter(names))


def times(text: str, copies: Mapping[str, int]) -> str:
    """Returns how often a text was found, if more than once."""
    count = copies.get(folded(text), 1)
    return f"  ×{count:,}" if count > 1 else ""


def _name_of(hit: "IndexHit") -> str:
    """Returns what hits have in common of which one is shown: a mail's thread, or their words."""
    has_subject = "title" in hit.about and "thread" in hit.about
    return f"\0{hit.about['thread']}" if has_subject else folded(hit.text)


def _more(hit: "IndexHit", copies: Mapping[str, int]) -> str:
    count = copies.get(name := _name_of(hit), 1) - 1
    if not count or not name.startswith("\0"):
        return times(hit.text, copies)
    return f"  and {count:,} more of its thread"


_ADDRESSED = re.compile(r"\S{1,30}[:,] (?=(?:\S+ ){4})")


def folded(text: str) -> str:
    """Returns what copies of a text have in common: a bot says it to one after another.

    >>> folded("ann: please don't flood the channel, thanks!")
    "please don't flood the channel thanks"
    >>> folded("Yes, thanks.")
    'yes thanks'
    """
    line = _one_line(text).casefold()
    said = line[found.end() :] if (found := _ADDRESSED.match(line)) else line
    return " ".join(words_of(said)) or line


def finder(entries: Sequence[Entry]) -> Find:
    """Returns a function that gives the texts of ids."""
    texts = {entry.id: entry.text for entry in entries}
    return lambda ids: [texts.get(one) for one in ids]


def print_messages(
    find: Find,
    queries: list[str],
    found: "list[list[IndexHit]]",
    score: str,
    names: tuple[str, str] = ("query", "text"),
    *,
    marked: bool = False,
    context: bool = False,
    copies: Mapping[str, int] = MappingProxyType({}),
) -> None:
    """Prints messages of an export, by their score's name.

    Args:
        find: Gives the texts of ids, None for an unknown one.
        queries: What was searched for.
        found: Of each query.
        score: Name of the score.
        names: Names of the queries and of the messages' texts.
        marked: Whether to mark the words of the query.
        context: Whether messages around hits were searched; they are printed too.
        copies: How many messages say the same, see `distinct`.
    """
    answered = iter(find([hit.about.get("answers", "") for hits in found for hit in hits]))
    if output.form_of_output() == "table" or (context and not output.asked_for("json")):
        for query, hits in zip(queries, found, strict=True):
            _print_blocks(query, hits, answered, copies, marked=marked, context=context)
        return
    own = dict.fromkeys(name for hits in found for hit in hits for name in _own(hit))
    rows = [
        {
            names[0]: query,
            "rank": rank,
            score: round(hit.score, 6),
            "id": hit.id,
            names[1]: hit.text,
            **_about(hit),
            **{name: hit.about.get(name) for name in own},
            "answered": next(answered),
            **({"matches": matches_of(query, hit.text)} if marked else {}),
            **({"before": _around(hit.before), "after": _around(hit.after)} if context else {}),
        }
        for query, hits in zip(queries, found, strict=True)
        for rank, hit in enumerate(hits, 1)
    ]
    if output.asked_for("json"):
        output.print_json(rows)
        return
    columns = (names[0], "rank", score, "id", names[1], *KEYS, *own, "answered")
    cells = [["" if row[name] is None else row[name] for name in columns] for row in rows]
    output.print_rows(columns, cells)


def _about(message: "IndexHit | IndexedText") -> dict[str, Any]:
    known = {name: message.about.get(name) for name in KEYS}
    return known | {"time": _minute(message.about.get("time"))}


def _own(message: "IndexHit") -> dict[str, Any]:
    """Returns what is known about a message in the user's own fields."""
    known = {*KEYS, "confidence"}
    return {name: value for name, value in message.about.items() if name not in known}


def _around(messages: "Sequence[IndexedText]") -> list[dict[str, Any]]:
    return [{"id": one.id, "text": one.text, **_about(one)} for one in messages]


def _minute(time: float | None) -> str | None:
    return None if time is None else f"{datetime.fromtimestamp(time, UTC):%Y-%m-%d %H:%M}"


def _print_blocks(
    query: str,
    hits: "Sequence[IndexHit]",
    answered: Iterator[str | None],
    copies: Mapping[str, int],
    *,
    marked: bool,
    context: bool,
) -> None:
    """Prints the hits of a query as lines of a conversation."""
    console = Console(highlight=False, markup=False, emoji=False)
    width = console.width if sys.stdout.isatty() else 1_000

    def line(mark: str, text: Text, style: str = "") -> None:
        """Prints a paragraph after a mark in the margin."""
        text.stylize_before(style)
        for number, part in enumerate(text.wrap(console, max(width - 6, 20))):
            part.rstrip()
            console.print(Text(f"{mark if number == 0 else '':>5} ") + part, soft_wrap=True)

    console.print(Text(query, "bold"), soft_wrap=True)
    for rank, hit in enumerate(hits, 1):
        of, place = next(answered), " in " + hit.about["source"] if "source" in hit.about else ""
        if title := hit.about.get("title"):
            place += f": {title}"
        place += "".join(f", {name} {value}" for name, value in _own(hit).items())
        line(f"{rank}", Text(f"{hit.score:.4f}{place}"))
        for message in hit.before:
            line("", _said(message), "dim")
        if of is not None and hit.about["answers"] not in {one.id for one in hit.before}:
            line("", Text(f"in answer to: {output.excerpt(of)}"), "dim")
        said = Text(_said_by(hit)) + _marked_excerpt(hit.text, query, marked=marked)
        said.append(_more(hit, copies), "dim")
        line(">" if context else "", said)
        for message in hit.after:
            line("", _said(message), "dim")
    console.print()


def _said(message: "IndexedText") -> Text:
    return Text(_said_by(message) + output.excerpt(message.text))


def _said_by(message: "IndexHit | IndexedText") -> str:
    """Returns when a message was written, and by whom."""
    time, author = _minute(message.about.get("time")), message.about.get("author")
    return f"{time + '  ' if time else ''}{author + ': ' if author else ''}"


def _marked_excerpt(text: str, query: str, *, marked: bool) -> Text:
    places = matches_of(query, _one_line(text)) if marked else []
    begin = places[0][0] if places else 0
    return marked_text(output.excerpt(text, match=begin), query, marked=marked)


def marked_text(text: str, query: str, *, marked: bool) -> Text:
    """Returns a text for a terminal, on one line. If `marked`, words of the query are bold."""
    shown = Text(_one_line(text))
    for begin, end in matches_of(query, shown.plain) if marked else []:
        shown.stylize("bold", begin, end)
    return shown


def _one_line(text: str) -> str:
    return " ".join(text.split())


def matches_of(query: str, text: str) -> list[tuple[int, int]]:
    """Returns where the words of a query are in a text (`index.words.matches`)."""
    from rejoinder.index.words import matches

    return matches(query, text)
