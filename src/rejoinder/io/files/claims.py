"""Locks next to outputs, so that one command at a time writes an output.

The lock of `runs/a` is the file `runs/.a.lock`, held by the operating system until the process
ends. Its holder owns `runs/.a.part` (being written) and `runs/.a.old` (being replaced), so it may
remove those that a killed process left. It also owns `runs/.a.unfinished`, which stays until it is
continued or discarded (`files.unfinished`). If `runs/a` is a link, all of these lie next to the
place that it leads to.
"""

import fcntl
import os
import shutil
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from rejoinder.errors import BusyError
from rejoinder.io.files.outputs import is_device, refuse_inputs, refuse_occupied, resolved
from rejoinder.io.files.platform import process_description
from rejoinder.io.files.storage import refused


@dataclass
class _Held:
    """A lock that this process holds."""

    handle: int | None
    """The open lock file. The kernel unlocks it when the process ends."""
    created: list[Path]
    """Folders that were created to hold the output, the innermost first."""
    users: int = 0
    """Number of claims on the output in this process."""
    writing: threading.Lock = field(default_factory=threading.Lock)
    """Threads of this process share the file lock. With this lock they take turns."""


_GUARD = threading.Lock()
_HELD: dict[Path, _Held] = {}


@contextmanager
def claim(path: Path, *, inputs: Iterable[object] = ()) -> Iterator[None]:
    """Locks an output file or folder against other processes while the block runs.

    Claim an output before the work begins, to know that it can be written. Claims nest within a
    process. If a killed process left a half-written output, that is removed, and what it was about
    to replace is restored. Devices and pipes need no claim.

    Raises:
        InputError: one of the `inputs` would be replaced (`outputs.refuse_inputs`).
        BusyError: another process has claimed the output.
        StorageError: the folder of the output can't be written.
    """
    refuse_inputs(path, inputs)
    path = resolved(path)
    if is_device(path):
        yield
        return
    held: _Held | None = None
    try:  # around all of it: a signal may end the process at any line
        with _GUARD:
            held = _HELD.get(path) or _acquire(path)
            held.users += 1
            _HELD[path] = held
        yield
    finally:
        with _GUARD:
            if held is not None:
                held.users -= 1
                if held.users < 1:
                    _HELD.pop(path, None)
                    _release(companion(path, "lock"), held)


@contextmanager
def claim_output(
    path: Path, *, overwrite: bool = False, inputs: Iterable[object] = ()
) -> Iterator[None]:
    """Claims an output folder that must be new or empty, unless it may be replaced.

    Raises:
        InputError: what `outputs.refuse_inputs` and `outputs.refuse_occupied` raise.
        BusyError: another process has claimed it.
        StorageError: its parent folder can't be written.
    """
    refuse_inputs(path, inputs)
    refuse_occupied(path, overwrite=overwrite)
    with claim(path):
        refuse_occupied(path, overwrite=overwrite)  # the claim may have restored an old folder
        yield


@contextmanager
def part_of(path: Path) -> Iterator[Path]:
    """Yields the path next to an output for its new content, and removes it when the block ends."""
    path = resolved(path)
    with claim(path), _HELD[path].writing:
        part = companion(path, "part")
        try:
            yield part
        finally:
            _remove(part)


def swap_in(part: Path, path: Path) -> None:
    """Renames the folder `part` to `path`, and removes the old folder only after that."""
    if not os.path.lexists(path):
        part.replace(path)
        return
    old = companion(path, "old")
    path.replace(old)
    try:
        part.replace(path)
    except OSError:
        old.replace(path)
        raise
    _remove(old)


def recover(path: Path) -> None:
    """Cleans up what a killed process left next to `path`, which the caller has claimed."""
    part, old = companion(path, "part"), companion(path, "old")
    if os.path.lexists(old):
        if os.path.lexists(path):
            _remove(old)
        else:
            old.replace(path)
    _remove(part)


def sweep(folder: Path) -> None:
    """Cleans up what killed processes left below `folder`, which the caller has claimed."""
    for hidden in sorted(folder.rglob(".*")):
        name, suffix = hidden.name[1:], hidden.suffix
        if suffix in (".part", ".old") and hidden.exists():
            recover(hidden.with_name(name.removesuffix(suffix)))
        elif suffix == ".lock":
            hidden.unlink(missing_ok=True)


def companion(path: Path, suffix: str) -> Path:
    """Returns the path of a hidden companion: `.NAME.lock`, `.NAME.part` or `.NAME.old`."""
    return path.with_name(f".{path.name}.{suffix}")


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        with suppress(OSError):
            path.unlink(missing_ok=True)


def _acquire(path: Path) -> _Held:
    held = _Held(None, [])
    lock = companion(path, "lock")
    try:
        held.created += [folder for folder in path.parents if not folder.exists()]
        path.parent.mkdir(parents=True, exist_ok=True)
        while held.handle is None:
            held.handle = os.open(lock, os.O_RDWR | os.O_CREAT, 0o666)
            if not _is_locked(held.handle):
                holder = os.read(held.handle, 1000).decode("utf-8", "replace").strip()
                raise BusyError(
                    f"{path} is being written by another command ({holder or 'just begun'}); wait "
                    "for it to end, or name another output."
                )
            if not _is_at(lock, held.handle):
                os.close(held.handle)  # its last holder removed it between the calls: try again
                held.handle = None
        os.ftruncate(held.handle, 0)
        os.write(held.handle, process_description().encode("utf-8", "surrogateescape"))
        recover(path)
        return held
    except BaseException as error:  # also the exit that a signal raises
        _release(lock, held)
        if isinstance(error, OSError):
            raise refused(path, error) from None
        raise


def _release(lock: Path, held: _Held) -> None:
    """Removes a lock file, unless another process holds it, and the folders made for its output."""
    with suppress(OSError):  # such as a folder that can't be written, or that was removed
        if held.handle is None:  # a signal came before its number was returned
            held.handle = os.open(lock, os.O_RDWR)
        if _is_locked(held.handle) and _is_at(lock, held.handle):
            lock.unlink()
        os.close(held.handle)
    for folder in held.created:
        try:
            folder.rmdir()
        except OSError:  # it is not empty
            return


def _is_locked(handle: int) -> bool:
    """Locks an open file for this process, and returns whether it could."""
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _is_at(path: Path, handle: int) -> bool:
    """Returns whether the open file `handle` is still the file at `path`."""
    try:
        return os.path.samestat(os.fstat(handle), path.stat())
    except FileNotFoundError:
        return False
