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

    handle: int
    """The open lock file."""
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
    with _GUARD:
        held = _HELD.get(path) or _acquire(path)
        _HELD[path] = held
        held.users += 1
    try:
        yield
    finally:
        with _GUARD:
            held.users -= 1
            if held.users < 1:
                del _HELD[path]
                _release(path, held)


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
    held = _Held(-1, [])
    try:
        held.created += [folder for folder in path.parents if not folder.exists()]
        path.parent.mkdir(parents=True, exist_ok=True)
        held.handle = _locked(path)
        os.ftruncate(held.handle, 0)
        os.write(held.handle, process_description().encode("utf-8", "surrogateescape"))
        recover(path)
    except BaseException as error:  # also the exit that a signal raises
        _release(path, held)
        if isinstance(error, OSError):
            raise refused(path, error) from None
        raise
    return held


def _locked(path: Path) -> int:
    """Returns the open lock file of an output. The kernel unlocks it when the process ends."""
    lock = companion(path, "lock")
    while True:
        handle = os.open(lock, os.O_RDWR | os.O_CREAT, 0o666)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if os.path.samestat(os.fstat(handle), lock.stat()):
                return handle
        except FileNotFoundError:
            pass  # its last holder removed it between the two calls: try again
        except BlockingIOError:
            holder = os.read(handle, 1000).decode("utf-8", "replace").strip()
            os.close(handle)
            raise BusyError(
                f"{path} is being written by another command ({holder or 'just begun'}); wait for "
                "it to end, or name another output."
            ) from None
        os.close(handle)


def _release(path: Path, held: _Held) -> None:
    if held.handle >= 0:
        with suppress(OSError):  # its folder may have been removed
            companion(path, "lock").unlink()
        os.close(held.handle)
    for folder in held.created:
        try:
            folder.rmdir()
        except OSError:  # it is not empty
            return
