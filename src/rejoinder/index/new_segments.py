"""Writes the segments of an index.

Texts that a program gives to an index.
"""

import reprlib
from collections.abc import Iterable, Iterator
from importlib.util import find_spec
from itertools import count
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from rejoinder.corpus.texts import Entry
from rejoinder.errors import InputError
from rejoinder.index import lists
from rejoinder.index.fields import FieldsWriter
from rejoinder.index.manifest import KEY, Manifest, SegmentFacts, keys_of
from rejoinder.index.mapped_files import StoredRows, StringTable, StringWriter
from rejoinder.index.segment import DTYPES, FILES, ROW_NUMBER, EncodedTexts
from rejoinder.index.words import WordsWriter
from rejoinder.inference.inputs import refuse_unordered
from rejoinder.io.files.atomic import new_folder
from rejoinder.io.files.hashed import file_facts
from rejoinder.io.formats.text_lines import replace_surrogates


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
    (folder / "rows").write_bytes(order.astype(ROW_NUMBER).tobytes())
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
        shape = (rows, about.dim)
        stored = StoredRows(new / "embeddings.bin", DTYPES[about.dtype], shape)
        probing = lists.write_lists(new, stored, about.recall)
        files = file_facts(new, [*names, lists.FILE])
        return SegmentFacts(name, rows, files, probing=probing)


def in_groups(parts: Iterable[EncodedTexts], rows: int) -> Iterator[Iterator[EncodedTexts]]:
    """Yields the parts in groups, each of as few as have so many texts together.

    A group must be read to its end before the next one.
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
    """Returns whether a segment of so many rows gets lists, by which it is searched."""
    asked = about.recall < 1 and rows >= lists.LEAST_ROWS
    return asked and find_spec(lists.PACKAGE) is not None


def given_twice(name: str) -> InputError:
    """Returns the error about an id that two texts have."""
    return InputError(f"two texts have the id {name!r}; give each its own.")


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


GivenText = str | tuple[str, str]
"""A text, or an id and a text."""


def given_texts(given: Iterable[GivenText | Entry]) -> Iterator[Entry]:
    """Yields ids and texts of strings, or of tuples of an id and a string; entries as they are.

    Raises:
        InputError: an item is neither; the message gives its index.
    """
    refuse_unordered(given)
    for index, item in enumerate(given):
        if isinstance(item, Entry):
            yield item
            continue
        if isinstance(item, str):
            yield Entry(None, replace_surrogates(item))
            continue
        pair = item
        if not (
            isinstance(pair, tuple)
            and len(pair) == 2
            and isinstance(pair[0], str | None)
            and isinstance(pair[1], str)
        ):
            raise InputError(
                f"text {index} is {reprlib.repr(item)}; give a string, or an id and a string."
            )
        name, text = pair
        yield Entry(name and replace_surrogates(name), replace_surrogates(text))
