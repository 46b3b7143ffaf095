"""The threads that kernels share with torch.

What an encoder reads of a batch, moved between devices.
"""

import ctypes
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, fields
from functools import cache
from threading import Event, Thread
from typing import Any, Self

import torch

from rejoinder.io.files.storage import spin_briefly, usable_cores


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


@dataclass(frozen=True, slots=True)
class OnDevice:
    """Base class of a batch: a dataclass of tensors, of other batches, and of tuples of these."""

    def to(self, device: torch.device) -> Self:
        """Returns a copy on `device`."""
        return type(self)(*(_moved(getattr(self, each.name), device) for each in fields(self)))


def _moved(value: Any, device: torch.device) -> Any:
    if isinstance(value, torch.Tensor):
        if device.type == "cuda":  # from pinned memory, without waiting for the GPU's work
            value = value.pin_memory()
        return value.to(device, non_blocking=True)
    if isinstance(value, tuple):
        return tuple(_moved(each, device) for each in value)
    return value.to(device) if hasattr(value, "to") else value
