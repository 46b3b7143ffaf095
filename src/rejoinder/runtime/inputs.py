"""Checks arguments of `SentenceEncoder` and converts them to columns, matrices and paths."""

from collections.abc import Iterable, Mapping, Sequence, Set
from os import PathLike
from pathlib import Path
from reprlib import repr as short
from typing import TypeGuard

import numpy as np
import polars as pl
from numpy.typing import NDArray

from rejoinder.errors import InputError, ModelError
from rejoinder.protocols import Embeddings
from rejoinder.runtime.layers import Array, unit_rows
from rejoinder.text.normalize import as_series

Sentences = str | Sequence[str] | Iterable[str] | pl.Series | NDArray[np.str_]
"""One sentence or many."""

_UNIT = 1e-5
"""Largest deviation of a row's length from 1 that float32 rounding explains."""


def whole_number(name: str, value: object, most: int | None = None) -> int:
    """Returns `value`, an int or a NumPy integer from 1 to `most`, as an int.

    >>> whole_number("top_k", np.int64(3))
    3

    Raises:
        InputError: `value` is anything else. True and False are not numbers here.
    """
    allowed = "1 or more" if most is None else f"from 1 to {most:,}"
    if isinstance(value, bool) or not isinstance(value, int | np.integer):
        raise InputError(f"{name} must be a whole number, {allowed}; got {short(value)}.")
    if value < 1 or (most is not None and value > most):
        raise InputError(f"{name} must be {allowed}; got {value}.")
    return int(value)


def flag(name: str, value: object) -> bool:
    """Returns `value`, which must be True or False.

    Raises:
        InputError: `value` is anything else.
    """
    if not isinstance(value, bool | np.bool_):
        raise InputError(f"{name} must be True or False; got {short(value)}.")
    return bool(value)


def find_model(name_or_folder: object) -> Path:
    """Returns the folder of a model given by name or by path.

    No models are shipped yet, so no name is known. A `Path`, and a string with a separator, is
    taken as a path and not looked up.

    Raises:
        InputError: the argument is neither a string nor a path.
        ModelError: there is neither a model nor a file of that name.
    """
    if not isinstance(name_or_folder, str | PathLike):
        raise InputError(
            "a model is given by its name or folder, a string or a Path; "
            f"got {short(name_or_folder)}."
        )
    try:
        path = Path(name_or_folder)
    except TypeError:  # a path of bytes
        raise InputError(f"the path of a model folder is text; got {name_or_folder!r}.") from None
    if name_or_folder == path.name and not _exists(path):
        raise ModelError(
            f"no model named {short(path.name)} is installed, and there is no folder of that name "
            "here. Give the path of a model folder, such as RUN/model."
        )
    return path


def _exists(path: Path) -> bool:
    try:
        return path.exists()
    except OSError:  # such as a name that is too long
        return False


def as_texts(sentences: Sentences) -> tuple[pl.Series, bool]:
    """Returns sentences as a column, and whether a single string was given.

    >>> as_texts("Hi.")[0].to_list(), as_texts("Hi.")[1], as_texts(["Hi.", "Ho."])[1]
    (['Hi.'], True, False)

    Raises:
        InputError: an element is not a string, or `sentences` is not an ordered collection.
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
            "sentences must be a string or an ordered collection of strings; got a "
            f"{type(sentences).__name__}: pass a list instead."
        )


def is_matrix(values: object) -> TypeGuard[NDArray[np.floating]]:
    """Returns whether `values` are embeddings rather than sentences: an array of floats."""
    return isinstance(values, np.ndarray) and np.issubdtype(values.dtype, np.floating)


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
    return unit_rows(matrix, present)


def first_indices(texts: pl.Series) -> NDArray[np.int64]:
    """Returns for each text the index at which it first occurs, (N,) int64.

    >>> first_indices(pl.Series(["b", "a", "b"])).tolist()
    [0, 1, 0]
    """
    frame = pl.DataFrame({"text": texts}).with_row_index("index")
    first = frame.select(pl.col("index").first().over("text"))
    return first.to_series().to_numpy().astype(np.int64)
