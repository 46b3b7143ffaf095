"""Texts to index, with ids or without: of a file, or of a program."""

import reprlib
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from rejoinder.errors import InputError
from rejoinder.inference.inputs import refuse_unordered
from rejoinder.io.files.hashed import blake2b_number
from rejoinder.io.formats import texts
from rejoinder.io.formats.surrogates import replace_surrogates
from rejoinder.io.formats.texts import Text

SPLITS = ("train", "dev", "test")
GivenText = str | tuple[str, str]
"""A text, or an id and a text."""


def read_texts(
    path: Path, columns: str | None = None, on_read: Callable[[int], None] | None = None
) -> Iterator[Text]:
    """Yields ids and texts of a file (`io.formats.texts`), or the replies of a folder of pairs.

    Of a folder that `rejoinder extract` wrote, different replies are texts of all splits, with the
    id of the first comment.

    Raises:
        InputError: the file can't be read, or has no texts. The message names it.
    """
    if not path.is_dir():
        return texts.read_texts(path, columns, on_read)
    if columns is not None:
        raise InputError(f"--columns is for a file; {path} is a folder of pairs.")
    return replies_of(path)


def replies_of(folder: Path) -> Iterator[Text]:
    """Yields the different replies of a folder of pairs, each with the id of its first comment.

    Memory holds a hash of each.

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
                    yield name, text


def given_texts(given: Iterable[GivenText]) -> Iterator[Text]:
    """Yields ids and texts of strings, and of pairs of an id and a string.

    Raises:
        InputError: an item is neither. The message names its index.
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
                f"text {index} is {reprlib.repr(item)}; a string, or an id and a string, is needed."
            )
        name, text = pair
        yield None if name is None else replace_surrogates(name), replace_surrogates(text)
