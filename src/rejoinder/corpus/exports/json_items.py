"""JSON documents that are larger than memory, an element of an array at a time.

`ijson` reads them: own code would mean a whole parser.
"""

from collections.abc import Collection, Iterator
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
    """Yields the values at a path of keys, as `json_items` does the elements of an array there.

    Documents may follow one another.
    """
    require("extract", "ijson")
    import ijson

    try:
        yield from ijson.items(file, path, use_float=True, multiple_values=True)
    except (ijson.JSONError, UnicodeDecodeError) as error:
        raise _not_json(where, error) from None


def json_members(file: IO[bytes], path: str, where: str) -> Iterator[tuple[str, Any]]:
    """Yields the keys and values of an object in a JSON document, as `json_items` does."""
    require("extract", "ijson")
    import ijson

    try:
        yield from ijson.kvitems(file, path, use_float=True)
    except (ijson.JSONError, UnicodeDecodeError) as error:
        raise _not_json(where, error) from None


def json_parts(
    file: IO[bytes], paths: Collection[str], where: str, begins: Collection[str] = ()
) -> Iterator[tuple[str, Any]]:
    """Yields path and value wherever the path is one of `paths`, in the order of the document.

    Where an object or array at one of `begins` opens, it yields that path and None.
    """
    require("extract", "ijson")
    import ijson
    from ijson.common import ObjectBuilder

    builder, within = ObjectBuilder(), ""
    try:
        for path, event, value in ijson.parse(file, use_float=True):
            opens = event in ("start_map", "start_array")
            if within:
                builder.event(event, value)
                if path == within and event in ("end_map", "end_array"):
                    yield path, builder.value
                    within = ""
            elif path in paths and opens:
                builder, within = ObjectBuilder(), path
                builder.event(event, value)
            elif path in paths or (path in begins and opens):
                yield path, value
    except (ijson.JSONError, UnicodeDecodeError) as error:
        raise _not_json(where, error) from None


def _not_json(where: str, error: Exception) -> InputError:
    reason = " ".join(str(error).split())[:100]
    return InputError(f"{where} is not whole JSON ({reason}); export it again.")
