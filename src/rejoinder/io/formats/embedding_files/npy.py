"""Embeddings as a NumPy array, `.npy`: (N, D) float32."""

import io
from collections.abc import Sequence
from pathlib import Path
from typing import IO

import numpy as np

from rejoinder.protocols import Embeddings


class Npy:
    """The format `.npy`, whose only part is the array; its header is written again at the end."""

    header_bytes = 128
    parts = ("embeddings.npy",)

    def require(self) -> None:
        """NumPy is always installed."""

    def begin(self, files: Sequence[IO[bytes]], dim: int) -> None:
        """Writes the header of an array of no rows, which has the length of any other's."""
        files[0].write(_header(0, dim))

    def append(
        self, files: Sequence[IO[bytes]], texts: Sequence[str], embeddings: Embeddings
    ) -> None:
        """Appends the rows; an array holds no texts."""
        del texts
        files[0].write(embeddings.astype("<f4", copy=False).tobytes())

    def finish(self, folder: Path, count: int, dim: int) -> Path:
        """Writes the number of rows into the header."""
        path = folder / self.parts[0]
        with path.open("r+b") as file:
            file.write(_header(count, dim))
        return path


def _header(count: int, dim: int) -> bytes:
    """Returns the header of a (count, dim) float32 array.

    NumPy leaves room for 20 digits in it, so that the number of rows can grow.
    """
    buffer = io.BytesIO()
    facts = {"descr": "<f4", "fortran_order": False, "shape": (count, dim)}
    np.lib.format.write_array_header_1_0(buffer, facts)
    return buffer.getvalue()
