"""Reads conversations for `explore`, and finds what is new: only that is linked and encoded."""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain, pairwise
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from rejoinder.conversations.answers import linked, says_little, untrusted
from rejoinder.conversations.collection import messages_of_pairs
from rejoinder.corpus.manifest import FILE as PAIRS_FILE
from rejoinder.corpus.texts import Entry, may_be_export, messages_of, refuse_empty
from rejoinder.errors import InputError
from rejoinder.exports.base import ExportFormat
from rejoinder.exports.files import Files
from rejoinder.index.folder import TextIndex
from rejoinder.index.indexing import Index
from rejoinder.inference.sentence_stream import EncodingProgress, Source
from rejoinder.io.files.hashed import blake2b_number
from rejoinder.io.files.storage import first_names
from rejoinder.links.linker import Linker

FILE = "read.bin"
_ROW = np.dtype([("id", "<u8"), ("said", "<u8"), ("channel", "<u8"), ("time", "<f8")])
"""For a message: hashes of its id, of all that was read of it, of its channel and whether it was
linked (0 in a thread); seconds since 1970, infinite if unknown."""

Rows = NDArray[Any]
"""(N,) records of `_ROW`, in reading order."""


@dataclass(frozen=True)
class Changes:
    """Changes since the last reading, in numbers of messages."""

    new: int
    changed: int
    gone: int
    """Messages that were not read again."""


@dataclass(frozen=True)
class Part:
    """Messages that are linked together: those of one export, or all texts of another source."""

    program: str
    """Name of the program; empty for texts that are not from an export."""
    entries: list[Entry]
    linked: bool
    """Whether likely answers are worked out for them."""


def all_linked(parts: Sequence[Part], linker: Linker) -> Iterator[Entry]:
    """Yields the messages of parts, with likely answers where these are wanted."""
    for part in parts:
        yield from filter(None, linked(part.entries, linker)) if part.linked else part.entries


def rows_of(parts: Sequence[Part]) -> Rows:
    """Returns the records of messages to remember; none for texts without ids."""
    found = []
    for part in parts:
        for entry in part.entries:
            if entry.id is None:
                return np.empty(0, _ROW)
            about = entry.about
            said = msgspec.json.encode((entry.text, {**about}, entry.said), order="sorted")
            place = f"{part.linked}/{part.program}/{about.get('source', '')}"
            channel = 0 if about.get("thread") else _hash(place) | 1
            time = np.inf if about.get("time") is None else float(about["time"])
            found.append((_hash(entry.id), blake2b_number(said), channel, time))
    return np.array(found, _ROW)


def _hash(text: str) -> int:
    return blake2b_number(text.encode("utf-8", "surrogatepass"))


@dataclass(frozen=True)
class Before:
    """The messages of the last reading, and their index."""

    rows: Rows
    index: Path

    @classmethod
    def read(cls, folder: Path, index: Path) -> "Before | None":
        """Reads the records in a folder; None if nothing can be compared with them."""
        try:
            rows = np.frombuffer((folder / FILE).read_bytes(), _ROW)
        except (OSError, ValueError):
            return None
        return cls(rows, index) if len(rows) else None

    @cached_property
    def said(self) -> dict[int, int]:
        """What was read of each message, by id; both are hashes."""
        return dict(zip(self.rows["id"].tolist(), self.rows["said"].tolist(), strict=True))

    def differ(self, rows: Rows) -> list[bool]:
        """Returns which messages are new or changed."""
        both = zip(rows["id"].tolist(), rows["said"].tolist(), strict=True)
        return [self.said.get(name) != said for name, said in both]

    def changes(self, rows: Rows) -> Changes:
        """Returns how many messages are new, changed or gone."""
        new = int((~np.isin(rows["id"], self.rows["id"])).sum())
        gone = np.setdiff1d(self.rows["id"], rows["id"])
        return Changes(new, sum(self.differ(rows)) - new, len(gone))

    def gone(self, rows: Rows) -> tuple[list[Entry], Rows]:
        """Returns the messages that were not read again, if the index has them."""
        lost = {*np.setdiff1d(self.rows["id"], rows["id"]).tolist()}
        if not lost:
            return [], rows[:0]
        opened = TextIndex(self.index)
        names = [name for part in opened.segments for name in part.ids if _hash(name) in lost]
        entries = [Entry(one.id, one.text, _given(one.about)) for one in opened.known(names)]
        places = {name: at for at, name in enumerate(self.rows["id"].tolist())}
        return entries, self.rows[[places[_hash(one.id or "")] for one in entries]]

    def rows_in(self, index: TextIndex) -> Rows:
        """Returns the records of the messages of an index."""
        names = [_hash(name) for part in index.segments for name in part.ids]
        return self.rows[np.isin(self.rows["id"], np.array(names, np.uint64))]

    def same(self, rows: Rows) -> dict[int, int]:
        """Returns how many of the first messages of each channel are unchanged.

        If all are unchanged, the number is one more than there are messages.
        """
        old, found = _by_channel(self.rows), dict[int, int]()
        for channel, said in _by_channel(rows).items():
            known = old.get(channel, said[:0])
            least = min(len(said), len(known))
            differ = np.flatnonzero(said[:least] != known[:least])
            first = int(differ[0]) if len(differ) else least
            found[channel] = first + (first == len(said) == len(known))
        return found


