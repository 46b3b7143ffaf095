"""`TextIndex`: a folder of texts, ids and embeddings that you can search and change."""

import shutil
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import numpy as np
from msgspec.structs import replace

from rejoinder.errors import InputError
from rejoinder.index.manifest import FILE, Manifest
from rejoinder.index.reader import IndexReader
from rejoinder.index.segment import (
    EncodedTexts,
    encoded_texts,
    gets_lists,
    name_of_deletions,
    new_segment,
)
from rejoinder.index.string_table import StringTable
from rejoinder.io.files.atomic import new_folder, write_bytes
from rejoinder.io.files.claims import claim, sweep
from rejoinder.io.files.storage import storage_errors

MODEL = "model"
"""Folder in an index for a copy of its model."""


class TextIndex(IndexReader):
    """Texts with ids and embeddings in a folder.

    Texts that are added together form a segment, which never changes. A separate file lists its
    deleted texts. A change writes new files and then replaces `index.json`. Readers therefore see
    the index before or after the change, and a killed change leaves the index as it was.

    A segment of 200,000 texts or more has inverted lists for approximate search (`index.lists`).
    Smaller segments are joined and get lists once they hold as many texts together.
    """

    def add_encoded(self, parts: Iterable[EncodedTexts], *, update: bool = False) -> int:
        """Adds texts, and returns their number.

        Args:
            parts: The texts, one part in memory at a time. A text without an id gets the next
                number.
            update: Replace texts that have the same ids.

        Raises:
            InputError: an id is given twice, or is in the index and `update` is False.
            BusyError: another command is changing the index.
            StorageError: the index can't be written.
        """
        with self._changing():
            entry = new_segment(self.folder, self.manifest, parts)
            added = StringTable(self.folder / entry.name, "ids", entry.rows)
            ids = list(added)
            old = [place for place in self._places(ids) if place is not None]
            if old and not update:
                shutil.rmtree(self.folder / entry.name)
                part, row = old[0]
                raise InputError(
                    f"{self.folder} already has a text with the id "
                    f"{self._segments[part].ids[row]!r}. Nothing was added; update it (--update), "
                    "or choose another id."
                )
            # ids that texts without an id could get
            taken = [
                int(name) for name in ids if len(name) < 19 and name.isdigit() and name.isascii()
            ]
            manifest = replace(
                self._without(old), next_id=max([self.manifest.next_id - 1, *taken]) + 1
            )
            segments = (*manifest.segments, entry) if entry.rows else manifest.segments
            self._become(replace(manifest, segments=segments))
            self._list_small_ones()
            return entry.rows

    def delete(self, ids: str | Iterable[str]) -> None:
        """Deletes the text with an id, or the texts with several ids.

        Raises:
            InputError: no text has one of the ids, or an id is not a string. Nothing is deleted.
            BusyError: another command is changing the index.
            StorageError: the index can't be written.
        """
        with self._changing():
            self._become(self._without(self._known_places(ids)))

    def compact(self) -> None:
        """Frees the space of deleted texts, and joins all segments.

        Raises:
            InputError: a file was changed after it was written. The index stays as it is.
            BusyError: another command is changing the index.
            StorageError: the index can't be written.
        """
        with self._changing():
            self.check()  # otherwise damage would get a valid hash in the new segment
            entry = new_segment(self.folder, self.manifest, encoded_texts(self._segments))
            segments = (entry,) if entry.rows else ()
            self._become(replace(self.manifest, segments=segments))

    def _list_small_ones(self) -> None:
        """Joins the last segments without lists if they are large enough together."""
        kept = [*self._segments]
        while kept and kept[-1].lists is None:
            kept.pop()
        small = self._segments[len(kept) :]
        rows = sum(segment.entry.count for segment in small)
        if len(small) < 2 or not gets_lists(self.manifest, rows):
            return
        self._sweep()
        joined = new_segment(self.folder, self.manifest, encoded_texts(small))
        segments = (*self.manifest.segments[: len(kept)], joined)
        self._become(replace(self.manifest, segments=segments))

    def _without(self, places: Sequence[tuple[int, int]]) -> Manifest:
        """Writes which texts are deleted, and returns the new manifest."""
        number = self.manifest.next_number + 1
        segments = []
        for index, segment in enumerate(self._segments):
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
        return replace(self.manifest, segments=tuple(segments), next_number=number)

    @contextmanager
    def _changing(self) -> Iterator[None]:
        """Locks and opens the index for a change, and removes files that no manifest names."""
        with claim(self.folder), storage_errors(self.folder):
            self._open()  # another process may have changed it
            self._sweep()
            yield
            self._sweep()

    def _become(self, manifest: Manifest) -> None:
        replace(manifest, next_number=manifest.next_number + 1).write(self.folder)
        self._open()

    def _sweep(self) -> None:
        sweep(self.folder)
        named = {FILE, MODEL}
        for entry in self.manifest.segments:
            named |= {entry.name, *([entry.deletions] if entry.deletions else [])}
        for path in self.folder.iterdir():
            if path.name in named or not path.name[:6].isdigit():
                continue
            shutil.rmtree(path) if path.is_dir() else path.unlink()


def create_index(
    folder: Path,
    manifest: Manifest,
    parts: Iterable[EncodedTexts],
    *,
    copy_model: Callable[[Path], None] | None = None,
    overwrite: bool = False,
    inputs: Iterable[object] = (),
) -> TextIndex:
    """Writes an index, whole or not at all.

    Args:
        folder: Where to write it.
        manifest: Model and settings, without segments.
        parts: The texts, one part in memory at a time.
        copy_model: Called with the folder to write the model to.
        overwrite: Replace what `folder` holds.
        inputs: Where the texts and the model come from; `folder` must not contain them.

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
