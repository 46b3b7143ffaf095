"""Counts the letters of texts by arithmetic on bytes: ten times as fast as an expression."""

from functools import cache

import numpy as np
import polars as pl
from numpy.typing import NDArray

_STRETCH = 1 << 19
"""Number of bytes handled at once: they fit into a core's cache. Allocating new memory would cost
more than the work."""


def count_letters(texts: pl.Series) -> NDArray[np.int32]:
    r"""Returns (N,) int32, the number of Unicode letters (`\p{L}`) in each text.

    >>> count_letters(pl.Series(["Don't!", "", "straße 7", "中文"])).tolist()
    [4, 0, 6, 2]
    """
    arrow = texts.rechunk().to_arrow(compat_level=pl.CompatLevel.oldest())
    _, borders, content = arrow.buffers()
    ends = np.frombuffer(borders, np.int64)[arrow.offset : arrow.offset + len(texts) + 1]
    letters = _count_ascii(np.frombuffer(content or b"", np.uint8), ends)
    wide = np.flatnonzero(np.diff(ends) != texts.str.len_chars().to_numpy())
    if len(wide):
        letters[wide] = count_wide_letters(texts.gather(wide))
    return letters


def count_wide_letters(texts: pl.Series) -> NDArray[np.uint32]:
    """Returns (N,) the number of Unicode letters in each text, by an expression."""
    return texts.str.replace_all(r"[^\p{L}]+", "").str.len_chars().to_numpy()


@cache
def letter_table() -> bytes:
    """Returns a bit for each number below 2**21, set where it is the code point of a letter."""
    codes = np.arange(0x110000, dtype="<u4")
    characters = codes[(codes < 0xD800) | (codes >= 0xE000)].tobytes().decode("utf-32-le")
    [letters] = pl.Series([characters]).str.replace_all(r"[^\p{L}]+", "")
    is_letter = np.zeros(1 << 21, np.bool_)
    is_letter[np.frombuffer(letters.encode("utf-32-le"), "<u4")] = True
    return np.packbits(is_letter, bitorder="little").tobytes()


def _count_ascii(content: NDArray[np.uint8], ends: NDArray[np.int64]) -> NDArray[np.int32]:
    """Counts the letters A-Z and a-z of text i, which is `content[ends[i]:ends[i + 1]]`."""
    rows = len(ends) - 1
    letters = np.zeros(rows, np.int32)
    buffer = np.empty(_STRETCH, np.uint8)
    row = 0
    while row < rows:
        last = int(np.searchsorted(ends, ends[row] + _STRETCH, "right")) - 1
        last = max(last, row + 1)  # a text may be longer than a stretch
        size = int(ends[last] - ends[row])
        if size > len(buffer):
            buffer = np.empty(size, np.uint8)
        part = buffer[:size]
        # to lower case; then the unsigned difference of a letter and "a" is less than 26
        np.bitwise_or(content[ends[row] : ends[last]], 0x20, out=part)
        np.subtract(part, ord("a"), out=part)
        is_letter = np.less(part, 26, out=part.view(np.bool_)).view(np.uint8)
        sizes = np.diff(ends[row : last + 1])
        # reduceat would give an empty text the first byte of its neighbour
        filled = row + np.flatnonzero(sizes)
        if size:
            letters[filled] = np.add.reduceat(is_letter, ends[filled] - ends[row], dtype=np.uint8)
            # sums in bytes are twice as fast, and right for texts of up to 255 bytes
            long = row + np.flatnonzero(sizes > 255)
            if len(long):
                both = np.stack([ends[long], ends[long + 1]], axis=1).ravel() - ends[row]
                at_end = both[-1] == size
                sums = np.add.reduceat(is_letter, both[:-1] if at_end else both, dtype=np.int32)
                letters[long] = sums[::2]
        row = last
    return letters
