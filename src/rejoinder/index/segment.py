"""A segment: texts that were added together, with ids and embeddings. Its files never change.

Another file of the index lists the rows of deleted texts.
"""

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial, reduce
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rejoinder.errors import InputError
from rejoinder.index import fields, lists, words
from rejoinder.index.fields import About, Fields
from rejoinder.index.files import (
    KEY,
    REMEDY,
    Manifest,
    SegmentFacts,
    StoredRows,
    StringTable,
    keys_of,
    mapped,
    release,
)
from rejoinder.index.lists import Lists
from rejoinder.index.matcher import Matcher
from rejoinder.index.where import Conditions
from rejoinder.index.words import Words
from rejoinder.inference.neighbours import NotFiniteError, dots, nearest_rows
from rejoinder.io.files.hashed import check_file, sha256_of
from rejoinder.protocols import Embeddings
from rejoinder.text.languages import stemmer, with_digits_in_words
from rejoinder.text.normalize import saying, words_of

FILES = (
    "embeddings.bin", "ids.bin", "ids.offsets", "keys", "rows",
    "texts.bin", "texts.offsets",
    *words.FILES,
)  # fmt: skip
"""Files that every segment has."""
_HITS = ("ids.bin", "ids.offsets", "texts.bin", "texts.offsets")
BY_MEANING, BY_WORDS = ("embeddings.bin", *_HITS), (*words.FILES, *_HITS)
"""Files that a search reads."""
DTYPES: Mapping[str, np.dtype[Any]] = {"float32": np.dtype("<f4"), "float16": np.dtype("<f2")}
"""Types of the rows on disk."""
ROW_NUMBER = np.dtype("<u4")
_DELETED = np.dtype("<u4")
Absent = NDArray[np.bool_] | None
"""(rows,) bool, texts of a segment to leave out of a search. None: search all."""
_SCHEMES = ("http", "https")
_LARGEST = 1.01
"""Upper bound for the score of two unit rows, even if rounded to 16 bits."""


@dataclass(frozen=True)
class EncodedTexts:
    """Texts to index."""

    ids: Sequence[str | None]
    """None: the text gets the next number not yet used in the index."""
    texts: Sequence[str]
    embeddings: Embeddings
    """(N, D) float32, unit or zero rows."""
    about: Sequence[About] = ()
    """The metadata of each text; empty if no text has any."""

    @property
    def known(self) -> Sequence[About]:
        """What is known about each text, `{}` for nothing."""
        return self.about or [{}] * len(self.texts)

    @property
    def searched(self) -> list[str]:
        """The words of each text for a search by words, with its title."""
        return [
            f"{title}\n{text}" if (title := about.get("title")) else text
            for text, about in zip(self.texts, self.known, strict=True)
        ]


def name_of_deletions(number: str, rows: NDArray[np.uint32]) -> str:
    """Returns the name of a file of deleted rows.

    It contains a hash of the rows, because a changed file would restore and delete wrong texts.
    """
    return f"{number}.{sha256_of(rows.tobytes())[:16]}.deleted"


