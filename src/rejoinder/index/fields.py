"""Metadata of messages: columns of a segment that filters compare and hits show.

`fields` has a row per text: its time (seconds since 1970 in UTC, or NaN), the numbers of its
author, source, thread and title in the string table `values`, and whether it asks something.
Number 0 is the empty string, for an unknown value. Older indexes have no titles and questions. The
string table `links` has two strings per text: what it answers, and its own link. A segment without
any metadata has no such files. `others` has numbers for each of the user's own fields, whose names
are in the string table `others`.
"""

from array import array
from collections.abc import Collection, Mapping, Sequence
from difflib import get_close_matches
from functools import cached_property
from itertools import chain, repeat
from pathlib import Path
from typing import IO, Any, Literal

import numpy as np
from numpy.typing import NDArray

from rejoinder.errors import ConditionError, InputError, nearest
from rejoinder.index.files import OFFSET, REMEDY, StringTable, StringWriter, mapped
from rejoinder.index.where import NAMED, Conditions
from rejoinder.io.files.hashed import check_file
from rejoinder.io.formats.texts import KEYS

FILES = ("fields", "links.bin", "links.offsets", "values.bin", "values.offsets")
_OTHERS = ("others", "others.bin", "others.offsets")
_FILTERED = ("fields", "others", "values.bin", "values.offsets")
_STRINGS = (*NAMED, "title")
_OLD_ROW = np.dtype([("time", "<f8"), *((name, "<u4") for name in NAMED)])
_ROW = np.dtype([*_OLD_ROW.descr, ("title", "<u4"), ("asks", "<u4")])
ASKS, ENDS = 1, 2
"""Bits of `asks`: a text contains a question mark, or ends with one."""
_SURE = 8
"""Shift in `asks` of the percentage that a reply link is certain; 0 if the export states it."""
_MARKS = ("?", "？", "؟")
_LINKS = ("answers", "link")
_CONVERSATIONS = ("thread", "source")
_KNOWN = {*KEYS, "confidence"}

About = Mapping[str, Any]
"""The metadata of a message, by `KEYS`."""


def files_among(names: Collection[str]) -> tuple[str, ...]:
    """Returns the names of a segment's files with fields."""
    if "fields" not in names:
        return ()
    return (*FILES, *_OTHERS) if "others" in names else FILES


class FieldsWriter:
    """Writes the metadata of texts that come in parts.

    Memory holds the distinct authors, sources and threads, and four bytes per text for each of the
    user's own fields.
    """

    def __init__(self, folder: Path) -> None:
        self._folder, self._rows = folder, 0
        self._file: IO[bytes] | None = None
        self._links: StringWriter | None = None
        self._values: dict[str, int] = {"": 0}
        self._others: dict[str, array[int]] = {}

    def add(self, about: Sequence[About], texts: Sequence[str]) -> None:
        """Adds the metadata of texts; `about` may be empty."""
        if self._file is None and any(about):
            self._file = (self._folder / "fields").open("xb")
            self._links = StringWriter(self._folder, "links")
            rows, self._rows = self._rows, 0
            self._append([{}] * rows, [""] * rows)
        self._append(about or [{}] * len(texts), texts)

    def _append(self, about: Sequence[About], texts: Sequence[str]) -> None:
        first, self._rows = self._rows, self._rows + len(about)
        if self._file is None or self._links is None:
            return
        rows, values = np.empty(len(about), _ROW), self._values
        rows["time"] = [np.nan if one.get("time") is None else one["time"] for one in about]
        rows["asks"] = [
            asks_of(text) | round(100 * one.get("confidence", 0)) << _SURE
            for text, one in zip(texts, about, strict=True)
        ]
        for name in _STRINGS:
            rows[name] = [values.setdefault(one.get(name) or "", len(values)) for one in about]
        self._file.write(rows.tobytes())
        self._links.add(one.get(name) or "" for one in about for name in _LINKS)
        for row, one in enumerate(about, first):
            for name in one.keys() - _KNOWN:
                column = self._others.setdefault(name, array("I"))
                column.extend(repeat(0, row - len(column)))
                column.append(values.setdefault(str(one[name]), len(values)))

    def close(self) -> tuple[str, ...]:
        """Writes the columns and returns the file names; none if there is no metadata."""
        if self._file is None or self._links is None:
            return ()
        values = StringWriter(self._folder, "values")
        values.add(self._values)
        for file in (self._file, self._links, values):
            file.close()
        if not self._others:
            return FILES
        names = StringWriter(self._folder, "others")
        names.add(sorted(self._others))
        names.close()
        with (self._folder / "others").open("xb") as file:
            for _, column in sorted(self._others.items()):
                column.extend(repeat(0, self._rows - len(column)))
                file.write(np.array(column, "<u4").tobytes())
        return (*FILES, *_OTHERS)


