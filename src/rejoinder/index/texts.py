"""Texts to index, with ids or without: of a file, or of a program."""

import json
import reprlib
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from rejoinder.errors import InputError
from rejoinder.io.files.hashed import blake2b_number, refuse_constant
from rejoinder.io.formats.compression import MAGIC
from rejoinder.io.formats.surrogates import replace_surrogates
from rejoinder.io.formats.text_lines import file_lines

SPLITS = ("train", "dev", "test")
Text = tuple[str | None, str]
"""An id, None for the next number, and a text."""
GivenText = str | tuple[str, str]
"""A text, or an id and a text."""


def read_texts(path: Path, on_read: Callable[[int], None] | None = None) -> Iterator[Text]:
    """Yields ids and texts of a file, plain or compressed, or the replies of a folder of pairs.

    `.jsonl` has an object with `text`, and `id` or not, on each line; `.tsv` an id, a tab and a
    text; any other file a text. Blank lines of texts are texts. Of a folder that `rejoinder
    extract` wrote, different replies are texts of all splits, with the id of the first comment.

    Raises:
        InputError: the file can't be read, or a line has another form. The message names it.
    """
    if path.is_dir():
        return replies_of(path)
    suffix = Path(path.stem).suffix if path.suffix in MAGIC.values() else path.suffix
    lines = file_lines(path, on_read)
    if suffix == ".jsonl":
        return (_of_json(line, path, number) for number, line in enumerate(lines, 1))
    if suffix == ".tsv":
        return (_of_columns(line, path, number) for number, line in enumerate(lines, 1))
    return ((None, line) for line in lines)


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


def _of_json(line: str, path: Path, number: int) -> Text:
    try:
        tree = json.loads(line, parse_constant=refuse_constant)
    except (ValueError, RecursionError) as error:
        raise InputError(f"{path} line {number:,}: no JSON ({error}).") from None
    text = tree.get("text") if isinstance(tree, dict) else None
    name = tree.get("id") if isinstance(tree, dict) else None
    if isinstance(name, int) and not isinstance(name, bool):
        name = str(name)
    if not isinstance(text, str) or not isinstance(name, str | None):
        raise InputError(
            f"{path} line {number:,}: an object with a string `text`, and a string or a whole "
            "number `id` or none, is needed."
        )
    return None if name is None else replace_surrogates(name), replace_surrogates(text)


def _of_columns(line: str, path: Path, number: int) -> Text:
    columns = line.split("\t")
    if len(columns) != 2:
        raise InputError(
            f"{path} line {number:,}: {len(columns)} columns between tabs; an id and a text are "
            "needed."
        )
    return columns[0], columns[1]


def given_texts(texts: Iterable[GivenText]) -> Iterator[Text]:
    """Yields ids and texts of strings, and of pairs of an id and a string.

    Raises:
        InputError: an item is neither. The message names its index.
    """
    for index, item in enumerate(texts):
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
