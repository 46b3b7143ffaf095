"""What the operating system says and does: signals, the processor, memory."""

import ctypes
import os
import platform
import signal
import socket
import sys
from datetime import datetime
from functools import cache
from pathlib import Path

_MAX_WORKERS = 16
"""Number of threads above which memory bandwidth is the limit."""
_HUGE_PAGE = 2 << 20
_MADV_HUGEPAGE = 14

TERMINATION_SIGNALS = (signal.SIGTERM, signal.SIGHUP)
"""The signals that ask a process to end."""


def process_description() -> str:
    """Returns the id, host, time and command line of this process, for other processes' errors."""
    command = " ".join([Path(sys.argv[0]).name, *sys.argv[1:]])[:200]
    now = datetime.now().astimezone().isoformat(timespec="seconds")
    return f"process {os.getpid()} on {socket.gethostname()} since {now}: {command}"


def usable_cores() -> int:
    """Returns the number of cores that this process may use."""
    return len(os.sched_getaffinity(0)) if sys.platform == "linux" else os.cpu_count() or 1


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


def spin_briefly() -> bool:
    """Lets idle threads of GNU's OpenMP spin for microseconds, then sleep, if torch is yet to load.

    Spinning ones take time from working ones where other work keeps the cores busy
    (docs/measurements/reliability.md). The library reads the variable when torch is imported.

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
