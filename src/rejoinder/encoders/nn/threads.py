"""The threads that kernels share with torch."""

import ctypes
from functools import cache

import torch


def threads_for(work: int, least: int) -> tuple[int, int]:
    """Returns the first arguments of a kernel: the address of `GOMP_parallel`, and the threads.

    Less than `least` work is not worth a second thread.
    """
    return _parallel(), torch.get_num_threads() if work >= least else 1


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
