"""What users hand over, as columns of text and matrices of unit rows, or an error that says why."""

from collections.abc import Iterable, Mapping, Sequence, Set
from os import PathLike
from pathlib import Path
from reprlib import repr as short
from typing import TypeGuard

import numpy as np
import polars as pl
from numpy.typing import NDArray

from rejoinder.errors import InputError
from rejoinder.protocols import Embeddings
from rejoinder.runtime.layers import Array, unit_rows
from rejoinder.text.normalize import as_series

Sentences = str | Sequence[str] | Iterable[str] | pl.Series | NDArray[np.str_]
"""One sentence or many."""

_UNIT = 1e-5
"""How far from 1 a length may be by rounding in float32; beyond, the row is scaled."""


def whole_number(name: str, value: object, most: int | None = None) -> int:
    """`value`, an int or NumPy's, from 1 to `most`.

    >>> whole_number("top_k", np.int64(3))
    3

    Raises:
        InputError: it is anything else; true and false are no numbers.
    """
    allowed = "1 or more" if most is None else f"from 1 to {most:,}"
    if isinstance(value, bool) or not isinstance(value, int | np.integer):
        raise InputError(f"{name} must be a whole number, {allowed}; got {short(value)}.")
    if value < 1 or (most is not None and value > most):
        raise InputError(f"{name} must be {allowed}; got {value}.")
    return int(value)


def flag(name: str, value: object) -> bool:
    """`value`, which has to be true or false.

    Raises:
        InputError: it is anything else.
    """
    if not isinstance(value, bool | np.bool_):
        raise InputError(f"{name} must be True or False; got {short(value)}.")
    return bool(value)


def model_path(path: object) -> Path:
    """`path` as a path.

    Raises:
        InputError: it is none.
    """
    if not isinstance(path, str | PathLike):
        raise InputError(f"the path of a model folder is a string or a Path; got {short(path)}.")
    try:
        return Path(path)
    except TypeError:  # a path of bytes
        raise InputError(f"the path of a model folder is text; got {path!r}.") from None


def as_texts(sentences: Sentences) -> tuple[pl.Series, bool]:
    """Sentences as a column, and whether a single one was given.

    >>> as_texts("Hi.")[0].to_list(), as_texts("Hi.")[1], as_texts(["Hi.", "Ho."])[1]
    (['Hi.'], True, False)

    Raises:
        InputError: an element is not a string, or `sentences` is no ordered collection.
    """
    _refuse_unordered(sentences)
    if isinstance(sentences, np.ndarray):
        sentences = sentences.tolist()
    if isinstance(sentences, str):
        return as_series([sentences]), True
    if not isinstance(sentences, Iterable):
        raise InputError(
            f"sentences must be a string or a collection of strings; got {short(sentences)}."
        )
    return as_series(sentences), False


def _refuse_unordered(sentences: object) -> None:
    if isinstance(sentences, bytes | bytearray):
        raise InputError(
            "sentences must be strings; got bytes: decode them first, as in "
            "sentences.decode('utf-8')."
        )
    if isinstance(sentences, Mapping | Set):
        raise InputError(
            f"sentences must be a string or a collection of strings with an order; got a "
            f"{type(sentences).__name__}: hand over a list of what is meant."
        )


def is_matrix(given: object) -> TypeGuard[NDArray[np.floating]]:
    """Whether these are embeddings rather than sentences: an array of floats."""
    return isinstance(given, np.ndarray) and np.issubdtype(given.dtype, np.floating)


def as_unit_rows(given: NDArray[np.floating], dim: int) -> Embeddings:
    """Embeddings as (N, dim) float32 with rows of length 1; zero rows stay zero.

    Rows of length 1 already are returned without a copy, so that a large corpus is held once.

    Raises:
        InputError: another width, or a value that is not finite, or so large that the row has no
            length in float32.
    """
    with np.errstate(over="ignore"):  # what overflows is refused below
        matrix: Array = np.atleast_2d(np.asarray(given, np.float32))
    if matrix.ndim != 2 or matrix.shape[1] != dim:
        raise InputError(
            f"embeddings have {matrix.shape[-1]} columns in shape {given.shape}; (N, {dim}) needed."
        )
    squares = np.einsum("nd,nd->n", matrix, matrix)
    finite = np.isfinite(squares)
    if not finite.all():
        raise InputError(
            f"row {int(np.argmin(finite))} of the embeddings is not finite, or too large."
        )
    present = squares > 0
    if (np.abs(np.sqrt(squares[present]) - 1.0) < _UNIT).all():
        return matrix
    return unit_rows(matrix, present)


def first_places(texts: pl.Series) -> NDArray[np.int64]:
    """(N,) int64, for each text the place where it first occurs.

    >>> first_places(pl.Series(["b", "a", "b"])).tolist()
    [0, 1, 0]
    """
    frame = pl.DataFrame({"text": texts}).with_row_index("place")
    first = frame.select(pl.col("place").first().over("text"))
    return first.to_series().to_numpy().astype(np.int64)
