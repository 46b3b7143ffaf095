"""Hashes files, texts and arrays, and writes JSON with its own hash, so that changes are noticed.

Also converts values read from JSON to records, whose annotations say what is allowed.

This is the only module that calls `hashlib`. The hashes are parts of file formats and of seeds:
they must never change.
"""

import hashlib
import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn, TypeVar

import msgspec
from msgspec import Meta, to_builtins

from rejoinder.errors import RejoinderError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_SEAL = "sha256"
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


def sha256_of(*contents: bytes) -> str:
    """Returns the SHA-256 of byte strings joined, in hexadecimal.

    >>> sha256_of(b"a", b"b") == sha256_of(b"ab")
    True
    """
    digest = hashlib.sha256()
    for content in contents:
        digest.update(content)
    return digest.hexdigest()


class Sha256:
    """The SHA-256 of content that comes in pieces.

    >>> digest = Sha256()
    >>> digest.add(b"a"), digest.add(b"b")
    (None, None)
    >>> digest.hexadecimal == sha256_of(b"ab")
    True
    """

    def __init__(self) -> None:
        self._digest = hashlib.sha256()

    def add(self, content: bytes) -> None:
        """Adds the next piece."""
        self._digest.update(content)

    @property
    def hexadecimal(self) -> str:
        """The SHA-256 of all pieces so far, in hexadecimal."""
        return self._digest.hexdigest()


def sha256_of_file(path: Path) -> str:
    """Returns the SHA-256 of a file, in hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def sha256_of_folder(folder: Path) -> str:
    """Returns one SHA-256 of the names and contents of all files below a folder."""
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    names = [f"{path.relative_to(folder).as_posix()} {sha256_of_file(path)}" for path in files]
    return sha256_of("\n".join(names).encode("utf-8", "surrogateescape"))


def sha256_of_array(array: "NDArray[np.float32]") -> str:
    """Returns the SHA-256 of an array's little-endian float32 values in row order."""
    return sha256_of(array.astype("<f4", order="C", copy=False).tobytes())


def sha256_of_tensors(tensors: "Mapping[str, NDArray[Any]]") -> str:
    """Returns one SHA-256 of the values of arrays, in the order of their names."""
    return sha256_of(*(tensors[name].tobytes() for name in sorted(tensors)))


def sha256_number(content: bytes, size: int) -> int:
    """Returns the first `size` bytes of a SHA-256 as a little-endian number, for seeds.

    >>> sha256_number(b"a", 2) == int.from_bytes(bytes.fromhex(sha256_of(b"a")[:4]), "little")
    True
    """
    return int.from_bytes(hashlib.sha256(content).digest()[:size], "little")


def blake2b_number(content: bytes) -> int:
    """Returns the 8-byte BLAKE2b hash as a little-endian number, for keys of texts."""
    return int.from_bytes(hashlib.blake2b(content, digest_size=8).digest(), "little")


def md5_of(content: bytes) -> str:
    """Returns the MD5 in hexadecimal, for splits that any query engine can compute."""
    return hashlib.md5(content, usedforsecurity=False).hexdigest()


def file_facts(folder: Path, names: list[str]) -> dict[str, dict[str, Any]]:
    """Returns `{name: {"sha256": …, "bytes": …}}` of files in `folder`, for its manifest."""
    return {
        name: {"sha256": sha256_of_file(folder / name), "bytes": (folder / name).stat().st_size}
        for name in names
    }


def check_file(
    path: Path, facts: object, kind: type[RejoinderError], remedy: str, *, content: bool = True
) -> None:
    """Compares a file with `facts` from the time when it was written: `bytes` and `sha256`.

    `remedy` is a sentence that says what to do. Without `content` only the size is compared.

    Raises:
        RejoinderError: of class `kind`: the file is missing, cut or changed.
    """
    if not isinstance(facts, Mapping):
        raise kind(f"{path} is listed without its size and SHA-256; the list is damaged. {remedy}")
    if not path.is_file():
        raise kind(f"{path} is missing. {remedy}")
    size = path.stat().st_size
    if size != facts.get("bytes"):
        raise kind(
            f"{path} has {size:,} bytes, not {facts.get('bytes')}; it is cut or changed. {remedy}"
        )
    if content and sha256_of_file(path) != facts.get("sha256"):
        raise kind(f"{path} is not the file that was written (SHA-256). {remedy}")


def sealed(tree: Mapping[str, Any]) -> dict[str, Any]:
    """Returns `tree` with its own hash as the last key, `sha256`.

    The hash does not depend on the layout of the JSON.

    >>> check_seal(sealed({"step": 3}), Path("state.json"), RejoinderError, "")
    {'step': 3}
    """
    return {**tree, _SEAL: _digest(tree)}


def sealed_text(record: Record, version: int) -> str:
    """Returns a record as JSON that `read_sealed` reads."""
    tree = sealed({"format_version": version, **to_builtins(record)})
    return json.dumps(tree, indent=1) + "\n"  # in ASCII: bytes of file names may not be UTF-8


def check_seal(
    tree: Mapping[str, Any], path: Path, kind: type[RejoinderError], remedy: str
) -> dict[str, Any]:
    """Returns what `sealed` was given, after comparing its hash.

    Raises:
        RejoinderError: of class `kind`: something was changed after the file was written.
    """
    rest = {name: value for name, value in tree.items() if name != _SEAL}
    if tree.get(_SEAL) != _digest(rest):
        raise kind(f"{path} was changed after it was written (SHA-256). {remedy}")
    return rest


def read_sealed(
    path: Path,
    record: type[T],
    version: int,
    kind: type[RejoinderError],
    remedy: str,
    *,
    unreadable: str = "",
    outdated: str = "",
) -> T:
    """Returns what JSON made by `sealed` holds, without `format_version` and hash, as a `Record`.

    Args:
        path: The file.
        record: What it holds, see `decoded`.
        version: The format version that is read.
        kind: Class of the error.
        remedy: A sentence that says what to do about damage.
        unreadable: How the message about a missing file or invalid JSON begins.
        outdated: A sentence that says what to do about another version. Default: `remedy`.

    Raises:
        RejoinderError: of class `kind`; the file is missing, not JSON, of another version, changed
            after it was written, or lacks what a record needs.
    """
    try:
        tree = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        if unreadable and isinstance(error, FileNotFoundError | NotADirectoryError):
            there = f"it has no {path.name}" if path.parent.exists() else "it does not exist"
            raise kind(f"{unreadable}: {there}.") from None
        begin = unreadable or f"{path} can't be read"
        raise kind(f"{begin}: {error}. {remedy}") from None
    written = tree.get("format_version") if isinstance(tree, dict) else None
    if written != version:
        raise kind(
            f"{path} is of format version {written!r}; this version reads {version}. "
            f"{outdated or remedy}"
        )
    tree = check_seal(tree, path, kind, remedy)
    del tree["format_version"]
    try:
        return decoded(record, tree)
    except ValueError as error:
        raise kind(f"{path} is damaged: {error}. {remedy}") from None


def refuse_constant(name: str) -> NoReturn:
    """Raises a ValueError for NaN and infinities, as `parse_constant` of `json.loads`."""
    raise ValueError(f"{name} is not a number")


def _digest(tree: Mapping[str, Any]) -> str:
    return sha256_of(json.dumps(tree, sort_keys=True, ensure_ascii=True).encode())
