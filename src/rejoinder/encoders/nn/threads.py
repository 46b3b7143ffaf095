"""The threads that kernels share with torch."""

import ctypes
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from threading import Event, Thread

import torch

from rejoinder.io.files.platform import spin_briefly, usable_cores


def threads_for(work: int, least: int) -> tuple[int, int]:
    """Returns the first arguments of a kernel: the address of `GOMP_parallel`, and the threads.

    Less than `least` work is not worth a second thread.
    """
    return _parallel(), torch.get_num_threads() if work >= least else 1


@contextmanager
def short_spins() -> Iterator[None]:
    """Lets idle threads of torch sleep soon, also if torch was imported to let them spin for long.

    GNU's OpenMP spins for microseconds only while its pools have more threads than there are cores.
    A second pool that does nothing makes that so.
    """
    address = 0 if spin_briefly() else _parallel()
    if not address:
        yield
        return
    begun, done = Event(), Event()

    def hold_pool() -> None:  # a pool belongs to the thread that made it, and ends with it
        nothing = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(lambda _: None)
        arguments = (ctypes.c_void_p, ctypes.c_uint, ctypes.c_uint)
        begin = ctypes.CFUNCTYPE(None, type(nothing), *arguments)(address)
        begin(nothing, None, usable_cores(), 0)
        begun.set()
        done.wait()

    holder = Thread(target=hold_pool, name="rejoinder-spins", daemon=True)
    holder.start()
    begun.wait()
    try:
        yield
    finally:
        done.set()
        holder.join()


@cache
def _parallel() -> int:
    """Returns the address of `GOMP_parallel` in the OpenMP library of torch; 0 if it has none.

    A second pool of threads would compete with torch's for the cores, at 0.1 ms a call.
    """
    try:
        function = ctypes.CDLL(torch._C.__file__).GOMP_parallel
    except (OSError, AttributeError):
        return 0
    return ctypes.cast(function, ctypes.c_void_p).value or 0
