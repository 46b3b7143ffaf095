"""Charagram (Wieting et al. 2016): the sum of rows of a text's character sequences, then tanh."""

from collections.abc import Sequence
from pathlib import Path
from typing import Self
from zlib import crc32

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.numpy import load_file

from rejoinder.errors import InputError
from rejoinder.protocols import Embeddings

_LENGTHS = (2, 3, 4)


def character_ids(text: str, buckets: int) -> NDArray[np.int64]:
    """Returns (N,) int64 buckets for each sequence of 2 to 4 characters of a text, spaces included.

    >>> character_ids("Ab", 1000).tolist() == character_ids(" ab ", 1000).tolist()
    True
    >>> len(character_ids("ab", 1000)), len(character_ids("", 1000))
    (6, 0)
    """
    words = text.lower().split()
    padded = f" {' '.join(words)} " if words else ""
    found = [
        crc32(padded[start : start + length].encode("utf-8", "replace")) % buckets
        for length in _LENGTHS
        for start in range(len(padded) - length + 1)
    ]
    return np.array(found, np.int64)


class Charagram:
    """Rows of hashed character sequences, which `benchmarks/systems` trains on paraphrases."""

    def __init__(
        self, rows: NDArray[np.float32], bias: NDArray[np.float32], name: str = ""
    ) -> None:
        """Takes (B, D) float32 rows and a (D,) bias."""
        self._rows, self._bias, self._name = rows, bias, name

    @classmethod
    def load(cls, path: Path) -> Self:
        """Returns the baseline with the rows from a file.

        Raises:
            InputError: the file is missing, or not a safetensors file with `rows` (B, D) and `bias`
                (D,), of finite floats.
        """
        try:
            tensors = load_file(path)
        except (OSError, SafetensorError) as error:
            raise InputError(
                f"{path} can't be read as the rows of character sequences: {error}. Name a file "
                "that `python benchmarks/systems/charagram.py` wrote."
            ) from None
        rows, bias = (tensors.get(name, np.empty(0)) for name in ("rows", "bias"))
        right = rows.ndim == 2 and len(rows) > 0 and bias.shape == rows.shape[1:]
        if not right or not all(np.isfinite(each).all() for each in (rows, bias)):
            raise InputError(
                f"{path} has the tensors {sorted(tensors)}; expected finite rows (buckets, "
                "dimension) and bias (dimension)."
            )
        return cls(rows.astype(np.float32), bias.astype(np.float32), path.name)

    def describe(self) -> dict[str, object]:
        """Returns the identity of the baseline."""
        dim = self._rows.shape[1]
        return {"name": f"baseline:charagram:{self._name}", "dim": dim, "max_tokens": None}

    def encode(self, sentences: Sequence[str]) -> Embeddings:
        """Returns (N, D) float32; zeros for a text of only white space."""
        out = np.zeros((len(sentences), self._rows.shape[1]), np.float32)
        for row, text in enumerate(sentences):
            ids = character_ids(text, len(self._rows))
            if len(ids):
                out[row] = np.tanh(self._rows[ids].sum(axis=0) + self._bias)
        return out
