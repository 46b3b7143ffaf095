"""Texts of more tokens than an encoder reads: refused, cut, or split into windows and pooled."""

from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from rejoinder.encoders.layers import Array, unit_rows
from rejoinder.errors import InputError
from rejoinder.inference.runtimes import Runtime
from rejoinder.text.ragged import Ragged, offsets_of

OnTooLong = Literal["error", "truncate", "split"]
"""What to do with a text of more than `max_tokens` tokens: refuse it, read its first tokens, or
encode all of it in windows of `max_tokens` tokens and take their mean."""

WAYS: tuple[OnTooLong, ...] = get_args(OnTooLong)


def checked_way(value: Any) -> OnTooLong:
    """Returns `value`, which must be one of `WAYS`.

    Raises:
        InputError: it is anything else.
    """
    if value not in WAYS:
        raise InputError(
            f"on_too_long must be {', '.join(WAYS[:-1])} or {WAYS[-1]}; got {value!r}."
        )
    way: OnTooLong = value
    return way


def embed_tokens(
    runtime: Runtime, tokens: Ragged, most: int | None, way: OnTooLong, *, first: int = 0
) -> Array:
    """Returns (N, D) float32 embeddings of texts, of which all `tokens` are given.

    Args:
        runtime: Encodes at most `most` tokens of a text.
        tokens: All tokens of each text, also those beyond `most`.
        most: Number of tokens that the encoder reads. None means all.
        way: What to do with longer texts. The row of a split text has length 1, others are as the
            runtime returns them.
        first: Index of the first of these texts, for error messages.

    Raises:
        InputError: a text is too long, and `way` is `error`.
    """
    long = too_long(tokens, most)
    if most is None or not long.any():
        return runtime(tokens)
    if way == "error":
        index = int(np.argmax(long))
        raise InputError(
            f"sentence {first + index} has {tokens.lengths[index]:,} tokens, and the model reads "
            f"{most:,}; on_too_long 'truncate' leaves out the rest, 'split' encodes it in pieces."
        )
    if way == "truncate":
        return runtime(tokens.first(most))
    return _pooled(runtime, tokens, most)


def too_long(tokens: Ragged, most: int | None) -> NDArray[np.bool_]:
    """Returns which texts have more than `most` tokens, (N,) bool."""
    if most is None:
        return np.zeros(len(tokens), np.bool_)
    return tokens.lengths > most


def windows(tokens: Ragged, most: int) -> tuple[Ragged, NDArray[np.int64]]:
    """Cuts each text into windows of `most` tokens, the last one shorter.

    Returns:
        The windows of all texts in order, and (N,) the number of windows of each text, at least 1.

    >>> cut, counts = windows(Ragged(np.arange(7, dtype=np.int32), np.array([0, 5, 5, 7])), 2)
    >>> [cut[index].tolist() for index in range(len(cut))], counts.tolist()
    ([[0, 1], [2, 3], [4], [], [5, 6]], [3, 1, 1])
    """
    counts = np.maximum(-(-tokens.lengths // most), 1)
    before = np.arange(counts.sum()) - np.repeat(offsets_of(counts)[:-1], counts)
    starts = np.repeat(tokens.offsets[:-1], counts) + before * most
    return Ragged(tokens.ids, np.append(starts, tokens.offsets[-1])), counts


def _pooled(runtime: Runtime, tokens: Ragged, most: int) -> Array:
    """Returns the mean of the unit rows of each text's windows, weighted by their tokens."""
    cut, counts = windows(tokens, most)
    firsts = offsets_of(counts)[:-1]
    rows = runtime(cut)
    units = unit_rows(rows) * cut.lengths[:, None].astype(np.float32)
    sums = np.add.reduceat(units, firsts, axis=0)
    return np.where((counts > 1)[:, None], unit_rows(sums), rows[firsts])
