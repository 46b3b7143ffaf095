"""Shares of the work of a kernel, for the threads of torch.

A pool of our own would wake threads that compete with torch's for the cores, at 0.1 ms a call.
"""

import ctypes
import re
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

_LIBRARY = re.compile(r"/lib(gomp|iomp5|omp)[^/]*\.so")
_SHARES_PER_THREAD = 4
"""More than one, since shares of the same size do not take the same time."""


@cache
def parallel() -> int:
    """Returns the address of `GOMP_parallel` of the OpenMP that torch has loaded; 0 if unknown.

    It is known on Linux. Call it after torch was imported.
    """
    try:
        lines = Path("/proc/self/maps").read_text("utf-8", "replace").splitlines()
    except OSError:
        return 0
    paths = {line.split(maxsplit=5)[-1] for line in lines if _LIBRARY.search(line)}
    for path in sorted(paths, key=lambda path: ("/torch" not in path, path)):
        try:
            function = ctypes.CDLL(path).GOMP_parallel
        except (OSError, AttributeError):
            continue
        return ctypes.cast(function, ctypes.c_void_p).value or 0
    return 0


def bounds_of(offsets: NDArray[np.int64] | Sequence[int], threads: int) -> NDArray[np.int64]:
    """Returns where shares of rows begin and end, (K + 1,), of about the same work.

    The work of rows `i` to `j` is `offsets[j] - offsets[i]`.
    """
    offsets = np.asarray(offsets, np.int64)
    ends = even_bounds(int(offsets[-1]), threads)[1:-1]
    return np.concatenate([[0], offsets.searchsorted(ends), [len(offsets) - 1]]).astype(np.int64)


def even_bounds(count: int, threads: int) -> NDArray[np.int64]:
    """Returns where shares of `count` rows of the same work begin and end, (K + 1,)."""
    shares = threads * _SHARES_PER_THREAD if threads > 1 else 1
    return count * np.arange(shares + 1) // shares


def memory(tensor: Tensor) -> Any:
    """Returns the memory of a contiguous tensor on the CPU; NumPy has no bfloat16."""
    tensor = tensor.detach()
    return (tensor.view(torch.int16) if tensor.dtype == torch.bfloat16 else tensor).numpy()
