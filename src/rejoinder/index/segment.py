"""A segment: texts that were added together, with ids and embeddings. Its files never change.

Another file of the index lists the rows of deleted texts.
"""

import os
import weakref
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from importlib.util import find_spec
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rejoinder.errors import InputError
from rejoinder.index import fields, lists, words
from rejoinder.index.fields import About, Fields, FieldsWriter
from rejoinder.index.keys import KEY, keys_of
from rejoinder.index.lists import Lists
from rejoinder.index.manifest import REMEDY, Manifest, SegmentFacts
from rejoinder.index.matcher import Matcher
from rejoinder.index.string_table import StringTable, StringWriter, mapped, release
from rejoinder.index.where import Conditions
from rejoinder.index.words import Words, WordsWriter
from rejoinder.inference.search import NotFiniteError, dots, nearest_rows
from rejoinder.io.files.atomic import new_folder
from rejoinder.io.files.hashed import check_file, file_facts, sha256_of
from rejoinder.protocols import Embeddings

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
_NUMBER = np.dtype("<u4")
_DELETED = np.dtype("<u4")
Absent = NDArray[np.bool_] | None
"""(rows,) bool, texts of a segment that are not searched. None: all are."""
_LARGEST = 1.01
"""No score of two unit rows is larger, even of rows rounded to 16 bits."""


@dataclass(frozen=True)
class EncodedTexts:
    """Texts to index."""

    ids: Sequence[str | None]
    """None: the text gets the next number that no text of the index has had."""
    texts: Sequence[str]
    embeddings: Embeddings
    """(N, D) float32, unit or zero rows."""
    about: Sequence[About] = ()
    """What is known about each text; empty: nothing about any of them."""


def write_segment(
    folder: Path, parts: Iterable[EncodedTexts], next_id: int, dtype: str
) -> tuple[int, tuple[str, ...]]:
    """Writes a segment into an empty folder, and returns the number of its texts and its files.

    Texts without an id get numbers from `next_id`. Memory holds one part, a key of each id,
    the words (`WordsWriter`) and fields (`FieldsWriter`).

    Raises:
        InputError: an id occurs twice.
    """
    ids, texts = StringWriter(folder, "ids"), StringWriter(folder, "texts")
    about, of_words = FieldsWriter(folder), WordsWriter(folder)
    keys: list[NDArray[np.uint64]] = []
    numbers = count(next_id)
    with (folder / "embeddings.bin").open("xb") as rows:
        for part in parts:
            names = [str(next(numbers)) if name is None else name for name in part.ids]
            ids.add(names)
            texts.add(part.texts)
            about.add(part.about, len(part.texts))
            of_words.add(part.texts)
            rows.write(np.ascontiguousarray(part.embeddings, DTYPES[dtype]).tobytes())
            keys.append(keys_of(names))
    ids.close()
    texts.close()
    all_keys = np.concatenate([np.empty(0, np.uint64), *keys])
    order = np.argsort(all_keys, kind="stable")
    _refuse_twice(folder, all_keys, order)
    of_words.close()
    (folder / "keys").write_bytes(all_keys[order].astype(KEY).tobytes())
    (folder / "rows").write_bytes(order.astype(_NUMBER).tobytes())
    return len(all_keys), (*FILES, *about.close())


def new_segment(index: Path, about: Manifest, parts: Iterable[EncodedTexts]) -> SegmentFacts:
    """Writes a segment into the folder of an index, whose manifest does not name it yet.

    Raises:
        InputError: an id occurs twice.
        MissingExtraError: FAISS is not installed.
    """
    name = f"{about.next_number:06d}"
    with new_folder(index / name) as new:
        rows, names = write_segment(new, parts, about.next_id, about.dtype)
        if not gets_lists(about, rows):
            return SegmentFacts(name, rows, file_facts(new, list(names)))
        embeddings = mapped(new / "embeddings.bin", DTYPES[about.dtype], (rows, about.dim))
        probing = lists.write_lists(new, embeddings, about.recall)
        release(embeddings)
        files = file_facts(new, [*names, lists.FILE])
        return SegmentFacts(name, rows, files, probing=probing)


