"""Clean texts and their numbers of letters, by a kernel in C where it was built."""

import numpy as np
import polars as pl
from numpy.typing import NDArray

from rejoinder.corpus.cleaning import cleaned
from rejoinder.corpus.letters import count_letters, count_wide_letters
from rejoinder.corpus.strings import as_strings
from rejoinder.native import kernel

_WIDE, _UNCLEAN = 1, 2
"""The kinds of texts that the kernel tells apart: with characters beyond ASCII, and those that
cleaning may change."""


def clean_and_letters(texts: pl.Series) -> tuple[pl.Series, NDArray[np.int32]]:
    """Returns (N,) cleaned texts, null where cleaning changes nothing, and (N,) int32 letters.

    >>> clean, letters = clean_and_letters(pl.Series(["as it is", "R&amp;D 中文"]))
    >>> clean.to_list(), letters.tolist()
    ([None, 'R&D 中文'], [6, 7])
    """
    native = kernel("_comments")
    if native is None:
        return cleaned(texts), count_letters(texts)
    counts, kinds = native.text_facts(*as_strings(texts))
    letters, kind = np.frombuffer(counts, np.int32).copy(), np.frombuffer(kinds, np.uint8)
    if len(wide := np.flatnonzero(kind & _WIDE)):
        letters[wide] = count_wide_letters(texts.gather(wide))
    clean = pl.repeat(None, len(texts), dtype=pl.String, eager=True)
    if len(rows := np.flatnonzero(kind & _UNCLEAN)):
        clean = clean.scatter(rows, cleaned(texts.gather(rows)))
    return clean, letters
