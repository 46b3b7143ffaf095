"""Converts an export to comments, in a temporary file of JSON lines that every engine reads.

Finds the message before each message, in its thread or in its channel.

Names threads if the export does not: a message is in the thread of the message that it answers.

Collects words that several authors used, so that one person's name or password is left out.
"""

import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from sys import intern
from typing import NamedTuple

import duckdb
import msgspec
import polars as pl

from rejoinder.corpus.export_options import REASONS, ExportOptions, Texts
from rejoinder.corpus.manifest import ExportCounts
from rejoinder.corpus.options import FIELDS, Columns
from rejoinder.errors import InputError
from rejoinder.exports import FORMATS, exports_of
from rejoinder.exports.base import ExportFormat, KeyNumbers, Malformed, Message, why_not
from rejoinder.exports.files import opened
from rejoinder.io.files.addresses import AnyPath
from rejoinder.io.files.storage import is_there
from rejoinder.text.columns import as_series, tokenize


class Threads:
    """Names the threads of messages. A message takes about 30 bytes, a thread also its name.

    >>> threads = Threads()
    >>> said = (("a", None), ("b", "a"), ("c", "b"), ("d", "lost"))
    >>> [threads.name(id_, parent) for id_, parent in said]
    ['a', 'a', 'a', 'lost']
    """

    def __init__(self) -> None:
        self._ids = KeyNumbers()
        self._names: list[str | None] = []
        """None: the message's own id."""
        self.are_apart = True
        """Whether every answer is in the same thread as its message."""

    def name(self, id_: str, parent: str | None, given: str | None = None) -> str:
        """Returns the thread of a message: `given`, or else the thread of the message it answers.

        This is the parent's id if the parent has not come yet, and its own id if it has no parent.
        """
        above = -1 if parent is None else self._ids.find(hash(parent))
        name = parent
        if above >= 0:
            name = self._names[above] = self._names[above] or parent
        if given is not None and given != name:
            self.are_apart &= above < 0
            name = intern(given)
        if self._ids.add(hash(id_)) == len(self._names):
            self._names.append(None if name == id_ else name)
        return name or id_


_LONGEST, _MOST = 1_000, 2_000
"""Messages after which a channel without pauses is cut: a thread stays in one split and in memory.
The cut is before a message that answers none, if possible."""


class Position(NamedTuple):
    """Where a message stands in its conversation."""

    before: str | None
    """Id of the message before it; None if it begins a thread or comes after a pause."""
    is_answer: bool
    """Whether the message before it is by another author."""
    thread: str
    """Its thread, or else the id of the first message in its channel since the last pause."""


class Conversations:
    """Finds the position of messages; they must come in the order of time within a channel.

    A message that answers an earlier conversation is not in the conversation around it, unless it
    begins that. Memory holds the last message per thread and channel, and ids since a pause.

    >>> said = [Message(id=i, author=a, time=t, source="x", text="") for i, a, t in
    ...     [("a", "A", 0.0), ("b", "A", 5.0), ("c", "B", 9.0), ("d", "B", 999.0)]]
    >>> seen = Conversations(within=60)
    >>> [tuple(seen.place(one)) for one in said]
    [(None, False, 'a'), ('a', False, 'a'), ('b', True, 'a'), (None, False, 'd')]
    """

    def __init__(self, within: float) -> None:
        """Counts more than `within` seconds as a pause. Threads have no pauses and stay uncut."""
        self._within = within
        self._last: dict[int, tuple[str, str, float | None, str, int]] = {}
        self._said: dict[int, set[int]] = {}
        """Hashes of the ids of each channel since its last pause, at most 2,000."""

    def place(self, message: Message) -> Position:
        """Returns the position of a message, and records it as the latest."""
        key = hash((message.source, message.thread))  # smaller than a pair of strings per thread
        last = self._last.get(key)
        if last is None or (message.thread is None and self._ends(last[2], last[4], message)):
            position, count = Position(None, False, message.thread or message.id), 1
        else:
            position, count = Position(last[0], last[1] != message.author, last[3]), last[4] + 1
        if message.thread is None:
            said = self._said[key] = set() if count == 1 else self._said[key]
            if said and message.parent is not None and hash(message.parent) not in said:
                return position
            said.add(hash(message.id))
        time = None if message.thread else message.time
        self._last[key] = (message.id, sys.intern(message.author), time, position.thread, count)
        return position

    def _ends(self, before: float | None, count: int, message: Message) -> bool:
        if count == _MOST or (count >= _LONGEST and message.parent is None):
            return True
        now = message.time
        return before is not None and now is not None and abs(now - before) > self._within


