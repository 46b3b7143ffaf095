"""Encoders of other libraries for `rejoinder evaluate py:board_encoders:NAME`, in this folder.

pip install wordllama
"""

from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

from numpy.typing import NDArray


@cache
def _wordllama() -> Any:
    import wordllama

    # it looks for the tokenizer that is in the package in `cache_dir`, else downloads it
    return wordllama.WordLlama.load(cache_dir=Path(wordllama.__file__).parent)


def wordllama(texts: Sequence[str]) -> NDArray[Any]:
    """Returns (N, 256) float32 vectors of `l2_supercat_256`."""
    vectors: NDArray[Any] = _wordllama().embed(list(texts))
    return vectors