def gets_lists(about: Manifest, rows: int) -> bool:
    """Returns whether a segment of so many rows gets lists, by which it is searched."""
    asked = about.recall < 1 and rows >= lists.LEAST_ROWS
    return asked and find_spec(lists.PACKAGE) is not None


def name_of_deletions(number: str, rows: NDArray[np.uint32]) -> str:
    """Returns the name of a file of deleted rows.

    It contains a hash of the rows: a changed file would restore one text and delete another.
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
        known = fields.FILES if "fields" in entry.files else ()
        for name in (*FILES, *known, *((lists.FILE,) if entry.probing is not None else ())):
            facts = entry.files.get(name)
            check_file(self._folder / name, facts, InputError, REMEDY, content=False)
        self._keys_are_checked = False
        self.ids = StringTable(self._folder, "ids", entry.rows)
        self.texts = StringTable(self._folder, "texts", entry.rows)
        self.fields = Fields(self._folder, entry.files, entry.rows) if known else None
        """None: nothing is known about any of the texts."""
        self._words = Words(self._folder, entry.files, entry.rows)
        self._path = self._folder / "embeddings.bin"
        self._handle: int | None = None
        shape = (entry.rows, about.dim)
        self.embeddings: Embeddings = mapped(self._path, DTYPES[about.dtype], shape)
        self._keys = mapped(self._folder / "keys", KEY, (entry.rows,))
        self._rows = mapped(self._folder / "rows", _NUMBER, (entry.rows,))
        self._sizes = {
            name: (str(path), path.stat().st_ino, entry.files[name]["bytes"])
            for name, path in (
                (name, self._folder / name)
                for name in dict.fromkeys((*BY_MEANING, *BY_WORDS, *known))
            )
        }
        self.lists: Lists | None = None
        """None: all rows are scanned."""
        if entry.probing is not None:
            file = self._folder / lists.FILE
            self.lists = Lists(file, entry.files[lists.FILE], shape, entry.probing)
        self.deleted = np.zeros(entry.rows, np.bool_)
        """(rows,) bool: which texts are deleted."""
        if entry.deletions is not None:
            path = index / entry.deletions
            rows = mapped(path, _DELETED, (entry.deleted,))
            if name_of_deletions(path.name.partition(".")[0], rows) != path.name:
                raise InputError(f"{path} is not the file that was written (SHA-256). {REMEDY}")
            self.deleted[rows[rows < entry.rows].astype(np.int64)] = True

    def refuse_cut(self, names: Sequence[str] = BY_MEANING) -> None:
        """Refuses files that have become shorter: reading them would end the process (SIGBUS).

        A file that was removed or replaced stays whole for this process.

        Raises:
            InputError: a file is cut.
        """
        known = () if self.fields is None else fields.FILES
        for path, node, size in map(self._sizes.__getitem__, (*names, *known)):
            try:
                found = os.stat(path)  # noqa: PTH116 -- a fifth of the time of Path's
            except OSError:
                continue
            if found.st_ino == node and found.st_size < size:
                raise InputError(f"{path} has lost its end. {REMEDY}")

    @cached_property
    def matcher(self) -> Matcher:
        """The words of the texts that are not deleted.

        Raises:
            InputError: a file of words was changed.
        """
        return Matcher(self._words, self.absent())

    def about(self, row: int) -> dict[str, Any]:
        """Returns what is known about a text."""
        return {} if self.fields is None else self.fields[row]

    def absent(self, conditions: Conditions | None = None) -> Absent:
        """Returns the texts that a search does not find: deleted, or not meeting conditions.

        Raises:
            InputError: a file was changed.
        """
        if conditions is None:
            return self.deleted if self.entry.deleted else None
        if self.fields is None:
            return np.ones(self.entry.rows, np.bool_)
        return self.deleted | ~self.fields.passing(conditions)

    def nearest(
        self, queries: Embeddings, top_k: int, absent: Absent
    ) -> tuple[NDArray[np.int64], Embeddings]:
        """Returns what `nearest_rows` does.

        Raises:
            InputError: unit rows can't have one of the scores.
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
            InputError: unit rows can't have one of the scores, or the file has become shorter.
        """
        # six times as fast as self.embeddings[rows]
        read = self.embeddings.take(rows, axis=0) if map_file else self.read(rows)
        with np.errstate(over="ignore", invalid="ignore"):  # such scores are refused
            found = dots(np.asarray(read, np.float32), query)
        self._check(found)
        return found

    def _check(self, scores: Embeddings) -> None:
        # opening an index compares no hashes, so a search looks for damage in its own results;
        # the maximum is NaN if one score is
        if scores.size and not (scores.max() <= _LARGEST and scores.min() >= -_LARGEST):
            raise self._damage()

    def _damage(self) -> InputError:
        return InputError(
            f"{self._path} gives impossible scores: the index is damaged (rejoinder index --check "
            f"compares all its files). {REMEDY}"
        )

    def read(self, rows: NDArray[np.int64]) -> Embeddings:
        """Returns the (N, D) embeddings of rows, read one by one from the file.

        They leave nothing of the file in the memory of this process. Reading the mapped file would
        map up to 2 MB around each row.

        Raises:
            InputError: the file has become shorter.
        """
        if self._handle is None:
            self._handle = os.open(self._path, os.O_RDONLY)
            weakref.finalize(self, os.close, self._handle)
        size = self.embeddings.strides[0]
        read = b"".join(os.pread(self._handle, size, row * size) for row in rows.tolist())
        if len(read) != size * len(rows):
            raise InputError(f"{self._path} has lost its end. {REMEDY}")
        return np.frombuffer(read, self.embeddings.dtype).reshape(len(rows), -1)

    def release(self) -> None:
        """Removes mapped files from the memory of this process; they are read again when needed."""
        release(self.embeddings)
        self.texts.release()
        self.ids.release()
        if self.fields is not None:
            self.fields.release()

    def rows_of(self, ids: Sequence[str]) -> NDArray[np.int64]:
        """Returns the (N,) int64 rows of ids; -1 for an id that the segment lacks.

        Raises:
            InputError: the files of keys have changed.
        """
        if not self._keys_are_checked:
            for name in ("keys", "rows"):
                check_file(self._folder / name, self.entry.files[name], InputError, REMEDY)
            self._keys_are_checked = True
        keys = keys_of(ids)
        begins = np.searchsorted(self._keys, keys)
        found = np.full(len(ids), -1, np.int64)
        for number, (begin, key) in enumerate(zip(begins.tolist(), keys, strict=True)):
            # different ids may have the same key
            for place in range(begin, len(self._keys)):
                if self._keys[place] != key:
                    break
                row = int(self._rows[place])
                if row < self.entry.rows and self.ids[row] == ids[number]:
                    found[number] = row
        return found


def encoded_texts(segments: Sequence[Segment], size: int = 8_192) -> Iterator[EncodedTexts]:
    """Yields the texts of segments, without the deleted ones."""
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


def _refuse_twice(folder: Path, keys: NDArray[np.uint64], order: NDArray[np.int64]) -> None:
    """Raises InputError if two ids are the same; different ids may have the same key."""
    same = np.flatnonzero(keys[order[1:]] == keys[order[:-1]])
    if not len(same):
        return
    ids = StringTable(folder, "ids", len(keys))
    suspects = np.isin(keys, keys[order[same]])
    seen: set[str] = set()
    for row in np.flatnonzero(suspects).tolist():
        if ids[row] in seen:
            raise InputError(f"two texts have the id {ids[row]!r}; give each its own.")
        seen.add(ids[row])