def _given(about: Mapping[str, Any]) -> dict[str, Any]:
    """Returns what an export says about a message, without the likely answer."""
    likely = ("answers", "confidence") if "confidence" in about else ()
    return {key: value for key, value in about.items() if key not in likely}


def _by_channel(rows: Rows) -> dict[int, NDArray[np.uint64]]:
    """Returns the text hashes of the messages of each channel, in time order."""
    order = np.lexsort((np.arange(len(rows)), rows["time"], rows["channel"]))
    order = order[rows["channel"][order] > 0]
    channels, firsts = np.unique(rows["channel"][order], return_index=True)
    parts = pairwise([*firsts.tolist(), len(order)])
    return {
        channel: rows["said"][order[first:end]]
        for channel, (first, end) in zip(channels.tolist(), parts, strict=True)
    }


def with_gone(parts: Sequence[Part], gone: Sequence[Entry]) -> list[Part]:
    """Returns parts, with the gone messages added to the last one."""
    *others, last = parts
    return [*others, replace(last, entries=[*last.entries, *gone])]


def update(
    index: Index, parts: Sequence[Part], rows: Rows, before: Before, linker: Linker,
    progress: EncodingProgress,
) -> None:  # fmt: skip
    """Adds new and changed messages to an index.

    The likely answer of a message depends on its neighbours, so some unchanged messages are linked
    again.
    """
    same, written, at = before.same(rows), list[Entry](), 0
    for part in parts:
        some = rows[at : at + len(part.entries)]
        at += len(some)
        channels = some["channel"].tolist()
        found: Sequence[Entry | None] = part.entries
        if part.linked:
            firsts = {
                one.about.get("source"): same[channel]
                for one, channel in zip(part.entries, channels, strict=True)
                if channel
            }
            found = linked(part.entries, linker, same=firsts)
        written += _differing(index, part.entries, found, before.differ(some))
    index.add(iter(written), update=True, progress=progress)


def _differing(
    index: Index, entries: Sequence[Entry], found: Sequence[Entry | None], new: Sequence[bool]
) -> Iterator[Entry]:
    """Yields the messages to write, from those `found`, where None stands for an unchanged one.

    Messages of the same channel and time after a changed one are also written, to keep their order.
    """
    there = [one.id or "" for one, is_new in zip(found, new, strict=True) if one and not is_new]
    known = {one.id: one.about for one in index.known(there)}
    moments, later = set[tuple[Any, Any]](), dict[str, int]()
    differing = dict[int, Entry]()
    for at, (one, is_new) in enumerate(zip(found, new, strict=True)):
        about = entries[at].about
        moment = about.get("source"), about.get("time")
        if one is not None and (is_new or known[one.id or ""] != one.about):
            moments.add(moment)
            differing[at] = one
        elif moment in moments:
            later[entries[at].id or ""] = at
    for old in index.known([*later]):
        at = later[old.id]
        differing[at] = found[at] or entries[at]._replace(about=old.about)
    yield from (differing[at] for at in sorted(differing))


