"""Checks arguments of `SentenceEncoder` and converts them to lists and matrices."""

from collections.abc import Iterable, Mapping, Sequence, Set
from reprlib import repr as short

import numpy as np
from numpy.typing import NDArray

from rejoinder.encoders.layers import Array, unit_rows
from rejoinder.errors import InputError
from rejoinder.protocols import Embeddings
from rejoinder.text.normalize import as_strings

Sentences = str | Sequence[str] | Iterable[str] | NDArray[np.str_]
"""One sentence or many: a list, any iterable, a column of Polars, pandas or Arrow, an array."""

# tuples: a union would be made anew in each call, as much work as the rest of a check
_INTEGERS = (int, np.integer)
_BOOLEANS = (bool, np.bool_)
_UNIT = 1e-5
"""Largest deviation of a row's length from 1 that rounding in float32 causes."""


def whole_number(name: str, value: object, most: int | None = None) -> int:
    """Returns `value`, an int or a NumPy integer from 1 to `most`, as an int.

    >>> whole_number("top_k", np.int64(3))
    3

    Raises:
        InputError: `value` is anything else. True and False are not numbers here.
    """
    allowed = "1 or more" if most is None else f"from 1 to {most:,}"
    if isinstance(value, bool) or not isinstance(value, _INTEGERS):
        raise InputError(f"{name} must be a whole number, {allowed}; got {short(value)}.")
    if value < 1 or (most is not None and value > most):
        raise InputError(f"{name} must be {allowed}; got {value}.")
    return int(value)


def flag(name: str, value: object) -> bool:
    """Returns `value`, which must be True or False.

    Raises:
        InputError: `value` is anything else.
    """
    if not isinstance(value, _BOOLEANS):
        raise InputError(f"{name} must be True or False; got {short(value)}.")
    return bool(value)


def as_texts(sentences: Sentences) -> tuple[list[str], bool]:
    """Returns sentences as a list, and whether a single string was given.

    >>> as_texts("Hi."), as_texts(["Hi.", "Ho."])
    ((['Hi.'], True), (['Hi.', 'Ho.'], False))

    Raises:
        InputError: an element is not a string, or `sentences` is not an ordered collection.
    """
    if isinstance(sentences, str):
        return as_strings([sentences]), True
    refuse_unordered(sentences)
    if isinstance(sentences, np.ndarray):
        return as_texts(sentences.tolist())
    if hasattr(sentences, "to_pylist"):  # Arrow: its elements are not strings
        return as_texts(sentences.to_pylist())
    if not isinstance(sentences, Iterable):
        raise InputError(
            f"sentences must be a string or a collection of strings; got {short(sentences)}."
        )
    return as_strings(sentences), False


def refuse_unordered(sentences: object) -> None:
    """Refuses bytes, tables, dicts and sets, which are iterable but not lists of sentences."""
    if isinstance(sentences, bytes | bytearray):
        raise InputError(
            "sentences must be strings; got bytes. Decode them: sentences.decode('utf-8')."
        )
    columns = getattr(sentences, "columns", None)
    if columns is not None and hasattr(sentences, "__getitem__"):  # of pandas, Polars, Arrow
        named = ", ".join(repr(name) for name in list(columns)[:20])
        raise InputError(
            f"sentences must be strings; got a {type(sentences).__name__} with the columns "
            f"{named}: pass the column with the sentences, as in frame['text']."
        )
    if isinstance(sentences, Mapping | Set):
        raise InputError(
            "sentences must be a string or an ordered collection of strings; got a "
            f"{type(sentences).__name__}: pass a list instead."
        )


def as_matrix(values: object) -> NDArray[np.floating] | None:
    """Returns an array or tensor of floats as an array, and None for anything else.

    A tensor is copied from its device.
    """
    if type(values).__module__ == "torch" and hasattr(values, "detach"):
        values = values.detach().float().cpu().numpy()
    if isinstance(values, np.ndarray) and np.issubdtype(values.dtype, np.floating):
        return values
    return None


def as_unit_rows(embeddings: NDArray[np.floating], dim: int) -> Embeddings:
    """Returns embeddings as (N, dim) float32 with rows of length 1. Zero rows stay zero.

    Rows that already have length 1 are returned without a copy, so that a large corpus is held
    in memory once.

    Raises:
        InputError: the dimension differs, a value is not finite, or a row is so large that its
            length overflows in float32.
    """
    with np.errstate(over="ignore"):  # overflow is refused below
        matrix: Array = np.atleast_2d(np.asarray(embeddings, np.float32))
    if matrix.ndim != 2 or matrix.shape[1] != dim:
        raise InputError(f"embeddings have shape {embeddings.shape}; (N, {dim}) is needed.")
    squares = np.einsum("nd,nd->n", matrix, matrix)
    finite = np.isfinite(squares)
    if not finite.all():
        raise InputError(
            f"row {int(np.argmin(finite))} of the embeddings is not finite, or too large."
        )
    present = squares > 0
    if (np.abs(np.sqrt(squares[present]) - 1.0) < _UNIT).all():
        return matrix
    return unit_rows(matrix)


def first_indices(texts: Sequence[str]) -> NDArray[np.int64]:
    """Returns for each text the index at which it first occurs, (N,) int64.

    >>> first_indices(["b", "a", "b"]).tolist()
    [0, 1, 0]
    """
    first: dict[str, int] = {}
    indices = (first.setdefault(text, index) for index, text in enumerate(texts))
    return np.fromiter(indices, np.int64, len(texts))
