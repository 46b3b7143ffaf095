"""Where an index gets its texts: files, folders of pairs, exports of conversations, strings."""

import reprlib
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple

from rejoinder.corpus.exports import format_of_export
from rejoinder.corpus.manifest import FILE as MANIFEST
from rejoinder.corpus.manifest import SPLITS
from rejoinder.errors import InputError
from rejoinder.index.fields import About
from rejoinder.inference.inputs import refuse_unordered
from rejoinder.io.files.hashed import blake2b_number
from rejoinder.io.formats.surrogates import replace_surrogates
from rejoinder.io.formats.texts import read_texts

if TYPE_CHECKING:
    from rejoinder.corpus.exports.base import Message

GivenText = str | tuple[str, str]
"""A text, or an id and a text."""


class Entry(NamedTuple):
    """A text to index."""

    id: str | None
    """None: the text gets the next number that no text of the index has had."""
    text: str
    about: About = MappingProxyType({})
    """What is known about a message, by `fields.KEYS`. Empty for other texts."""


def texts_to_index(
    path: Path, columns: str | None = None, on_read: Callable[[int], None] | None = None
) -> Iterator[Entry]:
    """Yields the texts of a file (`io.formats.texts`), the messages of an export, or replies.

    Replies are those of a folder of pairs. Messages are those that extraction would keep.

    Raises:
        InputError: the file can't be read, or has no texts. The message names it.
    """
    if path.is_dir() and (path / MANIFEST).is_file():
        if columns is not None:
            raise InputError(f"--columns is for a file; {path} is a folder of pairs.")
        return replies_of(path)
    if columns is None and path.exists() and (export := format_of_export(path)) is not None:
        from rejoinder.corpus.exports.convert import kept_messages  # needs Polars

        return map(entry_of, kept_messages(path, export))
    if path.is_dir():
        raise InputError(
            f"{path} is neither a folder of pairs nor an export that is known here; name a file."
        )
    return (Entry(*text) for text in read_texts(path, columns, on_read))


def entry_of(message: "Message") -> Entry:
    """Returns a message of an export, with what is known about it."""
    about = {
        "author": message.author,
        "time": message.time,
        "source": message.source,
        "thread": message.thread,
        "answers": message.parent,
        "link": message.link,
    }
    known = {name: value for name, value in about.items() if value not in (None, "")}
    return Entry(message.id, message.text, known)


def replies_of(folder: Path) -> Iterator[Entry]:
    """Yields each different reply of all splits of a folder of pairs, with its first comment's id.

    Memory holds a hash of each reply.

    Raises:
        InputError: the folder holds no usable pairs.
    """
    from rejoinder.corpus.shards import open_pairs  # needs Polars, which files of texts don't

    pairs = open_pairs(folder)
    seen: set[int] = set()
    for split in SPLITS:
        for block in pairs.blocks(split):
            for name, text in pairs.read(block, ["response_id", "response"]).iter_rows():
                key = blake2b_number(text.encode())
                if key not in seen:
                    seen.add(key)
                    yield Entry(name, text)


def given_texts(given: Iterable[GivenText]) -> Iterator[Entry]:
    """Yields ids and texts of strings, or of tuples of an id and a string.

    Raises:
        InputError: an item is neither; the message gives its index.
    """
    refuse_unordered(given)
    for index, item in enumerate(given):
        pair = (None, item) if isinstance(item, str) else item
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
        yield Entry(None if name is None else replace_surrogates(name), replace_surrogates(text))