def once(exports: Sequence[Sequence[Part]]) -> list[Part]:
    """Returns the messages of several exports, each once; messages of one program form one part.

    Message numbers differ where only part of a chat was exported. Messages that say the same are
    the same, and a different message whose id is taken gets another id. An edited message
    is kept as in the last export.
    """
    found, ids = dict[str, list[Entry]](), dict[str | None, tuple[Any, ...]]()
    said = defaultdict[tuple[Any, ...], list[str | None]](list)
    for at, part in reversed([*enumerate(chain(*exports), 1)]):
        new, names, used = list[Entry](), dict[str | None, str | None](), Counter[Any]()
        for one in part.entries:
            time = one.about.get("time") or 0
            key = part.program, one.about.get("source"), one.about.get("author"), time
            same, nth = said[*key, one.text], used[*key, one.text]
            used[*key, one.text] += 1
            if nth < len(same):
                names[one.id] = same[nth]
            elif ids.get(one.id) != key or time % 60 == 0:  # else edited: its second is unchanged
                names[one.id] = name = f"{at}:{one.id}" if one.id in ids else one.id
                ids[name] = key
                same.append(name)
                new.append(one._replace(id=name))
        for n, one in enumerate(new):
            if (answers := one.about.get("answers")) in names:
                new[n] = one._replace(about={**one.about, "answers": names[answers]})
        found[part.program] = new + found.get(part.program, [])
    return [Part(name, some, says_little(some)) for name, some in reversed(found.items())]


class Reading:
    """Reads exports, a file of texts or a folder of pairs, and notes what was read."""

    def __init__(self, sources: Sequence[Path], columns: str | None) -> None:
        self.left_out: Counter[str] = Counter()
        """Number of messages of exports that were left out, by reason."""
        self._sources, self._columns = sources, columns
        self._authors = set[str]()
        self._programs: dict[str, None] = {}
        self._was_read = defaultdict[tuple[Path, str], bool](bool)

    def parts(self) -> list[Part]:
        """Reads all sources.

        Raises:
            InputError: there is nothing to read, or it can't be read.
            MissingExtraError: a package to read a source is missing.
        """
        found = list(map(self._read, self._sources))
        if len(found) == 1:
            return found[0]
        for source, parts in zip(self._sources, found, strict=True):
            if any(not part.program for part in parts):
                raise InputError(f"{source} is not an export; explore it alone.")
        return once(found)

    def _read(self, source: Path) -> list[Part]:
        if (source / PAIRS_FILE).is_file():
            return [Part("", list(messages_of_pairs(source)), linked=False)]
        if self._columns is None and may_be_export(source):
            from rejoinder.exports import exports_of  # importing all formats takes a while

            if exports := exports_of(source):
                parts = [self._part(source, one) for one in exports]
                everything = (one for part in parts for one in part.entries)
                next(refuse_empty(everything, source, exports))
                return parts
        return [Part("", list(Source(source, self._columns)), linked=False)]

    def _part(self, source: Path, export: ExportFormat) -> Part:
        left_out = self.left_out
        entries = list(
            messages_of(source, export, lambda why: left_out.update([why]), None, self._note)
        )
        self._authors.update(one.about["author"] for one in entries if "author" in one.about)
        if not export.knows_replies:
            entries = untrusted(entries)
        return Part(export.title, entries, linked=says_little(entries))

    def _note(self, title: str, files: Files) -> None:
        for name in files.names:
            self._was_read[files.path, name] |= name in files.read
        self._programs[title.partition(" (")[0]] = None

    def in_words(self, messages: int) -> str:
        """Returns a one-line summary of what was read, empty if it was not an export."""
        if not self._programs:
            return ""
        people = f" of {counted(len(self._authors), 'person')}" if self._authors else ""
        said = f"{' and '.join(self._programs)}, {counted(len(self._was_read), 'file')}, "
        said += f"{counted(messages, 'message')}{people}"
        if unread := [name for (_, name), was_read in self._was_read.items() if not was_read]:
            said += f", {counted(len(unread), 'file')} not read: {first_names(unread)}"
        return said


def counted(count: int, noun: str) -> str:
    """Returns a number of things, as in "1 file" and "2,300 people"."""
    many = "people" if noun == "person" else f"{noun}s"
    return f"{count:,} {noun if count == 1 else many}"
