"""Prints messages that a search found: who wrote them, when and where, and what is around them.

Reads texts from arguments, from files and from standard input.
"""

import os
import re
import select
import shlex
import stat
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from itertools import chain
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.text import Text

from rejoinder.cli import output
from rejoinder.corpus.texts import Entry, entries_of, looks_exported
from rejoinder.errors import InputError, RejoinderError
from rejoinder.exports import format_of_export
from rejoinder.io.files.storage import scratch_folder, storage_errors
from rejoinder.io.formats.text_lines import file_lines, text_lines
from rejoinder.io.formats.texts import KEYS, table_columns, texts_of
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


_READ_BYTES = 1 << 20
_STDIN = "standard input"


def read_lines(path: str) -> list[str]:
    """Returns the lines of a file, which may be compressed, of a pipe, or of standard input (`-`).

    Raises:
        InputError: the file can't be read, is empty, or is not UTF-8 text.
    """
    return list(
        text_lines(_pieces(path), _name(path)) if is_stream(path) else file_lines(Path(path))
    )


def stream_entries(path: str, columns: str | None = None) -> Iterator[Entry]:
    """Yields the texts of a path (`corpus.texts`), of a pipe, or of standard input (`-`).

    After the last one, it notes which messages of an export were left out.

    Raises:
        InputError: the path can't be read, or has no texts.
    """
    if is_stream(path):
        yield from _streamed(path, columns)
        return
    left_out: list[str] = []
    yield from entries_of(Path(path), columns, on_left_out=left_out.append)
    output.note_left_out(Counter(left_out))


def _streamed(path: str, columns: str | None) -> Iterator[Entry]:
    """Yields texts as they come or, once everything has, the messages of an export."""
    pieces, name = _pieces(path), _name(path)
    head = next(pieces, b"")
    if columns is None and looks_exported(head):
        with _scratch() as folder:
            file = folder / Path(name).name
            file.write_bytes(head)
            if b"\0" in head or format_of_export(file):  # archives have their table at the end
                with storage_errors(folder), file.open("ab") as out:
                    out.writelines(pieces)
                yield from stream_entries(str(file))
                return
    if columns is None:
        _note_table(head, name)
    yield from (Entry(*text) for text in texts_of(chain([head], pieces), name, columns))


def _note_table(head: bytes, name: str) -> None:
    """Notes that a stream, which begins with `head`, is lines, if it seems to be a table."""
    names = table_columns(head)
    if names and "text" not in names and head.count(b"\n") > 2:
        output.note(
            f"{name} is read as lines of text. If it is a table, name its column of texts, such "
            f"as --columns text={shlex.quote(names[-1])}"
        )


@contextmanager
def as_files(paths: Sequence[str], *, are_texts: bool = False) -> Iterator[list[str]]:
    """Yields paths, with temporary files for standard input (`-`) and for pipes.

    Exports are read more than once, and archives not from the beginning to the end. With
    `are_texts`, a table on standard input that will be read as lines is noted.

    Raises:
        InputError: standard input is closed, or named twice.
        StorageError: there is no room for temporary files.
    """
    if paths.count("-") > 1:
        raise InputError("- is standard input, which can be read once; name it once.")
    piped = [*filter(is_stream, paths)]
    if not piped:
        yield [*paths]
        return
    with _scratch() as folder:
        files = {}
        for one in piped:
            files[one] = folder / Path(_name(one)).name
            pieces = _pieces(one)
            head = next(pieces, b"")
            with storage_errors(folder), files[one].open("wb") as out:
                out.writelines(chain([head], pieces))
            if are_texts and not (looks_exported(head) and format_of_export(files[one])):
                _note_table(head, _name(one))
        yield [str(files.get(one, one)) for one in paths]


@contextmanager
def _scratch() -> Iterator[Path]:
    """Yields a temporary folder, which errors don't mention."""
    with scratch_folder() as folder:
        try:
            yield folder
        except RejoinderError as error:
            error.args = (str(error).replace(f"{folder}/", ""),)
            raise


def is_stream(path: str) -> bool:
    """Tells whether a path is read once from beginning to end: a pipe, or standard input (`-`)."""
    with suppress(OSError, ValueError):  # not there, or not a path
        return path == "-" or stat.S_ISFIFO(Path(path).stat().st_mode)
    return False


def _pieces(path: str) -> Iterator[bytes]:
    """Yields the bytes of a stream as they come."""
    if path != "-":
        with Path(path).open("rb", buffering=0) as file:
            yield from iter(lambda: file.read(_READ_BYTES), b"")
        return
    if sys.stdin is None:
        raise InputError("standard input is closed; name a file.")
    stream: Any = sys.stdin.buffer
    while True:
        # The system may give a signal to another thread, while the main one starts it. Python
        # handles it in the main thread, which would never know while it waits for input.
        with suppress(OSError):  # not a file of the system
            while not select.select([stream], [], [], 1)[0]:
                output.exit_if_signalled()
        if not (read := stream.read1(_READ_BYTES)):
            return
        yield read


def read_pairs(path: str) -> list[tuple[str, str]]:
    """Reads lines of two sentences separated by a tab, as `read_lines` does.

    Raises:
        InputError: as for `read_lines`, or a line does not have two columns.
    """
    rows = []
    for number, line in enumerate(read_lines(path), 1):
        parts = line.split("\t")
        if len(parts) != 2:
            place = f"{_name(path)} line {number}"
            raise InputError(f"{place}: {len(parts)} columns; two with a tab between are needed.")
        rows.append((parts[0], parts[1]))
    return rows


def _name(path: str) -> str:
    """Returns the name that messages use."""
    return _STDIN if path == "-" else path


def as_text(argument: str) -> str:
    r"""Returns an argument with U+FFFD for bytes that are not UTF-8, which Python makes surrogates.

    >>> as_text('h\udcffi')
    'h�i'
    """
    return argument.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


def given_texts(arguments: Sequence[str] | None, file: str | None) -> list[str]:
    """Returns the texts of arguments, and the lines of a file (see `read_lines`)."""
    return [*map(as_text, arguments or ()), *(read_lines(file) if file else ())]


def where_conditions(words: Sequence[str] | None) -> dict[str, list[str]]:
    """Returns the values of each key of `--where`.

    A comma is part of a value unless a key and = follow it.

    >>> where_conditions(["author=Smith, Ann,source=help", "source=general"])
    {'author': ['Smith, Ann'], 'source': ['help', 'general']}

    Raises:
        InputError: a condition has no =.
    """
    values: dict[str, list[str]] = {}
    for word in words or ():
        for condition in re.split(r",(?=\s*[a-z]+=)", as_text(word)):
            key, equals, value = condition.strip().partition("=")
            if not equals:
                raise InputError(f"--where {condition!r}: write KEY=VALUE, as in source=help.")
            values.setdefault(key, []).append(value)
    return values


def split_lists(words: Sequence[str]) -> list[str]:
    """Splits words that join values by commas. The path of an existing file may hold commas.

    >>> split_lists(["stsb, snli", "mr"])
    ['stsb', 'snli', 'mr']
    """
    values: list[str] = []
    for word in words:
        # unlike Path's method, this is false where a name is too long
        parts = [word] if os.path.exists(word) else word.split(",")  # noqa: PTH110
        values += filter(None, map(str.strip, parts))
    return values
