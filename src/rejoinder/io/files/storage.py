"""Turns errors of a disk (full, read-only, missing rights) into one sentence each."""

import errno
import os
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from rejoinder.errors import InputError, RejoinderError, StorageError

_CAUSES = {
    errno.ENOSPC: "no space is left on the device",
    errno.EDQUOT: "the disk quota is used up",
    errno.EFBIG: "a file would exceed the size limit",
    errno.EROFS: "the file system is read-only",
    errno.EIO: "the device reports an input/output error",
}
"""Errors of the storage itself, whatever was being written."""
_REFUSALS = {
    errno.EACCES: "permission denied",
    errno.EPERM: "operation not permitted",
    errno.ENOTDIR: "a part of the path is a file, not a folder",
    errno.EEXIST: "a part of the path is a file, not a folder",
    errno.ENAMETOOLONG: "the name is too long",
    errno.EISDIR: "it is a folder",
    errno.ELOOP: "a link in the path leads back to itself",
}
"""Errors of a path that is written. The same codes may come from reading another path."""
_NO_MEMORY = re.compile(
    r"cannot allocate memory|can't allocate memory|failed to map segment|not enough memory|"
    r"out of memory|can't start new thread|could not spawn threads",
    re.IGNORECASE,
)
"""What the system and libraries say where memory does not suffice."""
_NUMBER = re.compile(r"os error (\d+)")


def storage_cause(error: BaseException) -> str | None:
    """Returns why an output can't be written, None if the error has nothing to do with storage.

    `error` is an OSError, or an error of a library that holds the text of an OSError.

    >>> storage_cause(OSError(errno.ENOSPC, "No space left on device"))
    'no space is left on the device'
    >>> storage_cause(RuntimeError("I/O error: File too large (os error 27)"))
    'a file would exceed the size limit'
    >>> storage_cause(ValueError("no")) is None
    True
    """
    if isinstance(error, OSError) and error.errno is not None:
        return _CAUSES.get(error.errno)
    message = str(error)
    if match := _NUMBER.search(message):
        return _CAUSES.get(int(match[1]))
    for number, cause in _CAUSES.items():
        if os.strerror(number).lower() in message.lower():
            return cause
    return None


def lacks_memory(error: BaseException) -> bool:
    """Returns whether memory did not suffice, also if a library wrapped the error.

    >>> lacks_memory(OSError(errno.ENOMEM, "Cannot allocate memory"))
    True
    >>> lacks_memory(RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried to"))
    True
    >>> lacks_memory(ValueError("no"))
    False
    """
    return isinstance(error, MemoryError) or _NO_MEMORY.search(str(error)) is not None


@contextmanager
def storage_errors(path: Path) -> Iterator[None]:
    """Turns errors of a full or broken disk within the block into a StorageError about `path`."""
    try:
        yield
    except RejoinderError:
        raise
    except Exception as error:
        cause = storage_cause(error)
        if cause is None:
            raise
        raise StorageError(f"{path} can't be written: {cause}{_free(path)}.") from error


@contextmanager
def creation_errors(path: Path) -> Iterator[None]:
    """Turns errors of creating or renaming an output within the block into a StorageError."""
    try:
        yield
    except OSError as error:
        raise refused(path, error) from None


@contextmanager
def read_errors(path: object) -> Iterator[None]:
    """Turns errors of reading a file or folder within the block into an InputError."""
    try:
        yield
    except OSError as error:
        raise InputError(f"{path} can't be read: {error.strerror}.") from None


def refused(path: Path, error: OSError) -> StorageError:
    """Returns the error for an output that can't be opened or created."""
    number = error.errno or 0
    cause = _CAUSES.get(number) or _REFUSALS.get(number) or str(error)
    return StorageError(f"{path} can't be written: {cause}. Name another output.")


def _free(path: Path) -> str:
    """Returns the free space on the disk of `path`, in parentheses, for an error message."""
    for folder in (path, *path.parents):
        try:
            free = shutil.disk_usage(folder).free
        except OSError:
            continue
        return f" ({free / 1e6:,.0f} MB free)"
    return ""
