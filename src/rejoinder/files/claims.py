"""One command at a time writes an output: locks beside outputs, and what a killed one left.

The lock of `runs/a` is the file `runs/.a.lock`, held by the operating system until the process
ends. Whoever holds it owns `runs/.a.part` (what is being written) and `runs/.a.old` (what is
being replaced), so it may remove those of a killed predecessor.
"""

import os
import shutil
import socket
import stat
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

from rejoinder.errors import BusyError, InputError
from rejoinder.files.platform import remove_locked, try_lock
from rejoinder.files.storage import refused


@dataclass
class _Held:
    """A lock of this process."""

    handle: int
    made: list[Path]
    """Folders that had to be made to hold the output, the innermost first."""
    users: int = 1
    writing: threading.Lock = field(default_factory=threading.Lock)
    """Threads of one process share the lock, and take turns at `.NAME.part`."""


_GUARD = threading.Lock()
_HELD: dict[Path, _Held] = {}


@contextmanager
def claim(path: Path) -> Iterator[None]:
    """Hold an output, a file or a folder, against other processes while the block runs.

    Claim an output before the work begins: that it can be written is known then. Within a process
    claims nest. What a killed process left half written beside the output is removed, and what it
    was about to replace is put back. A device or a pipe needs no claim.

    Raises:
        BusyError: another process holds it.
        StorageError: its folder can't be written.
    """
    path = absolute(path)
    if is_device(path):
        yield
        return
    with _GUARD:
        held = _HELD.get(path)
        if held is None:
            _HELD[path] = _acquire(path)
            recover(path)
        else:
            held.users += 1
    try:
        yield
    finally:
        with _GUARD:
            held = _HELD[path]
            held.users -= 1
            if not held.users:
                del _HELD[path]
                _release(path, held)


@contextmanager
def claim_output(path: Path, *, overwrite: bool = False) -> Iterator[None]:
    """Claim an output folder that must not hold anything yet, or may be replaced.

    Raises:
        InputError: `path` is a file, or a non-empty folder and `overwrite` is false.
        BusyError: another process holds it.
        StorageError: its folder can't be written.
    """
    refuse_occupied(path, overwrite=overwrite)
    with claim(path):
        refuse_occupied(path, overwrite=overwrite)  # what a killed process left is back or gone
        yield


@contextmanager
def part_of(path: Path) -> Iterator[Path]:
    """The place beside an output where its new content is made; gone when the block ends."""
    path = absolute(path)
    with claim(path), _HELD[path].writing:
        part = beside(path, "part")
        try:
            yield part
        finally:
            _remove(part)


def absolute(path: Path) -> Path:
    """`path` from the root on; links are not followed, so that an output replaces a link."""
    return Path(os.path.abspath(path))  # noqa: PTH100 -- resolve() would follow a link to elsewhere


def is_device(path: Path) -> bool:
    """Whether `path` is there, but neither a file nor a folder: /dev/null, a pipe."""
    try:
        mode = path.stat().st_mode
    except OSError:  # absent, or behind something that the claim will find
        return False
    return not stat.S_ISREG(mode) and not stat.S_ISDIR(mode)


def refuse_occupied(path: Path, *, overwrite: bool = False) -> None:
    """Refuse an output folder that would lose something.

    Raises:
        InputError: `path` is a file, or a non-empty folder and `overwrite` is false.
    """
    try:
        is_file = path.is_file()
        occupied = path.is_dir() and not overwrite and any(path.iterdir())
    except OSError as error:
        raise refused(path, error) from None
    if is_file:
        raise InputError(f"{path} is a file; a folder is written there. Name another folder.")
    if occupied:
        raise InputError(
            f"{path} exists and is not empty; name another folder or allow it with --overwrite."
        )


def swap_in(part: Path, path: Path) -> None:
    """Rename the folder `part` to `path`; what was there goes only once the new one is there.

    A link at `path` is replaced, not what it leads to.
    """
    if not os.path.lexists(path):
        part.replace(path)
        return
    old = beside(path, "old")
    path.replace(old)
    try:
        part.replace(path)
    except OSError:
        old.replace(path)
        raise
    _remove(old)


def recover(path: Path) -> None:
    """Mend what a killed process left beside `path`, which the caller holds."""
    part, old = beside(path, "part"), beside(path, "old")
    if os.path.lexists(old):
        if os.path.lexists(path):
            _remove(old)
        else:
            old.replace(path)
    _remove(part)


def sweep(folder: Path) -> None:
    """Mend what a killed process left anywhere below `folder`, which the caller holds."""
    for found in sorted(folder.rglob(".*")):
        name, suffix = found.name[1:], found.suffix
        if suffix in (".part", ".old") and found.exists():
            recover(found.with_name(name.removesuffix(suffix)))
        elif suffix == ".lock":
            found.unlink(missing_ok=True)


def beside(path: Path, suffix: str) -> Path:
    """The hidden companion of an output: `.NAME.lock`, `.NAME.part`, `.NAME.old`."""
    return path.with_name(f".{path.name}.{suffix}")


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        with suppress(OSError):
            path.unlink(missing_ok=True)


def _acquire(path: Path) -> _Held:
    made: list[Path] = []
    lock = beside(path, "lock")
    try:
        made += [folder for folder in path.parents if not folder.exists()]
        path.parent.mkdir(parents=True, exist_ok=True)
        while True:
            handle = os.open(lock, os.O_RDWR | os.O_CREAT, 0o666)
            if not try_lock(handle):
                holder = os.read(handle, 1000).decode("utf-8", "replace").strip()
                os.close(handle)
                raise BusyError(
                    f"{path} is being written by another command ({holder or 'just begun'}); wait "
                    "for it to end, or name another output."
                )
            if _is_file(lock, handle):
                break
            os.close(handle)  # its last holder removed it between the two calls: once more
        os.ftruncate(handle, 0)
        os.write(handle, _holder().encode())
    except OSError as error:
        _remove_empty(made)
        raise refused(path, error) from None
    return _Held(handle, made)


def _release(path: Path, held: _Held) -> None:
    remove_locked(str(beside(path, "lock")), held.handle)
    _remove_empty(held.made)


def _remove_empty(made: list[Path]) -> None:
    """Take back the folders made for an output that did not come to be."""
    for folder in made:
        try:
            folder.rmdir()
        except OSError:
            return


def _is_file(path: Path, handle: int) -> bool:
    """Whether the open file `handle` is still the one at `path`."""
    try:
        return os.path.samestat(os.fstat(handle), path.stat())
    except FileNotFoundError:
        return False


def _holder() -> str:
    command = " ".join([Path(sys.argv[0]).name, *sys.argv[1:]])[:200]
    since = datetime.now().astimezone().isoformat(timespec="seconds")
    return f"process {os.getpid()} on {socket.gethostname()} since {since}: {command}"
