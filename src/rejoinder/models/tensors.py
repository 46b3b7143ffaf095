"""Reads a safetensors file: small tensors are copied, large ones are mapped into memory.

A mapped tensor costs no time to load; its pages are read when they are used, and processes that
use the same file share them.
"""

import json
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors.numpy import load_file

from rejoinder.errors import ModelError
from rejoinder.io.formats.tensor_files import UNREADABLE

Tensors = dict[str, NDArray[Any]]

LARGE = 64 * 2**20
"""Bytes of a file from which on its tensors are mapped."""
_TYPES = {"U8": "u1", "I8": "<i1", "I32": "<i4", "I64": "<i8", "F16": "<f2", "F32": "<f4"}


def read_tensors(path: Path, *, remedy: str = "write it again.", mapped: bool = False) -> Tensors:
    """Returns the tensors of a file, not to be changed. `remedy` says what to do about damage.

    A large file, or any with `mapped`, is mapped into memory.

    Raises:
        ModelError: the file can't be read, or is not of that format.
    """
    try:
        if mapped or path.stat().st_size >= LARGE:
            return _mapped(path)
        copied: Tensors = load_file(path)
        return copied
    except UNREADABLE as error:
        raise ModelError(f"{path} can't be read: {error}; {remedy}") from None


def _mapped(path: Path) -> Tensors:
    """Maps the tensors of a file: a length, a header of JSON, and the values (safetensors)."""
    content = np.memmap(path, np.uint8, mode="r")
    size = int.from_bytes(content[:8].tobytes(), "little")
    if size > len(content) - 8:
        raise ValueError("the header is longer than the file")
    header = json.loads(content[8 : 8 + size].tobytes())
    values = content[8 + size :]
    tensors: Tensors = {}
    for name, facts in header.items():
        if name == "__metadata__":
            continue
        low, high = facts["data_offsets"]
        if not 0 <= low <= high <= len(values):
            raise ValueError(f"{name} lies beyond the end of the file")
        kind = np.dtype(_TYPES[facts["dtype"]])
        part = values[low:high]
        if (8 + size + low) % kind.itemsize:  # such as a table after an odd number of bytes
            part = np.array(part)
        tensors[name] = part.view(np.ndarray).view(kind).reshape(facts["shape"])
    return tensors