Export = tuple[Path, ExportFormat]
"""An export and its format."""
COLUMNS = Columns({name: name for name in FIELDS}, given=True)
"""The columns of the written files."""
_SHOWN = 20
_MIN_AUTHORS = 5


class Comment(msgspec.Struct, omit_defaults=True):
    """A row of the written files: the fields that engines read, and the message's position."""

    id: str
    parent: str | None
    thread: str | None
    author: str
    source: str
    time: float | None = msgspec.field(name="created")
    text: str
    before: str | None = None
    """Id of the message that it answers or, if unknown, of the message before it."""
    is_answer: bool = False
    """Whether the message before it is by another author."""
    conversation: str | None = None
    """Its thread, or the first message since the last pause."""
    in_thread: bool = False
    """Whether the export names its thread."""
    confidence: float = 1.0
    """Probability that it answers this message."""


Linking = Callable[[Iterable[Comment]], Iterator[tuple[Comment, Comment | None, float]]]
"""Yields comments, in order within a source, each with its parent and the link's probability."""


@dataclass(frozen=True)
class Converted:
    """A converted export: the file of its messages, and counts."""

    path: Path
    """The export."""
    bytes: int
    file: Path
    counts: ExportCounts
    malformed: list[Malformed]
    """The first malformed messages, at most 20."""
    options: ExportOptions
    words: list[str] | None
    """The words that enough authors used; None if one author is enough."""
    threads_are_apart: bool
    """Whether every answer is in the same thread as its message."""


def exports_among(paths: Sequence[AnyPath], name: str | None, *, has_columns: bool) -> list[Export]:
    """Returns the exports among paths, each with its format; empty if all are dumps.

    `name` is the `--format`. Without it, content decides, unless columns are given.

    Raises:
        InputError: `name` is unknown or can't be used, or only some paths are exports.
    """
    if name is not None:
        if has_columns:
            raise InputError("`columns` is for tables and JSON lines, which have no `format`.")
        return [(_on_this_machine(path, name), FORMATS[name]) for path in paths]
    if has_columns:
        return []
    here = [path for path in paths if isinstance(path, Path) and is_there(path)]
    found = [(path, export) for path in here for export in exports_of(path)]
    others = set(map(str, paths)) - {str(path) for path, _ in found}
    if found and others:
        raise InputError(
            f"{found[0][0]} is an export of {found[0][1].title}, but {min(others)} is not an "
            "export; extract them one by one."
        )
    return found


def _on_this_machine(path: AnyPath, name: str) -> Path:
    if not isinstance(path, Path):
        raise InputError(f"{path} is an address; copy it here to read it with `format={name!r}`.")
    if not is_there(path):
        raise InputError(f"{path} is not a file or folder.")
    return path


