"""BSON, the documents of a MongoDB dump (`mongodump`), one at a time.

Own code: the `bson` package comes only with the MongoDB driver.
"""

import struct
from collections.abc import Iterator
from typing import IO, Any

from rejoinder.errors import InputError

_LARGEST = 1 << 26
_SIZE = struct.Struct("<i")
_NUMBERS = {0x01: struct.Struct("<d"), 0x10: _SIZE, 0x12: struct.Struct("<q")}
_WIDTHS = {0x06: 0, 0x0A: 0, 0x11: 8, 0x13: 16, 0x7F: 0, 0xFF: 0}
"""Bytes of values that are not read: timestamps, decimals, null and such."""


def bson_documents(file: IO[bytes], where: str) -> Iterator[dict[str, Any]]:
    """Yields documents as JSON has them: dates as `{"$date": milliseconds}`, ids as digits.

    Values of other types, such as pictures, are None.

    Raises:
        InputError: the file is damaged. Documents before the fault have been yielded.
    """
    while head := file.read(4):
        try:
            (size,) = _SIZE.unpack(head)
            if not 5 <= size <= _LARGEST:
                raise ValueError(f"a document of {size} bytes")
            body = file.read(size - 4)
            if len(body) < size - 4:
                raise ValueError("it ends within a document")
            document, _ = _document(body, 0)
        except (struct.error, ValueError, IndexError, RecursionError) as error:
            raise InputError(f"{where} is not whole BSON ({error}); dump it again.") from None
        yield document


def _document(data: bytes, at: int) -> tuple[dict[str, Any], int]:
    """Returns the elements from a place on, and the place after them."""
    found: dict[str, Any] = {}
    while kind := data[at]:
        end = data.index(b"\0", at + 1)
        name = data[at + 1 : end].decode("utf-8", "replace")
        found[name], at = _value(kind, data, end + 1)
    return found, at + 1


def _value(kind: int, data: bytes, at: int) -> tuple[Any, int]:
    if number := _NUMBERS.get(kind):
        return number.unpack_from(data, at)[0], at + number.size
    if kind in _WIDTHS:
        return None, at + _WIDTHS[kind]
    match kind:
        case 0x02 | 0x0D | 0x0E:  # text, code, symbol
            end = at + 4 + _size(data, at)
            return data[at + 4 : end - 1].decode("utf-8", "replace"), end
        case 0x03:
            return _document(data, at + 4)
        case 0x04:
            elements, end = _document(data, at + 4)
            return list(elements.values()), end
        case 0x05:
            return None, at + 5 + _size(data, at)
        case 0x07:
            return data[at : at + 12].hex(), at + 12
        case 0x08:
            return data[at] != 0, at + 1
        case 0x09:
            return {"$date": struct.unpack_from("<q", data, at)[0]}, at + 8
        case 0x0B:  # a regular expression is two strings
            return None, data.index(b"\0", data.index(b"\0", at) + 1) + 1
    raise ValueError(f"a value of type {kind}")


def _size(data: bytes, at: int) -> int:
    (size,) = _SIZE.unpack_from(data, at)
    if not 0 <= size <= len(data) - at:
        raise ValueError(f"a value of {size} bytes")
    return int(size)