def asks_of(text: str) -> int:
    """Returns whether a text has a question mark, and whether it ends with one.

    >>> asks_of("Really? Yes."), asks_of("Really? "), asks_of("Yes.")
    (1, 3, 0)
    """
    if not any(mark in text for mark in _MARKS):
        return 0
    return ASKS | ENDS if text.rstrip().endswith(_MARKS) else ASKS


class Fields:
    """The columns that a `FieldsWriter` wrote."""

    def __init__(self, folder: Path, facts: Mapping[str, Mapping[str, Any]], rows: int) -> None:
        """Maps the files of a segment of `rows` texts. `facts` are their sizes and hashes.

        Raises:
            InputError: a file does not have the size in `facts`.
        """
        self._folder, self._facts = folder, facts
        is_old = facts["fields"]["bytes"] == rows * _OLD_ROW.itemsize
        kind = _OLD_ROW if is_old else _ROW
        self._rows: NDArray[Any] = mapped(folder / "fields", kind, (rows,))
        count = facts["values.offsets"]["bytes"] // OFFSET.itemsize - 1
        self._strings = StringTable(folder, "values", count)
        self._links = StringTable(folder, "links", len(_LINKS) * rows)
        self._others: dict[str, NDArray[np.uint32]] = {}
        if "others" in facts:
            count = facts["others.offsets"]["bytes"] // OFFSET.itemsize - 1
            numbers = mapped(folder / "others", np.dtype("<u4"), (count, rows))
            self._others = dict(zip(StringTable(folder, "others", count), numbers, strict=True))
        self.names = (*NAMED, *self._others)
        """Names of the fields that can be compared with given values."""

    def __getitem__(self, row: int) -> dict[str, Any]:
        """Returns the metadata of a text.

        Raises:
            InputError: the files contradict each other.
        """
        time, *numbers = self._rows[row].item()
        sure = numbers[-1] >> _SURE if len(numbers) > len(_STRINGS) else 0
        strings = dict(zip(_STRINGS, numbers, strict=False))
        own = {name: int(column[row]) for name, column in self._others.items()}
        strings |= {name: number for name, number in own.items() if number}
        if max(strings.values()) >= len(self._strings):
            raise self._damaged()
        known = {
            "time": time if np.isfinite(time) else None,
            **{name: self._strings[number] for name, number in strings.items()},
            **{name: self._links[len(_LINKS) * row + at] for at, name in enumerate(_LINKS)},
        }
        keys = (*KEYS, *self._others)
        found = {key: known[key] for key in keys if known.get(key) not in (None, "")}
        return {**found, "confidence": sure / 100} if sure else found

    def release(self) -> None:
        """Removes the strings from the memory of this process (see `files.release`)."""
        self._strings.release()
        self._links.release()

    @cached_property
    def _columns(self) -> NDArray[Any]:
        # a changed byte would show the wrong texts
        for name in self._facts.keys() & {*_FILTERED}:
            check_file(self._folder / name, self._facts[name], InputError, REMEDY)
        columns = (*(self._rows[name] for name in NAMED), *self._others.values())
        if any(column.max(initial=0) >= len(self._strings) for column in columns):
            raise self._damaged()
        return self._rows

    @cached_property
    def _values(self) -> NDArray[np.object_]:
        """The case-folded strings of `values`."""
        return np.array([text.casefold() for text in self._strings], np.object_)

    def values(self, name: str) -> set[str]:
        """Returns the case-folded values of one of the fields `names`.

        Raises:
            InputError: a file was changed.
        """
        used = np.zeros(len(self._strings), np.bool_)
        used[self.numbers(name)] = True
        return {*self._values[used].tolist()} - {""}

    def counts(self, name: str, kept: NDArray[np.bool_]) -> dict[str, int]:
        """Returns the values of one of the fields `names`, and how many `kept` rows have each.

        Raises:
            InputError: a file was changed.
        """
        counts = np.bincount(self.numbers(name)[kept], minlength=len(self._strings))
        used = np.flatnonzero(counts[1:]) + 1  # number 0 means unknown
        return {self._strings[number]: int(counts[number]) for number in used.tolist()}

    def has(self, key: str) -> bool:
        """Returns whether any text has a value for a field: one of `names`, or `time`.

        Raises:
            InputError: a file was changed.
        """
        return bool(np.isfinite(self.times).any() if key == "time" else self.numbers(key).any())

    def passing(self, conditions: Conditions) -> NDArray[np.bool_]:
        """Returns a (rows,) bool mask of the texts that meet all conditions.

        Raises:
            InputError: a file was changed.
        """
        passing = np.ones(len(self._rows), np.bool_)
        for name, wanted in conditions.values.items():
            meeting = np.fromiter((value in wanted for value in self._values), np.bool_)
            passing &= meeting[self.numbers(name)]
        if conditions.is_timed:
            times = self._columns["time"]
            passing &= (times >= conditions.since) & (times < conditions.until)
        return passing

    def numbers(self, name: str) -> NDArray[np.uint32]:
        """Returns (rows,) uint32: the number of each text's value of a field; 0 for none.

        Raises:
            InputError: a file was changed.
        """
        columns = self._columns
        if name in self._others:
            return self._others[name]
        if name not in (columns.dtype.names or ()):  # an older index, or another segment's field
            return np.zeros(len(self._rows), np.uint32)
        return np.ascontiguousarray(columns[name])

    def value(self, number: int) -> str:
        """Returns the author, source or thread with the given number."""
        return self._strings[number]

    @property
    def asks(self) -> NDArray[np.uint32]:
        """(rows,) uint32: 0, `ASKS`, or `ASKS | ENDS`."""
        return self.numbers("asks") & np.uint32(ASKS | ENDS)

    @property
    def times(self) -> NDArray[np.float64]:
        """(rows,) float64: seconds since 1970 in UTC, or NaN."""
        return np.asarray(self._columns["time"])

    def conversation(self, name: Literal["thread", "source"], value: str) -> NDArray[np.int64]:
        """Returns the ascending rows of a thread, or of a channel without its thread replies.

        Chat programs don't show thread replies in the channel either.

        Raises:
            InputError: a file was changed.
        """
        number = self._numbers.get(value)
        if number is None:
            return np.empty(0, np.int64)
        order, ordered = self._ordered[name]
        begin, end = np.searchsorted(ordered, [number, number + 1]).tolist()
        rows = order[begin:end]
        if name == "thread":
            return rows
        answers = self._links.lengths(len(_LINKS) * rows + _LINKS.index("answers")) > 0
        return np.asarray(rows[~answers | (self._columns["thread"][rows] == 0)])

    @cached_property
    def _numbers(self) -> dict[str, int]:
        return {value: number for number, value in enumerate(self._strings)}

    @cached_property
    def _ordered(self) -> dict[str, tuple[NDArray[np.int64], NDArray[np.uint32]]]:
        """Rows ordered by thread and by channel, with the numbers of the threads and channels."""
        orders = {name: np.argsort(self._columns[name], kind="stable") for name in _CONVERSATIONS}
        return {name: (order, self._columns[name][order]) for name, order in orders.items()}

    def _damaged(self) -> InputError:
        return InputError(f"{self._folder / 'fields'} does not fit the other files. {REMEDY}")


