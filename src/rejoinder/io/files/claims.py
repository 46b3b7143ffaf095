"""Locks next to outputs, so that one command at a time writes an output and loses no input.

The lock of `runs/a` is the file `runs/.a.lock`, held by the operating system until the process
ends. Its holder owns `runs/.a.part` (being written) and `runs/.a.old` (being replaced), so it may
remove those that a killed process left. It also owns `runs/.a.unfinished`, which stays until it is
continued or discarded (`files.atomic`). If `runs/a` is a link, all of these lie next to what
it leads to.

Also reads a folder in a consistent state while another process may be replacing it.
"""

import os
import shutil
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from rejoinder.errors import BusyError, InputError, RejoinderError
from rejoinder.io.files.addresses import Address, AnyPath
from rejoinder.io.files.storage import creation_errors, is_device, refuse_content, refused, resolved
from rejoinder.io.files.system import WINDOWS, lock, process_description, rename


@dataclass(eq=False)
class _Turn:
    """A thread that claims an output, or waits until the threads before it have released it."""

    thread: int
    users: int = 0
    """Number of claims of this thread on the output."""
    handle: int | None = None
    """The open lock file. The system unlocks it when the process ends."""
    created: list[Path] = field(default_factory=list)
    """Folders that were created to hold the output, the innermost first."""


_TRIES = 5
"""Times that a lock file is opened, while others remove its folder."""
_GUARD = threading.Condition()
_TURNS: dict[Path, list[_Turn]] = {}
"""The threads of this process that claim an output. The first has its lock."""


@contextmanager
def claim(path: Path, *, inputs: Iterable[object] = ()) -> Iterator[None]:
    """Locks an output file or folder against others while the block runs.

    Claim an output before the work begins, to know that it can be written. Claims nest within a
    thread, and threads of one process wait for each other, so a thread must not wait for another
    one that claims what it has claimed itself. If a killed process left a half-written output, that
    is removed, and what it was about to replace is restored. Devices and pipes need no claim.

    Raises:
        InputError: one of the `inputs` would be replaced (`refuse_inputs`).
        BusyError: another process has claimed the output.
        StorageError: the folder of the output can't be written.
    """
    refuse_inputs(path, inputs)
    path = resolved(path)
    if is_device(path):
        yield
        return
    with _GUARD:
        turn = next(
            (one for one in _TURNS.get(path, ()) if one.thread == threading.get_ident()), None
        )
    turn = turn or _Turn(threading.get_ident())
    try:  # around all of it: a signal may end the process at any line
        _enter(path, turn)
        yield
    finally:
        _leave(path, turn)


def _enter(path: Path, turn: _Turn) -> None:
    with _GUARD:
        turns = _TURNS.setdefault(path, [])
        if turn not in turns:
            turns.append(turn)
        turn.users += 1
        _GUARD.wait_for(lambda: turns[0] is turn)
        if turn.handle is None:  # here, as a release may remove the folder of the lock
            _acquire(path, turn)


def _leave(path: Path, turn: _Turn) -> None:
    with _GUARD:
        turn.users -= 1
        turns = _TURNS.get(path, [])
        if turn in turns and turn.users < 1:
            if turns[0] is turn:
                _release(companion(path, "lock"), turn)
            turns.remove(turn)
            if not turns:
                _TURNS.pop(path, None)
            _GUARD.notify_all()


@contextmanager
def claim_output(
    path: Path, *, overwrite: bool = False, inputs: Iterable[object] = ()
) -> Iterator[None]:
    """Claims an output folder that must be new or empty, unless it may be replaced.

    Raises:
        InputError: what `refuse_inputs` and `refuse_occupied` raise.
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
    with claim(path):
        part = companion(path, "part")
        try:
            yield part
        finally:
            remove(part)


def swap_in(part: Path, path: Path) -> None:
    """Renames the folder `part` to `path`, and removes the old folder only after that."""
    if not os.path.lexists(path):
        rename(part, path)
        return
    old = companion(path, "old")
    rename(path, old)
    try:
        rename(part, path)
    except OSError:
        rename(old, path)
        raise
    remove(old)


def recover(path: Path) -> None:
    """Cleans up what a killed process left next to `path`, which the caller has claimed."""
    part, old = companion(path, "part"), companion(path, "old")
    if os.path.lexists(old):
        if os.path.lexists(path):
            remove(old)
        else:
            rename(old, path)
    remove(part)


def sweep(folder: Path) -> None:
    """Cleans up what killed processes left below `folder`, which the caller has claimed."""
    for hidden in sorted(folder.rglob(".*")):
        name, suffix = hidden.name[1:], hidden.suffix
        if suffix in (".part", ".old") and hidden.exists():
            recover(hidden.with_name(name.removesuffix(suffix)))
        elif suffix == ".lock":
            remove(hidden)


def companion(path: Path, suffix: str) -> Path:
    """Returns the path of a hidden companion: `.NAME.lock`, `.NAME.part` or `.NAME.old`."""
    return path.with_name(f".{path.name}.{suffix}")


def remove(path: Path) -> None:
    """Removes a file or a folder, if there is one and no program on Windows has it open."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        with suppress(OSError):
            path.unlink(missing_ok=True)


