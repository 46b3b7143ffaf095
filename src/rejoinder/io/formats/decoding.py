"""Makes records of values read from JSON: their annotations say what is allowed."""

import json
import sys
from typing import Annotated, TypeVar

import msgspec
from msgspec import Meta

T = TypeVar("T")

Count = Annotated[int, Meta(ge=0, le=2**63 - 1)]
Number = Annotated[float, Meta(ge=-sys.float_info.max, le=sys.float_info.max)]
"""A finite number. A `float` alone may be NaN."""
Seconds = Annotated[float, Meta(ge=0.0, le=sys.float_info.max)]
FileName = Annotated[str, Meta(pattern=r"\A[^/\\\x00]*[^/\\\x00.][^/\\\x00]*\Z")]
Digest = Annotated[str, Meta(pattern=r"\A[0-9a-f]{64}\Z")]
"""A SHA-256 in hexadecimal."""


class Record(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A JSON object with these keys and no others."""


def decoded(kind: type[T], tree: object) -> T:
    """Returns `tree`, as `json.loads` made it, as an object of `kind`: a `Record` or another type.

    >>> class Shard(Record, frozen=True):
    ...     rows: Count
    >>> decoded(Shard, {"rows": 3})
    Shard(rows=3)
    >>> decoded(Shard, {"rows": -1})
    Traceback (most recent call last):
    msgspec.ValidationError: Expected `int` >= 0 - at `$.rows`

    Raises:
        ValueError: a key is missing or unknown, its value is not what is annotated, or a string has
            half of a surrogate pair that does not stand for a byte of a file's name.
    """
    json.dumps(tree, ensure_ascii=False).encode("utf-8", "surrogateescape")
    return msgspec.convert(tree, kind)
