"""Turns disk errors (full, read-only, permission denied) into one sentence each.

Also resolves paths: links, devices, folders for temporary files.
"""

import errno
import os
import re
import shutil
import stat
import tempfile
import warnings
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from rejoinder.errors import InputError, LeftOutWarning, RejoinderError, StorageError
from rejoinder.io.files.system import WINDOWS, refused_name

_CAUSES = {
    errno.ENOSPC: "no space is left on the device",
    errno.EDQUOT: "the disk quota is used up",
    errno.EFBIG: "a file would exceed the size limit",
    errno.EROFS: "the file system is read-only",
    errno.EIO: "the device reports an input/output error",
}
"""Errors of the storage itself, whatever was being written."""
_REFUSALS = {
    errno.EACCES: "permission denied" + ", or another program has it open" * WINDOWS,
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
    r"out of memory|can't start new thread|(?:could not|can't) spawn|"
    r"error return without exception set",  # a library in C that got none
    re.IGNORECASE,
)
"""What the system and libraries say where memory does not suffice."""
_DATABASE = re.compile(r"postgres(?:ql)?:/.+", re.DOTALL)
_NUMBER = re.compile(r"os error (\d+)")


def is_database(path: Path) -> bool:
    """Returns whether a path is the address of a database.

    >>> is_database(Path("postgresql://host/zulip")), is_database(Path("zulip.zip"))
    (True, False)
    """
    return _DATABASE.fullmatch(str(path)) is not None


def is_there(path: Path) -> bool:
    """Returns whether a path leads to something, or may, as the address of a database does."""
    return is_database(path) or path.exists()


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
        number = int(match[1])  # of Windows, which OSError translates there
        return _CAUSES.get(OSError(number, "", None, number).errno or 0)
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


_RESERVE = 1 << 20
"""Bytes that the system gives and takes back at once: what Python asks it for at a time."""


@contextmanager
def storage_errors(path: Path) -> Iterator[None]:
    """Turns errors of a full or broken disk within the block into a StorageError about `path`.

    Where the block failed for lack of memory, there is a MiB to clean up with.
    """
    reserve = bytes(_RESERVE)
    try:
        yield
    except Exception as error:
        del reserve
        cause = None if isinstance(error, RejoinderError) else storage_cause(error)
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


_NAMED = 3
"""Names of many that a message has."""


def resolved(path: Path) -> Path:
    """Returns the path that an output path leads to: links are followed, also the last one.

    All paths to one file or folder give the same result, so they share a lock. Devices keep
    their path: `/dev/stdout` may lead to a pipe, which has none.

    Raises:
        StorageError: it is the root folder, Windows has no such name, links lead back to
            themselves, or there is no current folder.
    """
    with creation_errors(path):
        if is_device(path):
            return Path(os.path.abspath(path))  # noqa: PTH100 -- resolve() would follow the link
        real = Path(os.path.realpath(path))
        if real.is_symlink():
            raise refused(path, OSError(errno.ELOOP, ""))
    if WINDOWS and (name := refused_name(path)):
        raise StorageError(
            f"{path} can't be written: Windows allows no file {name!r}. Name another output."
        )
    if not real.name:
        raise StorageError(f"{path} can't be written: it is the root folder. Name another output.")
    return real


def is_device(path: Path) -> bool:
    """Returns whether `path` exists and is neither a file nor a folder, such as a pipe."""
    try:
        mode = path.stat().st_mode
    except OSError:  # missing, or an error that the claim will report
        return False
    return not stat.S_ISREG(mode) and not stat.S_ISDIR(mode)


def refuse_content(path: object, *, is_file: bool, occupied: bool) -> None:
    """Refuses a folder that is written where a file is, or where there are other files.

    Raises:
        InputError: either is so.
    """
    if is_file:
        raise InputError(f"{path} is a file; a folder is written there. Name another folder.")
    if occupied:
        raise InputError(
            f"{path} exists and is not empty; name another folder, or replace it with "
            "`overwrite=True`."
        )


def inside(paths: Iterable[Path], folder: Path) -> list[Path]:
    """Returns the paths in a folder without links that lead out of it, of which it warns."""
    root, kept, left_out = os.path.realpath(folder), list[Path](), list[str]()
    for path in paths:
        if not path.is_symlink() or Path(os.path.realpath(path)).is_relative_to(root):
            kept.append(path)
        else:
            left_out.append(path.relative_to(folder).as_posix())
    warn_of_links(folder, left_out)
    return kept


def first_names(names: Iterable[str]) -> str:
    """Returns the first names of many as a list.

    >>> first_names("bcad")
    'a, b, c …'
    """
    first = sorted(names)
    return ", ".join(first[:_NAMED]) + (" …" if len(first) > _NAMED else "")


def warn_of_links(path: Path, names: Sequence[str]) -> None:
    """Warns that links in a folder or an archive lead out of it and are not read, if any do."""
    if names:
        lead = "links lead out of it and are" if len(names) > 1 else "link leads out of it and is"
        warnings.warn(
            f"{path}: {len(names):,} {lead} left out: {first_names(names)}. Copy the file itself "
            "to read it.",
            LeftOutWarning,
            stacklevel=2,
        )


@contextmanager
def scratch_folder() -> Iterator[Path]:
    """Yields a folder for temporary files; on an executor, it is where Spark has its own."""
    disk = os.environ.get("SPARK_LOCAL_DIRS", "").split(",")[0]
    with tempfile.TemporaryDirectory(
        prefix="rejoinder-",
        dir=disk if disk and Path(disk).is_dir() else None,
        ignore_cleanup_errors=True,  # somebody else may have removed it
    ) as folder:
        yield Path(folder)