def convert(
    path: Path,
    export: ExportFormat,
    options: ExportOptions,
    texts: Texts,
    file: Path,
    progress: Callable[[int], None],
    *,
    linker: Linking | None = None,
    strict: bool = False,
) -> Converted:
    """Writes the messages of an export to a file; counts the messages left out, by reason.

    `progress` is called with the number of messages read.

    Raises:
        InputError: a file of the export can't be read, or with `strict`, a message.
        MissingExtraError: a package that reads the format is not installed.
    """
    seen: Counter[str] = Counter()
    malformed: list[Malformed] = []
    encoder = msgspec.json.Encoder()
    conversations: Conversations | None = Conversations(options.within)
    threads = Threads() if _way(options, export, {"linked": 1}, linker) == "links" else None
    least = options.min_authors or (1 if export.is_public else _MIN_AUTHORS)
    words = SharedWords(least, file.with_suffix(".words")) if least > 1 else None
    with opened(path) as files, file.open("wb") as out:
        size = files.size
        for item in export.read(files):
            if isinstance(item, Malformed):
                if strict:
                    raise InputError(
                        f"{path}: {item.file} message {item.line}: {item.problem}. Without "
                        "`strict=True` such messages are counted and skipped."
                    )
                seen["malformed"] += 1
                malformed += [item][: _SHOWN - len(malformed)]
                continue
            seen["messages"] += 1
            if not seen["messages"] % 1_000:
                progress(seen["messages"])
            if reason := why_not(item, include_private=options.include_private):
                seen[reason] += 1
                continue
            if not options.context and _way(options, export, seen, linker) == "links":
                conversations = None  # positions of messages are not needed
            position = conversations.place(item) if conversations else (None, False, None)
            text = texts.masked(item.text)
            if reason := texts.why_not(text):
                seen[reason] += 1
                continue
            guessed = not export.knows_replies and item.thread is None  # from a name
            seen["guessed" if guessed else "linked"] += item.parent is not None
            if words is not None:
                words.add(item.author, text)
            before, is_answer, conversation = position
            comment = Comment(
                item.id,
                item.parent,
                item.thread,
                item.author,
                item.source,
                item.time,
                text,
                item.parent or before,
                is_answer,
                conversation,
                item.thread is not None,
            )
            if threads is not None:
                comment.thread = threads.name(item.id, item.parent, item.thread)
            out.write(encoder.encode(comment) + b"\n")
    conversations = None
    way = _way(options, export, seen, linker)
    paired = modelled = 0
    if way == "model" and linker is not None:
        threads, trusted = Threads(), export.knows_replies
        paired, modelled = _pair_by(linker, file, threads, options.min_confidence, trusted)
    elif way != "links":
        threads = Threads() if seen["linked"] or seen["guessed"] else None
        paired = _pair_adjacent(file, threads)
    apart, threads = threads is None or threads.are_apart, None
    counts = ExportCounts(
        format=export.name,
        messages=seen["messages"],
        malformed=seen["malformed"],
        dropped={reason: seen[reason] for reason in REASONS},
        linked=seen["linked"],
        adjacent=paired + (0 if way == "model" else seen["guessed"]),
        modelled=modelled,
    )
    shared = None if words is None else words.words()
    return Converted(path, size, file, counts, malformed, options, shared, apart)


def _way(
    options: ExportOptions, export: ExportFormat, seen: Mapping[str, int], linker: Linking | None
) -> str:
    """Returns how to pair messages, by the links seen so far."""
    has_links = export.knows_replies and seen["linked"]
    return options.pair or ("links" if has_links else "model" if linker else "adjacent")


@contextmanager
def _rewritten(file: Path) -> Iterator[tuple[Iterator[Comment], Callable[[Comment], object]]]:
    """Yields the comments of a file, and a function that writes them back."""
    encoder, decoder = msgspec.json.Encoder(), msgspec.json.Decoder(Comment)
    changed = file.with_suffix(".paired")
    with file.open("rb") as lines, changed.open("wb") as out:
        yield map(decoder.decode, lines), lambda comment: out.write(encoder.encode(comment) + b"\n")
    changed.replace(file)


def _pair_adjacent(file: Path, threads: Threads | None) -> int:
    """Links messages to the message before them, in their file. Returns the number of links.

    `threads` names the threads of messages with links, if there are any.
    """
    paired = 0
    with _rewritten(file) as (comments, write):
        for comment in comments:
            if comment.parent is None and comment.is_answer:
                comment.parent = comment.before
                paired += 1
            if threads is None:
                comment.thread = comment.conversation
            else:
                comment.thread = threads.name(comment.id, comment.before, comment.thread)
            write(comment)
    return paired


