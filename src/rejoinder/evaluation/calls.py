"""Calls foreign code, and reports what it raises or returns wrongly in one sentence."""

import os
import traceback
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rejoinder.errors import InputError, RejoinderError
from rejoinder.measures import Floats
from rejoinder.protocols import Embeddings

_CALLERS = (Path(__file__), Path(__file__).with_name("adapters.py"))
TRACEBACK = "REJOINDER_TRACEBACK"
"""Environment variable: if it is set, exceptions of encoders are not turned into messages."""
LARGEST_NUMBER = 1e15
"""Largest entry of an embedding: products of larger ones overflow float32 in classifiers."""
_BLOCK = 4_096
"""Number of rows that are checked at once."""
_LONGEST = 300
"""Number of characters of an exception's message that are quoted."""


def call(method: Callable[..., Any], *arguments: Any, who: str) -> Any:
    """Returns `method(*arguments)`. An exception is reported with the line that raised it.

    The message begins with `who`: the task, the encoder and the method.

    Raises:
        InputError: the method raised an exception. Errors of rejoinder are raised unchanged, and so
            are all exceptions if REJOINDER_TRACEBACK is set in the environment.
    """
    try:
        return method(*arguments)
    except RejoinderError:
        raise
    except Exception as error:
        if os.environ.get(TRACEBACK):
            raise
        raise InputError(f"{who} {raised(error)}") from error


def raised(error: Exception) -> str:
    """Returns the type, message and origin of an exception, as the end of a sentence."""
    message = " ".join(str(error).split())[:_LONGEST]
    what = f"{type(error).__name__}: {message}" if message else type(error).__name__
    if isinstance(error, SyntaxError) and error.filename:
        return f"raised {what} ({error.filename}:{error.lineno})."
    frames = traceback.extract_tb(error.__traceback__)
    if not frames or Path(frames[-1].filename) in _CALLERS:
        return f"can't be called: {what}."
    last = frames[-1]
    return (
        f"raised {what} ({last.filename}:{last.lineno} in {last.name}). {TRACEBACK}=1 in the "
        "environment shows the whole traceback."
    )


def matrix_of(value: Any, count: int, who: str) -> NDArray[Any]:
    """Returns what an encoder returned for `count` texts as a (count, D) array, D > 0.

    Raises:
        InputError: it has another shape, or is not an array of numbers: see `numbers_of`.
    """
    array = numbers_of(value, (count, None), who, "(N, D) numbers, one row per sentence, are")
    if not array.shape[1]:
        raise InputError(
            f"{who} returned vectors of 0 numbers; (N, D) with D of 1 or more is needed."
        )
    return array


def embeddings_of(value: Any, texts: Sequence[str], who: str) -> tuple[Embeddings, str]:
    """Returns what an encoder returned for N texts as (N, D) float32, and the dtype that it had.

    Error messages begin with `who`.

    Raises:
        InputError: see `matrix_of`; or a value is not finite. The message names the text.
    """
    returned = matrix_of(value, len(texts), who)
    with np.errstate(over="ignore"):  # values that overflow float32 are reported below
        embeddings = np.asarray(returned, np.float32)
    wrong = first_unusable(embeddings)
    if wrong is not None:
        raise InputError(
            f"{who} returned an embedding of sentence {wrong} ({quoted(texts, wrong)}) with a "
            f"number that is not finite or beyond {LARGEST_NUMBER:.0e}; smaller float32 numbers "
            "are needed."
        )
    return embeddings, str(returned.dtype)


def similarities_of(value: Any, count: int, who: str) -> Floats:
    """Returns what a function returned for `count` pairs of texts as (count,) float64.

    Raises:
        InputError: it has another shape, or a value is not a finite number.
    """
    numbers = numbers_of(value, (count,), who, "(N,) numbers, one per pair, are")
    values = np.asarray(numbers, np.float64)
    if not np.isfinite(values).all():
        raise InputError(
            f"{who} returned a similarity of pair {int(np.argmin(np.isfinite(values)))} that is "
            "not finite; finite numbers are needed."
        )
    return values


def numbers_of(value: Any, shape: tuple[int | None, ...], who: str, needed: str) -> NDArray[Any]:
    """Returns what a function returned as an array of real numbers.

    None in the `shape` allows any size. The message begins with `who`, and names what is `needed`,
    with its verb.

    Raises:
        InputError: it has another shape, or is not an array of real numbers: ragged rows, strings,
            complex numbers, None.
    """
    try:
        array = np.asarray(value)
    except (ValueError, TypeError, RuntimeError) as error:
        why = _ragged_rows(value) or f"{type(value).__name__} that is not an array ({error})"
        raise InputError(f"{who} returned {why}; {needed} needed.") from None
    if array.dtype.kind not in "biuf":
        raise InputError(f"{who} returned {_type_text(array)}; {needed} needed.")
    sizes = zip(array.shape, shape, strict=False)
    if array.ndim != len(shape) or any(given not in (size, None) for size, given in sizes):
        raise InputError(
            f"{who} returned an array of shape {array.shape} for {shape[0]} inputs; {needed} "
            "needed."
        )
    return array


def _ragged_rows(value: Any) -> str:
    """Returns how long the rows of a value are if their lengths differ, else an empty string."""
    try:
        lengths = {len(row) for row in value}
    except TypeError:
        return ""
    if len(lengths) < 2:
        return ""
    return f"rows of different lengths, of {min(lengths)} to {max(lengths)} numbers"


def _type_text(array: NDArray[Any]) -> str:
    names = {"c": "complex numbers", "U": "strings", "S": "strings"}
    if array.dtype != object:
        return names.get(array.dtype.kind, f"values of dtype {array.dtype}")
    inside = next((entry for entry in array.flat if not isinstance(entry, int | float)), None)
    return "None" if inside is None else f"objects of type {type(inside).__name__}"


def first_unusable(rows: NDArray[np.floating[Any]]) -> int | None:
    """Returns the first of (N, D) rows with a value that is NaN or beyond 1e15, or None."""
    for start in range(0, len(rows), _BLOCK):
        usable = (np.abs(rows[start : start + _BLOCK]) <= LARGEST_NUMBER).all(axis=1)
        if not usable.all():
            return start + int(np.argmin(usable))
    return None


def first_repeated(names: Iterable[str]) -> str | None:
    """Returns the first name that occurs more than once, or None.

    >>> first_repeated(["a", "b", "a"])
    'a'
    """
    return next((name for name, count in Counter(names).items() if count > 1), None)


def quoted(texts: Sequence[str], row: int) -> str:
    """Returns a text of a list, shortened and quoted for a message."""
    return repr(texts[row][:60])
