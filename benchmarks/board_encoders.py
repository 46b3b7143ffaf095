"""Encoders of other libraries for `rejoinder evaluate py:board_encoders:NAME`, in this folder.

pip install wordllama
"""

from collections.abc import Sequence
from functools import cache
from typing import Any

from numpy.typing import NDArray


@cache
def _wordllama() -> Any:
    from wordllama import WordLlama

    return WordLlama.load()


def wordllama(texts: Sequence[str]) -> NDArray[Any]:
    """Returns (N, 256) float32 vectors of `l2_supercat_256`."""
    vectors: NDArray[Any] = _wordllama().embed(list(texts))
    return vectors