def _acquire(path: Path, turn: _Turn) -> None:
    file = companion(path, "lock")
    try:
        turn.created += [folder for folder in path.parents if not folder.exists()]
        while turn.handle is None:
            turn.handle = _opened(file)
            if not lock(turn.handle):
                os.lseek(turn.handle, 1, os.SEEK_SET)
                holder = os.read(turn.handle, 1000).decode("utf-8", "replace")
                raise BusyError(
                    f"{path} is being written by another command ({holder or 'just begun'}); wait "
                    "for it to end, or name another output."
                )
            if not _is_at(file, turn.handle):
                os.close(turn.handle)  # its last holder removed it between the calls: try again
                turn.handle = None
        os.ftruncate(turn.handle, 0)
        # after the byte that `lock` keeps others from reading
        os.write(turn.handle, f" {process_description()}".encode("utf-8", "backslashreplace"))
        recover(path)
    except OSError as error:
        raise refused(path, error) from None


def _opened(file: Path) -> int:
    """Opens a lock file, which is made with its folder. Another's release may remove that."""
    for _ in range(_TRIES):
        file.parent.mkdir(parents=True, exist_ok=True)
        with suppress(FileNotFoundError):
            return os.open(file, os.O_RDWR | os.O_CREAT, 0o666)
    return os.open(file, os.O_RDWR | os.O_CREAT, 0o666)


def _release(file: Path, turn: _Turn) -> None:
    """Removes a lock file, unless another process holds it, and the folders made for its output."""
    with suppress(OSError):  # such as a folder that can't be written, or that was removed
        if turn.handle is None:  # a signal came before its number was returned
            turn.handle = os.open(file, os.O_RDWR)
        if not WINDOWS and lock(turn.handle) and _is_at(file, turn.handle):
            file.unlink()
        os.close(turn.handle)
        if WINDOWS:  # which removes no file that another has open
            file.unlink()
    for folder in turn.created:
        try:
            folder.rmdir()
        except OSError:  # it is not empty
            return


def _is_at(path: Path, handle: int) -> bool:
    """Returns whether the open file `handle` is still the file at `path`."""
    try:
        return os.path.samestat(os.fstat(handle), path.stat())
    except FileNotFoundError:
        return False


def refuse_occupied(path: Path, *, overwrite: bool = False) -> None:
    """Refuses an output folder whose content would be lost.

    Raises:
        InputError: `path` is a file, holds the current folder, or is a non-empty folder and
            `overwrite` is false.
    """
    with creation_errors(path):
        is_file = path.is_file()
        occupied = path.is_dir() and not overwrite and any(path.iterdir())
    refuse_content(path, is_file=is_file, occupied=occupied)
    real, here = resolved(path), Path(os.path.realpath("."))
    if real == here or real in here.parents:
        raise InputError(
            f"{path} is the current folder or holds it, and would be replaced; name a folder in it."
        )


def refuse_inputs(out: AnyPath, inputs: Iterable[object]) -> None:
    """Refuses an output that would replace what the same command reads, by whatever links.

    Inputs that are neither paths nor addresses, such as names of models, are passed over.

    Raises:
        InputError: an input is the output or lies in it, or the output exists in an input folder.
    """
    written = out if isinstance(out, Address) else resolved(out)
    for given in inputs:
        if isinstance(written, Address):
            lost = isinstance(given, Address) and (given == written or given.is_in(written))
        else:
            lost = isinstance(given, str | Path) and given != "" and _would_lose(written, given)
        if lost:
            raise InputError(
                f"{given} is read, and writing {out} would replace it, all or part; name another "
                "output."
            )


def _would_lose(written: Path, given: str | Path) -> bool:
    try:
        real = Path(os.path.realpath(given))
        # a link in the output is lost, even if what it leads to stays
        named = Path(os.path.realpath(Path(given).parent)) / Path(given).name
        if not real.exists():
            return False
        if written.is_dir() and not any(written.iterdir()):
            return real == written
    except (OSError, ValueError):  # no path at all, such as the address of a model
        return False
    lies_in = real == written or written in (*real.parents, *named.parents)
    return lies_in or (written.exists() and real in written.parents)


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
