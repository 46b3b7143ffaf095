"""Kernels in C, all optional, each next to the module that calls it.

Where one was not built, its caller computes the same with Python, NumPy, Polars, DuckDB or torch.
`REJOINDER_NATIVE=0` in the environment leaves them out, for tests and to rule them out as a cause.
"""

import os
from functools import cache
from importlib import import_module
from typing import Any

LEFT_OUT = os.environ.get("REJOINDER_NATIVE") == "0"
"""Whether this process does without kernels."""


def kernel(name: str) -> Any:
    """Returns the kernels `name`, such as `text._words`; None where not built or left out."""
    return None if LEFT_OUT else _module(name)


def are_built() -> bool:
    """Returns whether the kernels of the runtime were built, whether or not they are left out."""
    return _module("text._words") is not None


def way(name: str) -> str:
    """Returns how the runtime does the work of the kernels `name` here: `native` or `numpy`."""
    return "numpy" if kernel(name) is None else "native"


@cache
def _module(name: str) -> Any:
    try:
        return import_module(f"rejoinder.{name}")
    except ImportError:
        return None
