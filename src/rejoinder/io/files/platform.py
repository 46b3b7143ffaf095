"""Everything that differs between Linux, macOS and Windows: file locks, signals, the processor."""

import ctypes
import os
import platform
import signal
import socket
import sys
from contextlib import suppress
from datetime import datetime
from functools import cache
from pathlib import Path

_MAX_WORKERS = 16
"""Number of threads above which memory bandwidth is the limit."""
_HUGE_PAGE = 2 << 20
_MADV_HUGEPAGE = 14

TERMINATION_SIGNALS = tuple(
    getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)
)
"""The signals that ask a process to end. Windows has no SIGHUP."""


def process_description() -> str:
    """Returns the id, host, time and command line of this process, for other processes' errors."""
    command = " ".join([Path(sys.argv[0]).name, *sys.argv[1:]])[:200]
    now = datetime.now().astimezone().isoformat(timespec="seconds")
    return f"process {os.getpid()} on {socket.gethostname()} since {now}: {command}"


def usable_cores() -> int:
    """Returns the number of cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):  # Linux
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def default_workers() -> int:
    """Returns the number of cores that this process may use, at most 16.

    >>> 1 <= default_workers() <= 16
    True
    """
    return min(usable_cores(), _MAX_WORKERS)


@cache
def processor_name() -> str:
    """Returns the name of the processor, such as `AMD EPYC 7763`."""
    try:
        lines = Path("/proc/cpuinfo").read_text("utf-8").splitlines()  # Linux
    except OSError:
        return platform.processor() or platform.machine()
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()


def ask_for_huge_pages(address: int, size: int) -> None:
    """Asks Linux for pages of 2 MB, where it gives them to those who ask; others do nothing.

    Random rows of a large table then miss the tables of pages less often. Ask before the memory is
    written for the first time.
    """
    if sys.platform != "linux":
        return
    first, end = -(-address // _HUGE_PAGE) * _HUGE_PAGE, address + size
    if end - first >= _HUGE_PAGE:
        length = (end - first) // _HUGE_PAGE * _HUGE_PAGE
        ctypes.CDLL(None).madvise(
            ctypes.c_void_p(first), ctypes.c_size_t(length), _MADV_HUGEPAGE
        )  # advice: a refusal changes nothing


def open_lock(path: Path) -> int:
    """Opens a lock file for reading and writing, and creates it if it is missing."""
    return os.open(path, os.O_RDWR | os.O_CREAT, 0o666)


if sys.platform == "win32":
    import msvcrt

    def try_lock(handle: int) -> bool:
        """Locks the open file `handle` for this process; returns false if another one holds it."""
        try:
            msvcrt.locking(handle, msvcrt.LK_NBLCK, 1)
        except OSError:
            return False
        return True

    def remove_locked(path: Path, handle: int) -> None:
        """Removes a lock file that this process holds. Windows can't remove an open file."""
        os.close(handle)
        with suppress(OSError):  # another process has opened and locked it meanwhile
            path.unlink()

else:
    import fcntl

    def try_lock(handle: int) -> bool:
        """Locks the open file `handle` for this process; returns false if another one holds it.

        The kernel releases the lock when the process ends, however it ends.
        """
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True

    def remove_locked(path: Path, handle: int) -> None:
        """Removes a lock file that this process holds, and then releases it."""
        with suppress(OSError):  # its folder may have been removed
            path.unlink()
        os.close(handle)