def refuse_unmet(conditions: Conditions, fields: Sequence[Fields]) -> None:
    """Checks that at least one text of an index has each field and value of the conditions.

    Raises:
        ConditionError: no text has it: more likely a typo than a search without hits.
    """
    for name in conditions.fields:
        if not any(one.has(name) for one in fields):
            names = dict.fromkeys(chain(*(one.names for one in fields), ["time"]))
            known = [key for key in names if any(one.has(key) for one in fields)]
            raise ConditionError(
                f"where: no text of the index has {'an' if name == 'author' else 'a'} {name} "
                + (f"({nearest(name, known)})." if known else f"; {_NOT_MESSAGES}")
            )
    for name, wanted in conditions.values.items():
        found = {*chain.from_iterable(one.values(name) for one in fields)}
        for value in sorted(wanted - found):
            raise ConditionError(
                f"where: no text of the index has the {name} {value!r}{_hint(value, found)}."
            )


_NOT_MESSAGES = (
    "messages of an export have a source, an author and a time; other texts have your `columns`."
)
_MOST_COMPARED = 10_000
"""Most known values compared with an unknown value, which takes .1 s."""


def _hint(value: str, known: Collection[str]) -> str:
    if len(known) > _MOST_COMPARED:
        return ""
    close = get_close_matches(value, known, n=3) or sorted(one for one in known if value in one)[:3]
    return f" (did you mean {' or '.join(map(repr, close))}?)" if close else ""
