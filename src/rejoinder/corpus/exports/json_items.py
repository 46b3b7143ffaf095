"""JSON documents that are larger than memory, an element of an array at a time.

`ijson` reads them: own code would mean a whole parser.
"""

from collections.abc import Iterator
from typing import IO, Any

from rejoinder.errors import InputError, require


def json_items(file: IO[bytes], path: str, where: str) -> Iterator[Any]:
    """Yields the elements of an array in a JSON document.

    Args:
        file: the document, in UTF-8.
        path: keys to the array, joined by dots, such as `messages`; `item` stands for each element
            of an outer array; empty for a document that is an array.
        where: what messages call the file.

    Raises:
        InputError: it is not JSON. Elements before the fault have been yielded.
        MissingExtraError: ijson is not installed.
    """
    return json_values(file, f"{path}.item" if path else "item", where)


def json_values(file: IO[bytes], path: str, where: str) -> Iterator[Any]:
    """Yields the values at a path of keys, as `json_items` does the elements of an array there."""
    require("extract", "ijson")
    import ijson

    try:
        yield from ijson.items(file, path, use_float=True)
    except ijson.JSONError as error:
        reason = " ".join(str(error).split())[:100]
        raise InputError(f"{where} is not whole JSON ({reason}); export it again.") from None
