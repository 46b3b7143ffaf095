"""Sentences as a list of strings that UTF-8 can hold."""

from collections.abc import Iterable

from rejoinder.errors import InputError
from rejoinder.io.formats.surrogates import replace_surrogates


def as_strings(sentences: Iterable[str]) -> list[str]:
    r"""Returns sentences as a list of strings. Halves of surrogate pairs become U+FFFD.

    >>> as_strings(["Hi.", "a\udc00"])
    ['Hi.', 'a\ufffd']

    Raises:
        InputError: an element is not a string. The message names its index.
    """
    items = list(sentences)
    for index, item in enumerate(items):
        if not isinstance(item, str):
            raise InputError(
                f"sentence {index} is a {type(item).__name__}; sentences must be strings."
            )
    joined = "".join(items)
    if joined.isascii():
        return items
    try:
        joined.encode()
    except UnicodeEncodeError:
        return [replace_surrogates(item) for item in items]
    return items
