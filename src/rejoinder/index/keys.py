"""Keys by which strings are found in an index."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from rejoinder.io.files.hashed import blake2b_number

KEY = np.dtype("<u8")


def keys_of(strings: Sequence[str]) -> NDArray[np.uint64]:
    """Returns the (N,) uint64 keys of strings: 8 bytes of their BLAKE2b."""
    return np.fromiter((blake2b_number(text.encode()) for text in strings), np.uint64, len(strings))
