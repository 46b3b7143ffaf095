"""Kernels in C, all optional.

`_words` has ids of words, `_sums` sums of rows of a table and rows of length 1, `_rows` sums and
updates of rows in training, `_dense` the arithmetic of its dense layers, `_softmax` that of a
batch's scores, `_comments` fields of JSON lines, `_strings` strings gathered from columns and facts
about texts, `_join` hashes of ids and joins by them. Where they were not built, `text.words`,
`runtime.sums`, `runtime.layers`, `encoders.row_sums`, `encoders.sparse`, `encoders.dense_math`,
`objectives.softmax_rows` and `corpus` compute the same with Python, NumPy, Polars, DuckDB or torch.
`_layers` has the products of `linear`, for x86 with AVX2. `_ending` has a last sentence
for a process that a library ends, which is missing without it.
`REJOINDER_NATIVE=0` in the environment leaves them out, for tests and to rule them out as a cause.
"""

import os
from functools import cache
from importlib import import_module
from typing import Any


def kernel(name: str) -> Any:
    """Returns the module of kernels `name`, or None where it was not built or is left out."""
    if os.environ.get("REJOINDER_NATIVE") == "0":
        return None
    return _module(name)


def way(name: str) -> str:
    """Returns how the runtime does the work of the kernels `name` here: `native` or `numpy`."""
    return "numpy" if kernel(name) is None else "native"


@cache
def _module(name: str) -> Any:
    try:
        return import_module(f"rejoinder.native.{name}")
    except ImportError:
        return None
