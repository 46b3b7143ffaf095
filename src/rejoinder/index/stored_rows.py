"""The embeddings of a segment: a file that is mapped into memory, or read row by row."""

import os
import weakref
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rejoinder.errors import InputError
from rejoinder.index.manifest import REMEDY
from rejoinder.index.string_table import mapped, release
from rejoinder.protocols import Embeddings


class StoredRows:
    """(N, D) embeddings in a file."""

    def __init__(self, path: Path, dtype: np.dtype[Any], shape: tuple[int, int]) -> None:
        """Maps the file.

        Raises:
            InputError: it is missing or of another size.
        """
        self.path = path
        self.mapped: Embeddings = mapped(path, dtype, shape)
        self._handle: int | None = None

    def read(self, rows: NDArray[np.int64]) -> Embeddings:
        """Returns the (N, D) embeddings of rows, read one by one from the file.

        They leave nothing of the file in the memory of this process. Reading the mapped file would
        map up to 2 MB around each row.

        Raises:
            InputError: the file has become shorter.
        """
        if self._handle is None:
            self._handle = os.open(self.path, os.O_RDONLY)
            weakref.finalize(self, os.close, self._handle)
        size = self.mapped.strides[0]
        found = np.empty((len(rows), self.mapped.shape[1]), self.mapped.dtype)
        into, read = found.view(np.uint8).reshape(-1).data, 0
        for at, row in enumerate(rows.tolist()):
            read += os.preadv(self._handle, [into[at * size : (at + 1) * size]], row * size)
        if read != found.nbytes:
            raise InputError(f"{self.path} has lost its end. {REMEDY}")
        return found

    def blocks(self, rows: int) -> Iterator[tuple[int, Embeddings]]:
        """Yields so many rows at a time, after the number of the first; then it releases them."""
        for first in range(0, len(self.mapped), rows):
            yield first, self.mapped[first : first + rows]
            self.release()

    def release(self) -> None:
        """Removes what was read of the mapped file from the memory of this process."""
        release(self.mapped)