def _pair_by(
    linker: Linking, file: Path, threads: Threads, least: float, trusted: bool
) -> tuple[int, int]:
    """Links messages by `linker`; in threads, links each message to the message before it.

    A message that continues one of the same author answers none. Links in the export are kept if
    `trusted`. Returns the number of links to the message before, and of other links by the linker.
    """
    paired = modelled = 0

    def named(comment: Comment) -> Comment:
        comment.thread = threads.name(comment.id, comment.parent, comment.thread)
        return comment

    def outside() -> Iterator[Comment]:
        nonlocal paired
        for comment in comments:
            if not comment.in_thread:
                comment.thread = None  # was only named in case there are links
                yield comment
                continue
            if comment.parent is None and comment.is_answer:
                comment.parent = comment.before
                paired += 1
            write(named(comment))

    with _rewritten(file) as (comments, write):
        for comment, answered, sure in linker(outside()):
            if not trusted or comment.parent is None:
                comment.parent = None
                if answered is not None and sure >= least and answered.author != comment.author:
                    comment.parent = comment.before = answered.id
                    comment.confidence = round(sure, 4)
                    modelled += 1
            write(named(comment))
    return paired, modelled


_CHUNK = 2_000_000
"""Characters of texts that are counted at a time, about 20,000 messages of a chat."""
_MEMORY = "300MB"
_QUERY = """SELECT word FROM (SELECT DISTINCT word, author FROM read_parquet('{files}'))
    GROUP BY word HAVING count(*) >= {least}"""


class SharedWords:
    """Collects words with their authors: frequent words in memory, others on disk."""

    def __init__(self, least: int, folder: Path) -> None:
        """Prepares to collect the words that at least `least` authors used.

        Creates `folder` for the data that does not stay in memory.
        """
        self._least = least
        self._folder = folder
        self._authors: list[str] = []
        self._texts: list[str] = []
        self._shared = pl.DataFrame(schema={"word": pl.String})
        self._chars = 0
        self._files = 0
        folder.mkdir()

    def add(self, author: str, text: str) -> None:
        """Adds the words of a text. All texts without an author count as one author."""
        self._authors.append(author)
        self._texts.append(text)
        self._chars += len(text)
        if self._chars >= _CHUNK:
            self._count()

    def words(self) -> list[str]:
        """Returns the words that at least `least` authors used, sorted."""
        self._count()
        found = set(self._shared.get_column("word"))
        if self._files:
            files = str(self._folder / "*.parquet").replace("'", "''")
            spill = str(self._folder / "spill")
            with duckdb.connect(config={"memory_limit": _MEMORY, "temp_directory": spill}) as base:
                rows = base.execute(_QUERY.format(files=files, least=self._least)).fetchall()
            found.update(word for (word,) in rows)
        return sorted(found)

    def _count(self) -> None:
        """Keeps the words that enough authors used in these texts in memory; writes the others."""
        authors = pl.Series("author", self._authors, dtype=pl.String).hash()
        frame = pl.DataFrame({"word": tokenize(as_series(self._texts)), "author": authors})
        self._authors, self._texts, self._chars = [], [], 0
        pairs = frame.explode("word").drop_nulls().unique()
        pairs = pairs.join(self._shared, on="word", how="anti")
        counts = pairs.group_by("word").agg(pl.len().alias("authors"))
        enough = counts.filter(pl.col("authors") >= self._least).select("word")
        self._shared = pl.concat([self._shared, enough])
        rest = pairs.join(enough, on="word", how="anti")
        if len(rest):
            path = self._folder / f"{self._files}.parquet"
            rest.write_parquet(path, compression="zstd", compression_level=1)
            self._files += 1
