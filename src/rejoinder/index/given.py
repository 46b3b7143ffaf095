"""Texts that a program gives to an index."""

import reprlib
from collections.abc import Iterable, Iterator

from rejoinder.corpus.texts import Entry
from rejoinder.errors import InputError
from rejoinder.inference.inputs import refuse_unordered
from rejoinder.io.formats.surrogates import replace_surrogates

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
