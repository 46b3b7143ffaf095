"""Differences between operating systems: locks, signals, names, the processor, memory.

Only this module checks for features that Linux, macOS or Windows does not have.
"""

import ctypes
import mmap
import os
import platform
import re
import signal
import socket
import sys
import time
from datetime import datetime
from functools import cache
from pathlib import Path, PurePath

WINDOWS = sys.platform == "win32"
TERMINATION_SIGNALS = tuple(
    getattr(signal, name) for name in ("SIGTERM", "SIGHUP", "SIGBREAK") if hasattr(signal, name)
)
"""The signals that ask a process to end."""
_NOT_ON_WINDOWS = re.compile(
    r'(?!\.\.$)(?:(?:aux|con|nul|prn|com\d|lpt\d) *+(?:\..*)?|.*(?:[<>:"|?*\x00-\x1f].*|[. ]))',
    re.IGNORECASE | re.DOTALL,
)
_REPLACING_SECONDS = 1.0
"""How long a rename on Windows waits for others to close what is in the way, such as readers."""
_PAUSE_SECONDS = 0.01
_MAX_WORKERS = 16
"""Number of threads above which memory bandwidth is the limit."""
_HUGE_PAGE = 2 << 20
_MADV_HUGEPAGE = 14


def lock(handle: int) -> bool:
    """Locks an open file until it is closed or the process ends, and returns whether it could.

    On Windows no other process can read the first byte of the file meanwhile.
    """
    from filelock import lock_descriptor  # takes 15 ms, which commands that only read save

    return lock_descriptor(handle, blocking=False)


def rename(source: Path, target: Path) -> None:
    """Renames a file or a folder; a file at `target` is replaced.

    Raises:
        OSError: it can't be renamed. On Windows that is also so while a program has it or what it
            would replace open, which is waited for.
    """
    end = time.monotonic() + _REPLACING_SECONDS
    while True:
        try:
            source.replace(target)
        except PermissionError:
            if not WINDOWS or time.monotonic() > end:
                raise
            time.sleep(_PAUSE_SECONDS)
        else:
            return


def refused_name(path: PurePath) -> str | None:
    r"""Returns the first part of a path that can't be a name on Windows, None if all can.

    >>> from pathlib import PureWindowsPath
    >>> refused_name(PureWindowsPath(r"C:\runs\aux.txt"))
    'aux.txt'
    """
    parts = path.parts[1:] if path.anchor else path.parts
    return next((part for part in parts if _NOT_ON_WINDOWS.fullmatch(part)), None)


def most_open_files() -> int:
    """Returns how many files and connections this process may have open, -1 if there is no limit.

    On Windows connections are not counted as files.
    """
    return os.sysconf("SC_OPEN_MAX") if hasattr(os, "sysconf") else -1


READS_AT = hasattr(os, "preadv")
"""Whether a part of a file can be read without its becoming part of the process's memory."""


def release(mapping: mmap.mmap) -> None:
    """Removes what was read of a mapped file from the memory of this process; not on Windows."""
    if hasattr(mmap, "MADV_DONTNEED"):
        mapping.madvise(mmap.MADV_DONTNEED)


def process_description() -> str:
    """Returns the id, host, time and command line of this process, for other processes' errors."""
    command = " ".join([Path(sys.argv[0]).name, *sys.argv[1:]])[:200]
    now = datetime.now().astimezone().isoformat(timespec="seconds")
    return f"process {os.getpid()} on {socket.gethostname()} since {now}: {command}"


def usable_cores() -> int:
    """Returns the number of cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
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
    lines = Path("/proc/cpuinfo").read_text("utf-8").splitlines() if sys.platform == "linux" else []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or platform.machine()


def peak_memory() -> int:
    """Returns the most memory that this process has had, in bytes; 0 on Windows."""
    if WINDOWS:
        return 0
    import resource

    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


def joules() -> float:
    """Returns the energy that the processors have used since some moment, 0 if that is not told.

    Linux tells it of processors that count it, mostly to root alone.
    """
    try:
        counters = Path("/sys/class/powercap").glob("intel-rapl:?/energy_uj")
        return sum(int(counter.read_text("ascii")) for counter in counters) / 1e6
    except OSError:
        return 0.0


def spin_briefly() -> bool:
    """Lets idle threads of GNU's OpenMP spin for microseconds, then sleep, if torch is yet to load.

    Spinning ones take time from working ones where other work keeps the cores busy
    (notebook/reliability.md). The library reads the variable when torch is imported.

    Returns:
        Whether it is so, or the environment says what they do.
    """
    if "OMP_WAIT_POLICY" not in os.environ and "torch" not in sys.modules:
        os.environ.setdefault("GOMP_SPINCOUNT", "3000")
    return not {"GOMP_SPINCOUNT", "OMP_WAIT_POLICY"}.isdisjoint(os.environ)


def ask_for_huge_pages(address: int, size: int) -> None:
    """Asks Linux for pages of 2 MB, where it gives them to those who ask; others do nothing.

    Random rows of a large table then miss the tables of pages less often. Ask before the memory is
    written for the first time.
    """
    if sys.platform != "linux":
        return
    first = -(-address // _HUGE_PAGE) * _HUGE_PAGE
    length = (address + size - first) // _HUGE_PAGE * _HUGE_PAGE
    if length > 0:  # it is advice: a refusal changes nothing
        madvise = ctypes.CDLL(None).madvise
        madvise(ctypes.c_void_p(first), ctypes.c_size_t(length), _MADV_HUGEPAGE)


def return_freed_memory() -> None:
    """Gives memory that was freed back to the system; elsewhere than on glibc nothing happens.

    glibc keeps what lies between pieces in use: 300 MB of 500 after an export of 2 GB was read.
    """
    if platform.libc_ver()[0] == "glibc":
        ctypes.CDLL(None).malloc_trim(0)
