"""SHA-256 of files, and JSON that carries its own, so that a changed byte is an error."""

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NoReturn

from rejoinder.errors import RejoinderError

_SEAL = "sha256"


def sha256_of(*contents: bytes) -> str:
    """SHA-256 of byte strings one after the other, in hexadecimal.

    >>> sha256_of(b"a", b"b") == sha256_of(b"ab")
    True
    """
    digest = hashlib.sha256()
    for content in contents:
        digest.update(content)
    return digest.hexdigest()


def sha256_of_file(path: Path) -> str:
    """SHA-256 of a file, in hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def file_facts(folder: Path, names: list[str]) -> dict[str, dict[str, Any]]:
    """`{name: {"sha256": …, "bytes": …}}` of files in `folder`, for its manifest."""
    return {
        name: {"sha256": sha256_of_file(folder / name), "bytes": (folder / name).stat().st_size}
        for name in names
    }


def check_file(path: Path, facts: object, kind: type[RejoinderError], remedy: str) -> None:
    """Compare a file with what `file_facts` said of it when it was written.

    Args:
        path: the file.
        facts: its size in bytes and SHA-256.
        kind: the class of the error.
        remedy: what to do, as a sentence.

    Raises:
        RejoinderError: of class `kind`; the file is missing, cut or changed.
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
    if sha256_of_file(path) != facts.get("sha256"):
        raise kind(f"{path} is not the file that was written (SHA-256). {remedy}")


def sealed(tree: Mapping[str, Any]) -> dict[str, Any]:
    """`tree` with its own hash as the last key, `sha256`; JSON may lay it out in any way.

    >>> check_seal(sealed({"step": 3}), Path("state.json"), RejoinderError, "")
    {'step': 3}
    """
    return {**tree, _SEAL: _digest(tree)}


def check_seal(
    tree: Mapping[str, Any], path: Path, kind: type[RejoinderError], remedy: str
) -> dict[str, Any]:
    """What `sealed` was given, once its hash is compared.

    Raises:
        RejoinderError: of class `kind`; something was changed after the file was written.
    """
    rest = {name: value for name, value in tree.items() if name != _SEAL}
    if tree.get(_SEAL) != _digest(rest):
        raise kind(f"{path} was changed after it was written (SHA-256). {remedy}")
    return rest


def read_sealed(
    path: Path,
    version: int,
    kind: type[RejoinderError],
    *,
    unreadable: str,
    outdated: str,
    remedy: str,
) -> dict[str, Any]:
    """Reads JSON that `sealed` made, of one `format_version`, and checks its hash.

    Args:
        path: the file.
        version: the `format_version` that it must have.
        kind: the class of the error.
        unreadable: how the message begins where the file is missing or no JSON.
        outdated: what to do where the file has another version, as a sentence.
        remedy: what to do where the file is damaged, as a sentence.

    Returns:
        The values without `format_version` and hash.

    Raises:
        RejoinderError: of class `kind`; the file is missing, no JSON, of another version, or
            changed after it was written.
    """
    try:
        tree = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise kind(f"{unreadable}: {error}. {remedy}") from None
    written = tree.get("format_version") if isinstance(tree, dict) else None
    if written != version:
        raise kind(
            f"{path} is of format version {written!r}; this version reads {version}. {outdated}"
        )
    values = check_seal(tree, path, kind, remedy)
    del values["format_version"]
    return values


def refuse_constant(name: str) -> NoReturn:
    """For `json.loads(parse_constant=…)`: NaN and infinities, which Python reads, are no JSON.

    Raises:
        ValueError: always.
    """
    raise ValueError(f"{name} is no number")


def _digest(tree: Mapping[str, Any]) -> str:
    return sha256_of(json.dumps(tree, sort_keys=True, ensure_ascii=True).encode())
