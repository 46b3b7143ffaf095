"""`TextIndex`: a folder of texts, ids and embeddings that you can search and change.

Added texts become a segment; this module writes its files.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from itertools import count, islice
from pathlib import Path

import numpy as np
from msgspec.structs import replace
from numpy.typing import NDArray

from rejoinder.errors import InputError
from rejoinder.index import lists, words
from rejoinder.index.fields import FieldsWriter
from rejoinder.index.files import (
    KEY,
    Manifest,
    SegmentFacts,
    StoredRows,
    StringTable,
    StringWriter,
    keys_of,
    read_manifest,
)
from rejoinder.index.hits import Place
from rejoinder.index.reader import IndexReader
from rejoinder.index.segment import (
    DTYPES,
    FILES,
    ROW_NUMBER,
    EncodedTexts,
    Segment,
    encoded_texts,
    name_of_deletions,
    places_of,
)
from rejoinder.index.state import State, check_segments
from rejoinder.index.words import WordsWriter
from rejoinder.io.files.atomic import new_folder, write_bytes
from rejoinder.io.files.claims import claim, remove, sweep
from rejoinder.io.files.hashed import file_facts
from rejoinder.io.files.storage import storage_errors
from rejoinder.text.languages import Stem, stemmer

MODEL = "model"
"""Folder in an index with a copy of its model."""
SEGMENT_ROWS = 1 << 20
"""Most texts of a segment; their words and lists are in memory while it is written."""
_IDS = 65_536


class TextIndex(IndexReader):
    """Texts with ids and embeddings in a folder.

    Texts that are added together form a segment, or one segment per million texts. Segments never
    change; a separate file lists their deleted texts. A change writes new files and then replaces
    `index.json`. Readers therefore see the index before or after the change, and a killed change
    leaves the index as it was.

    A segment of 200,000 texts or more has inverted lists for approximate search (`index.lists`).
    Smaller segments are joined and get lists once they hold that many texts together. Before that,
    adding joins a segment with the later segments once these hold as many texts as it does. So an
    index has few segments however it grew, and a text is rewritten each time their size doubles.
    """

    def add_encoded(self, parts: Iterable[EncodedTexts], *, update: bool = False) -> int:
        """Adds texts, and returns their number.

        Args:
            parts: The texts, one part in memory at a time. A text without an id gets the next
                number.
            update: Replace texts with the same ids.

        Raises:
            InputError: an id is given twice, or is in the index and `update` is False.
            BusyError: another command is changing the index.
            StorageError: the index can't be written.
        """
        with self._changing() as state:
            try:
                about, old = self._written(state, parts, update=update)
                new = about.segments[len(state.segments) :]
                kept = self._without(state, old)
                about = replace(
                    about,
                    segments=(*kept.segments, *new),
                    next_number=max(kept.next_number, about.next_number),
                )
                self._become(self._joined(about))
            except BaseException:
                self._sweep()
                raise
            return sum(entry.rows for entry in new)

    def _written(
        self, state: State, parts: Iterable[EncodedTexts], *, update: bool
    ) -> tuple[Manifest, list[Place]]:
        """Writes segments; returns the manifest with them, and the places of texts to replace.

        Raises:
            InputError: an id is given twice, or is in the index and `update` is False.
        """
        added: list[Segment] = []
        old: list[Place] = []
        about = state.manifest
        for about in self._segments_of(parts, state.manifest):
            if len(about.segments) == len(state.segments) + len(added):
                continue  # no text came
            segment = Segment(self.folder, about.segments[-1], about)
            ids = iter(segment.ids)
            while chunk := list(islice(ids, _IDS)):
                if (twice := next(filter(None, places_of(added, chunk)), None)) is not None:
                    raise given_twice(added[twice[0]].ids[twice[1]])
                found = [place for place in state.places(chunk) if place is not None]
                if found and not update:
                    part, row = found[0]
                    raise InputError(
                        f"{self.folder} already has a text with the id "
                        f"{state.segments[part].ids[row]!r}. Nothing was added; update the "
                        "text, or choose another id."
                    )
                old += found
            added.append(segment)
            for one in added:  # otherwise all ids stay in memory
                one.release()
        return about, old

    def _segments_of(self, parts: Iterable[EncodedTexts], about: Manifest) -> Iterator[Manifest]:
        """Writes segments of about `SEGMENT_ROWS` texts; yields the manifest after each segment."""
        for group in in_groups(parts, SEGMENT_ROWS):
            entry = new_segment(self.folder, about, group)
            segments = (*about.segments, entry) if entry.rows else about.segments
            about = replace(about, segments=segments, next_number=about.next_number + 1)
            # texts without an id could get the same number
            ids = StringTable(self.folder / entry.name, "ids", entry.rows)
            taken = (int(one) for one in ids if len(one) < 19 and one.isdigit() and one.isascii())
            about = replace(about, next_id=max(about.next_id - 1, max(taken, default=0)) + 1)
            yield about

    def delete(self, ids: str | Iterable[str]) -> None:
        """Deletes the text with an id, or the texts with several ids.

        Raises:
            InputError: no text has one of the ids, or an id is not a string. Nothing is deleted.
            BusyError: another command is changing the index.
            StorageError: the index can't be written.
        """
        with self._changing() as state:
            self._become(self._without(state, self._known_places(state, ids)))

    def compact(
        self, change: Callable[[Sequence[Segment]], Iterable[EncodedTexts]] = encoded_texts
    ) -> None:
        """Frees the space of deleted texts, and joins segments of up to a million texts.

        `change` maps the segments to the texts to keep, by default all that are not deleted. No
        byte of the other texts stays in the folder.

        Raises:
            InputError: a file was changed after it was written. The index stays as it is.
            BusyError: another command is changing the index.
            StorageError: the index can't be written.
        """
        with self._changing() as state:
            # otherwise damaged bytes would get a valid hash in the new segment
            check_segments(self.folder, state.manifest.segments)
            about = replace(state.manifest, segments=())
            for extended in self._segments_of(change(state.segments), about):
                about = extended
            self._become(about)

    def _joined(self, about: Manifest) -> Manifest:
        """Joins the last segments if they are large enough together, and returns the manifest.

        Raises:
            InputError: a file of a segment was changed after it was written.
        """
        entries, first = about.segments, len(about.segments)
        while first and entries[first - 1].probing is None:
            first -= 1
        if not gets_lists(about, sum(entry.count for entry in entries[first:])):
            first = _first_joined([entry.count for entry in entries[first:]]) + first
        if len(entries) - first < 2:
            return about
        check_segments(self.folder, entries[first:])  # damaged bytes would get a valid hash
        old = [Segment(self.folder, entry, about) for entry in entries[first:]]
        joined = new_segment(self.folder, about, encoded_texts(old))
        segments = (*entries[:first], *([joined] if joined.rows else ()))
        return replace(about, segments=segments, next_number=about.next_number + 1)

    def _without(self, state: State, places: Sequence[Place]) -> Manifest:
        """Writes the list of deleted texts, and returns the new manifest."""
        number = state.manifest.next_number + 1
        segments = []
        for index, segment in enumerate(state.segments):
            rows = [row for at, row in places if at == index]
            if not rows:
                segments.append(segment.entry)
                continue
            deleted = segment.deleted.copy()
            deleted[rows] = True
            listed = np.flatnonzero(deleted).astype("<u4")
            name = name_of_deletions(f"{number:06d}", listed)
            write_bytes(self.folder / name, listed.tobytes())
            segments.append(replace(segment.entry, deletions=name, deleted=len(listed)))
            number += 1
        return replace(state.manifest, segments=tuple(segments), next_number=number)

    @contextmanager
    def _changing(self) -> Iterator[State]:
        """Locks and opens the index for a change, and removes files not in the manifest."""
        with claim(self.folder), storage_errors(self.folder):
            state = self._latest()
            self._sweep()
            yield state
            self._sweep()

    def _become(self, manifest: Manifest) -> None:
        replace(manifest, next_number=manifest.next_number + 1).write(self.folder)

    def _sweep(self) -> None:
        """Removes files not in the manifest; the caller has locked the index."""
        sweep(self.folder)
        entries = read_manifest(self.folder).segments
        named = {name for entry in entries for name in (entry.name, entry.deletions)}
        for path in self.folder.iterdir():
            if path.name[:6].isdigit() and path.name not in named:
                remove(path)


def _first_joined(counts: Sequence[int]) -> int:
    """Returns the first segment whose later segments together hold as many texts as it does.

    >>> _first_joined([8, 2, 1, 1])
    1
    """
    first, rows = len(counts), 0
    for place in reversed(range(len(counts))):
        if counts[place] <= min(rows, SEGMENT_ROWS - rows):
            first = place
        rows += counts[place]
    return first


def create_index(
    folder: Path,
    manifest: Manifest,
    parts: Iterable[EncodedTexts],
    *,
    copy_model: Callable[[Path], None] | None = None,
    overwrite: bool = False,
    inputs: Iterable[object] = (),
) -> TextIndex:
    """Writes an index atomically.

    Args:
        folder: Where to write it.
        manifest: Model and settings, without segments.
        parts: The texts, one part in memory at a time.
        copy_model: Called with the folder to write the model to.
        overwrite: Replace the content of `folder`.
        inputs: Paths of the texts and the model; `folder` must not contain them.

    Raises:
        InputError: an id is given twice, the folder is occupied, or an input would be replaced.
        BusyError: another command is writing it.
        StorageError: it can't be written.
    """
    with new_folder(folder, overwrite=overwrite, inputs=inputs) as new:
        manifest.write(new)
        if copy_model is not None:
            copy_model(new / MODEL)
        TextIndex(new).add_encoded(parts)
    return TextIndex(folder)


def write_segment(
    folder: Path, parts: Iterable[EncodedTexts], next_id: int, dtype: str, stem: Stem
) -> tuple[int, tuple[str, ...]]:
    """Writes a segment into an empty folder, and returns the number of its texts and its files.

    Texts without an id get numbers from `next_id`. Memory holds one part, a key per id, the words
    (`WordsWriter`) and the fields (`FieldsWriter`).

    Raises:
        InputError: an id occurs twice.
    """
    ids, texts = StringWriter(folder, "ids"), StringWriter(folder, "texts")
    about, of_words = FieldsWriter(folder), WordsWriter(folder, stem)
    keys: list[NDArray[np.uint64]] = []
    numbers = count(next_id)
    with (folder / "embeddings.bin").open("xb") as rows:
        for part in parts:
            names = [str(next(numbers)) if name is None else name for name in part.ids]
            ids.add(names)
            texts.add(part.texts)
            about.add(part.about, part.texts)
            of_words.add(part.searched)
            rows.write(np.ascontiguousarray(part.embeddings, DTYPES[dtype]).tobytes())
            keys.append(keys_of(names))
    ids.close()
    texts.close()
    all_keys = np.concatenate([np.empty(0, np.uint64), *keys])
    order = np.argsort(all_keys, kind="stable")
    _refuse_twice(folder, all_keys, order)
    of_words.close()
    (folder / "keys").write_bytes(all_keys[order].astype(KEY).tobytes())
    (folder / "rows").write_bytes(order.astype(ROW_NUMBER).tobytes())
    return len(all_keys), (*FILES, *words.SPELLINGS, *about.close())


def new_segment(index: Path, about: Manifest, parts: Iterable[EncodedTexts]) -> SegmentFacts:
    """Writes a segment into the folder of an index; the manifest does not list it yet.

    Raises:
        InputError: an id occurs twice.
        MissingExtraError: FAISS is not installed.
    """
    name = f"{about.next_number:06d}"
    with new_folder(index / name) as new:
        stem = stemmer(about.language or "")
        rows, names = write_segment(new, parts, about.next_id, about.dtype, stem)
        if not gets_lists(about, rows):
            return SegmentFacts(name, rows, file_facts(new, list(names)))
        shape = (rows, about.dim)
        stored = StoredRows(new / "embeddings.bin", DTYPES[about.dtype], shape)
        probing = lists.write_lists(new, stored, about.recall)
        files = file_facts(new, [*names, lists.FILE])
        return SegmentFacts(name, rows, files, probing=probing)


def in_groups(parts: Iterable[EncodedTexts], rows: int) -> Iterator[Iterator[EncodedTexts]]:
    """Yields the parts in groups, each just large enough to hold `rows` texts.

    Read each group to its end before the next one.
    """
    left = iter(parts)

    def group(part: EncodedTexts) -> Iterator[EncodedTexts]:
        yield part
        count = len(part.texts)
        while count < rows and (following := next(left, None)) is not None:
            yield following
            count += len(following.texts)

    return map(group, left)


def gets_lists(about: Manifest, rows: int) -> bool:
    """Returns whether a segment of `rows` rows gets lists for approximate search."""
    asked = about.recall < 1 and rows >= lists.LEAST_ROWS
    return asked and find_spec(lists.PACKAGE) is not None


def given_twice(name: str) -> InputError:
    """Returns the error about two texts with the same id."""
    return InputError(f"two texts have the id {name!r}; give each its own id.")


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
            raise given_twice(ids[row])
        seen.add(ids[row])
