"""How many letters a text has, by arithmetic on its bytes: ten times as fast as an expression."""

import numpy as np
import polars as pl
from numpy.typing import NDArray

_STRETCH = 1 << 19
"""Bytes looked at at once: what a core's cache holds. New memory would cost more than the work."""


def count_letters(texts: pl.Series) -> NDArray[np.int32]:
    r"""(N,) int32, the characters of each text that Unicode calls letters (`\p{L}`).

    >>> count_letters(pl.Series(["Don't!", "", "straße 7", "中文"])).tolist()
    [4, 0, 6, 2]
    """
    arrow = texts.rechunk().to_arrow(compat_level=pl.CompatLevel.oldest())
    _, borders, content = arrow.buffers()
    ends = np.frombuffer(borders, np.int64)[arrow.offset : arrow.offset + len(texts) + 1]
    letters = _count_ascii(np.frombuffer(content or b"", np.uint8), ends)
    wide = np.flatnonzero(np.diff(ends) != texts.str.len_chars().to_numpy())
    if len(wide):
        rest = texts.gather(wide).str.replace_all(r"[^\p{L}]+", "").str.len_chars()
        letters[wide] = rest.to_numpy()
    return letters


def _count_ascii(content: NDArray[np.uint8], ends: NDArray[np.int64]) -> NDArray[np.int32]:
    """The letters A-Z and a-z between each two of `ends`, (N + 1,) int64."""
    rows = len(ends) - 1
    letters = np.zeros(rows, np.int32)
    held = np.empty(_STRETCH, np.uint8)
    row = 0
    while row < rows:
        last = int(np.searchsorted(ends, ends[row] + _STRETCH, "right")) - 1
        last = max(last, row + 1)  # one text longer than a stretch
        size = int(ends[last] - ends[row])
        if size > len(held):
            held = np.empty(size, np.uint8)
        part = held[:size]
        # upper case to lower case; then a letter is less than 26 above "a", as unsigned bytes are
        np.bitwise_or(content[ends[row] : ends[last]], 0x20, out=part)
        np.subtract(part, ord("a"), out=part)
        found = np.less(part, 26, out=part.view(np.bool_))
        sizes = np.diff(ends[row : last + 1])
        # the sum from an empty text's place would be its neighbour's first byte
        full = row + np.flatnonzero(sizes)
        if size:
            ones, starts = found.view(np.uint8), ends[full] - ends[row]
            letters[full] = np.add.reduceat(ones, starts, dtype=np.uint8)
            # sums of bytes are twice as fast, and right for texts of up to 255
            long = row + np.flatnonzero(sizes > 255)
            if len(long):
                both = np.stack([ends[long], ends[long + 1]], axis=1).ravel() - ends[row]
                at_end = both[-1] == size
                sums = np.add.reduceat(ones, both[:-1] if at_end else both, dtype=np.int32)
                letters[long] = sums[::2]
        row = last
    return letters