class Segment:
    """A segment, mapped into memory."""

    def __init__(self, index: Path, entry: SegmentFacts, about: Manifest) -> None:
        """Opens a segment of the index in a folder.

        Raises:
            InputError: a file is missing or of another size, or the deletions are damaged.
        """
        self.entry, self._folder = entry, index / entry.name
        known = fields.files_among(entry.files)
        spellings = words.SPELLINGS if about.language is not None else ()
        listed = (lists.FILE,) if entry.probing is not None else ()
        for name in (*FILES, *known, *spellings, *listed):
            facts = entry.files.get(name)
            check_file(self._folder / name, facts, InputError, REMEDY, content=False)
        self._keys_are_checked = False
        self.ids = StringTable(self._folder, "ids", entry.rows)
        self.texts = StringTable(self._folder, "texts", entry.rows)
        self.fields = Fields(self._folder, entry.files, entry.rows) if known else None
        """None: no text has metadata."""
        self.words = Words(self._folder, entry.files, entry.rows)
        self._stem = stemmer(about.language or "")
        shape = (entry.rows, about.dim)
        self._stored = StoredRows(self._folder / "embeddings.bin", DTYPES[about.dtype], shape)
        self.embeddings: Embeddings = self._stored.mapped
        self._keys = mapped(self._folder / "keys", KEY, (entry.rows,))
        self._rows = mapped(self._folder / "rows", ROW_NUMBER, (entry.rows,))
        self._sizes = {
            name: (str(path), path.stat().st_ino, entry.files[name]["bytes"])
            for name in {*BY_MEANING, *BY_WORDS, *known, *spellings}
            for path in [self._folder / name]
        }
        self.lists: Lists | None = None
        """None: there are no lists, so all rows are scanned."""
        if entry.probing is not None:
            file = self._folder / lists.FILE
            self.lists = Lists(file, entry.files[lists.FILE], shape, entry.probing)
        self.deleted = np.zeros(entry.rows, np.bool_)
        """(rows,) bool mask of the deleted texts."""
        if entry.deletions is not None:
            path = index / entry.deletions
            rows = mapped(path, _DELETED, (entry.deleted,))
            if name_of_deletions(path.name.partition(".")[0], rows) != path.name:
                raise InputError(f"{path} is not the file that was written (SHA-256). {REMEDY}")
            self.deleted[rows[rows < entry.rows].astype(np.int64)] = True

    def refuse_cut(self, names: Sequence[str] = BY_MEANING) -> None:
        """Refuses files that have become shorter: reading them would kill the process (SIGBUS).

        A removed or replaced file stays complete for this process.

        Raises:
            InputError: a file is cut short.
        """
        known = fields.files_among(self.entry.files)
        for path, node, size in map(self._sizes.__getitem__, (*names, *known)):
            try:
                found = os.stat(path)  # noqa: PTH116 -- a fifth of the time of Path's
            except OSError:
                continue
            if found.st_ino == node and found.st_size < size:
                raise InputError(f"{path} is cut short. {REMEDY}")

    @cached_property
    def matcher(self) -> Matcher:
        """The words of the texts that are not deleted.

        Raises:
            InputError: a file of words was changed.
        """
        return Matcher(self.words, self.absent())

    def about(self, row: int) -> dict[str, Any]:
        """Returns the metadata of a text."""
        return {} if self.fields is None else self.fields[row]

    def absent(self, conditions: Conditions | None = None) -> Absent:
        """Returns the texts to leave out of a search: deleted, or not meeting the conditions.

        Raises:
            InputError: a file was changed.
        """
        if conditions is None:
            return self.deleted if self.entry.deleted else None
        absent = self.deleted
        if conditions.fields:
            if self.fields is None:
                return np.ones(self.entry.rows, np.bool_)
            absent = absent | ~self.fields.passing(conditions)
        return absent | ~self._having(conditions) if conditions.read_texts else absent

    def _having(self, conditions: Conditions) -> NDArray[np.bool_]:
        """Returns a (rows,) bool mask: texts with all required words and no excluded word."""
        having = np.ones(self.entry.rows, np.bool_)
        if conditions.has_link:
            having[:] = False
            for scheme in _SCHEMES:
                having[self._rows_with(scheme)] = True
        for word in conditions.without:
            having[self._rows_with(word)] = False
        for phrase in conditions.phrases:
            rows = self._rows_with(phrase)
            rows = rows[having[rows]]
            is_said = saying(words_of(phrase))
            having = np.zeros(self.entry.rows, np.bool_)
            having[rows] = [is_said(self.texts[row]) for row in rows.tolist()]
        return having

    def _rows_with(self, words: str) -> NDArray[np.int64]:
        """Returns the (N,) int64 rows of texts that contain all the words, or forms of them."""
        _ = self.words.lengths  # compares the files with their SHA-256
        found = self.words.find(keys_of(self._stem(words_of(with_digits_in_words(words)))))
        if not len(found) or (found < 0).any():
            return np.empty(0, np.int64)
        parts = [self.words.rows[self.words.stretch(word)] for word in found.tolist()]
        return reduce(partial(np.intersect1d, assume_unique=True), parts).astype(np.int64)

    def nearest(
        self, queries: Embeddings, top_k: int, absent: Absent
    ) -> tuple[NDArray[np.int64], Embeddings]:
        """Like `nearest_rows`, on the rows of this segment.

        Raises:
            InputError: a score is impossible for unit rows.
        """
        try:
            rows, scores = nearest_rows(queries, self.embeddings, top_k, absent=absent)
        except NotFiniteError:
            raise self._damage() from None
        self._check(scores)
        return rows, scores

    def scores(self, rows: NDArray[np.int64], query: Embeddings, *, map_file: bool) -> Embeddings:
        """Returns the (N,) float32 dot products of rows with a query, (D,), a unit row.

        Raises:
            InputError: a score is impossible for unit rows, or the file has become shorter.
        """
        # six times as fast as self.embeddings[rows]
        read = self.embeddings.take(rows, axis=0) if map_file else self._stored.read(rows)
        with np.errstate(over="ignore", invalid="ignore"):  # such scores are refused
            found = dots(np.asarray(read, np.float32), query)
        self._check(found)
        return found

    def _check(self, scores: Embeddings) -> None:
        # opening an index compares no hashes, so a search checks its results for damage;
        # the maximum is NaN if any score is
        if scores.size and not (scores.max() <= _LARGEST and scores.min() >= -_LARGEST):
            raise self._damage()

    def _damage(self) -> InputError:
        return InputError(
            f"{self._stored.path} gives impossible scores: the index is damaged (rejoinder index "
            f"check compares all its files). {REMEDY}"
        )

    def release(self) -> None:
        """Drops mapped files from the memory of this process; they are read again when needed."""
        self._stored.release()
        self.texts.release()
        self.ids.release()
        if self.fields is not None:
            self.fields.release()
        release(self._keys)
        release(self._rows)

    def rows_of(self, ids: Sequence[str]) -> NDArray[np.int64]:
        """Returns the (N,) int64 rows of ids; -1 for an id that is not in the segment.

        Raises:
            InputError: the files of keys have changed.
        """
        if not self._keys_are_checked:
            for name in ("keys", "rows"):
                check_file(self._folder / name, self.entry.files[name], InputError, REMEDY)
            self._keys_are_checked = True
        keys, found = keys_of(ids), np.full(len(ids), -1, np.int64)
        # different ids may have the same key
        begins, ends = (np.searchsorted(self._keys, keys, side) for side in ("left", "right"))
        for number in np.flatnonzero(begins < ends).tolist():
            for row in self._rows[begins[number] : ends[number]].tolist():
                if row < self.entry.rows and self.ids[row] == ids[number]:
                    found[number] = row
        return found


def encoded_texts(segments: Sequence[Segment], size: int = 8_192) -> Iterator[EncodedTexts]:
    """Yields the texts of segments that are not deleted, and releases each part after use."""
    for segment in segments:
        kept = np.flatnonzero(~segment.deleted)
        for begin in range(0, len(kept), size):
            rows = kept[begin : begin + size]
            yield EncodedTexts(
                [segment.ids[row] for row in rows.tolist()],
                [segment.texts[row] for row in rows.tolist()],
                np.asarray(segment.embeddings[rows]),
                [segment.about(row) for row in rows.tolist()] if segment.fields else (),
            )
            segment.release()


def places_of(segments: Sequence[Segment], ids: Sequence[str]) -> list[tuple[int, int] | None]:
    """Returns for each id its segment and row; None if no segment has it."""
    places: list[tuple[int, int] | None] = [None] * len(ids)
    for number, segment in enumerate(segments):
        rows = segment.rows_of(ids)
        for index in np.flatnonzero(rows >= 0).tolist():
            if not segment.deleted[rows[index]]:
                places[index] = (number, int(rows[index]))
    return places
