"""Reads a folder of files in one state, although another process may be replacing it."""

import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from rejoinder.errors import InputError, RejoinderError
from rejoinder.io.files.claims import companion
from rejoinder.io.files.outputs import resolved

_ATTEMPTS = 400
"""How often to read again what another process keeps changing."""
_PAUSE = 0.005
"""Seconds between attempts."""

Stamp = tuple[int, int, int]
T = TypeVar("T")


def stamp_of(manifest: Path) -> Stamp | None:
    """Returns what identifies this version of a file; None if there is none."""
    try:
        found = manifest.stat()
    except OSError:
        return None
    return found.st_ino, found.st_mtime_ns, found.st_size


def read_one_state(manifest: Path, read: Callable[[], T]) -> T:
    """Returns what `read` makes of the files next to `manifest`, all of one state.

    Each state has its own `manifest`, which must be the same before and after; otherwise `read` is
    called again.

    Raises:
        RejoinderError, OSError: what `read` raises, of a state that stayed.
        InputError: the files keep changing.
    """
    for attempt in range(_ATTEMPTS):
        stamp = stamp_of(manifest)
        error: Exception | None = None
        try:
            result = read()
        except (RejoinderError, OSError) as found:
            error = found
        if stamp_of(manifest) == stamp and (stamp is not None or not _is_replaced(manifest.parent)):
            if error is not None:
                raise error
            return result
        if attempt:
            time.sleep(_PAUSE)
    raise InputError(f"{manifest.parent} keeps changing; wait for the other process.")


def _is_replaced(folder: Path) -> bool:
    """Returns whether another process is between the two renames that replace the folder."""
    return companion(resolved(folder), "old").exists()
