"""Calling an encoder that is not ours: what it raises or returns amiss becomes one sentence."""

import json
import os
import traceback
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rejoinder.errors import InputError, RejoinderError
from rejoinder.protocols import Describes

_CALLERS = (Path(__file__), Path(__file__).with_name("adapters.py"))
TRACEBACK = "REJOINDER_TRACEBACK"
"""Set in the environment, it lets the exceptions of encoders through as they are."""
_BLOCK = 4_096
"""Rows that are looked at in one go."""
_LONGEST = 300
"""Characters of an exception's message that are repeated."""


def call(method: Callable[..., Any], *arguments: Any, who: str) -> Any:
    """`method(*arguments)`; what it raises is told with the line that raised it.

    Args:
        method: a function of somebody else.
        arguments: what it is called with.
        who: how the sentence begins: the task, the encoder, the method.

    Raises:
        InputError: it raised an exception. Errors of rejoinder pass as they are, and all do where
            REJOINDER_TRACEBACK is set in the environment.
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
    """What an exception was and where it came from, as the end of a sentence."""
    said = " ".join(str(error).split())[:_LONGEST]
    kind = f"{type(error).__name__}: {said}" if said else type(error).__name__
    if isinstance(error, SyntaxError) and error.filename:
        return f"raised {kind} ({error.filename}:{error.lineno})."
    frames = traceback.extract_tb(error.__traceback__)
    if not frames or Path(frames[-1].filename) in _CALLERS:
        return f"can't be called: {kind}."
    last = frames[-1]
    return (
        f"raised {kind} ({last.filename}:{last.lineno} in {last.name}). {TRACEBACK}=1 in the "
        "environment shows the whole traceback."
    )


def matrix_of(value: Any, count: int, who: str) -> NDArray[Any]:
    """What an encoder returned for `count` texts as a (count, D) array of numbers, D > 0.

    Raises:
        InputError: it is of another shape or kind; see `numbers_of`.
    """
    array = numbers_of(value, who, "(N, D) numbers, a row a sentence, are")
    if array.ndim != 2 or len(array) != count:
        raise InputError(
            f"{who} returned an array of shape {array.shape} for {count} sentences; (N, D) is "
            "needed, a row a sentence."
        )
    if not array.shape[1]:
        raise InputError(
            f"{who} returned vectors of 0 numbers; (N, D) with D of 1 or more is needed."
        )
    return array


def numbers_of(value: Any, who: str, needed: str) -> NDArray[Any]:
    """What somebody's function returned as an array of real numbers.

    Args:
        value: what it returned.
        who: how the sentence begins.
        needed: what is needed, with its verb.

    Raises:
        InputError: it is no array of numbers: ragged rows, strings, complex numbers, None.
    """
    try:
        array = np.asarray(value)
    except (ValueError, TypeError, RuntimeError) as error:
        why = _raggedness(value) or f"{type(value).__name__} that is no array ({error})"
        raise InputError(f"{who} returned {why}; {needed} needed.") from None
    if array.dtype.kind not in "biuf":
        raise InputError(f"{who} returned {_kind(array, value)}; {needed} needed.")
    return array


def _raggedness(value: Any) -> str:
    try:
        lengths = sorted({len(row) for row in value})
    except TypeError:
        return ""
    if len(lengths) < 2:
        return ""
    return f"rows of different lengths, of {lengths[0]} to {lengths[-1]} numbers"


def _kind(array: NDArray[Any], value: Any) -> str:
    if array.dtype.kind == "c":
        return "complex numbers"
    if array.dtype.kind in "US":
        return "strings"
    if array.dtype == object:
        first = array.flat[0] if array.size else None
        inside = value if array.ndim == 0 else first
        if isinstance(inside, np.ndarray):
            inside = inside.item()
        return "None" if inside is None else f"objects of type {type(inside).__name__}"
    return f"values of dtype {array.dtype}"


def first_not_finite(rows: NDArray[np.floating[Any]]) -> int | None:
    """The first of (N, D) rows that holds a value that is not finite."""
    for start in range(0, len(rows), _BLOCK):
        finite = np.isfinite(rows[start : start + _BLOCK]).all(axis=1)
        if not finite.all():
            return start + int(np.argmin(finite))
    return None


def identity(encoder: object) -> dict[str, Any]:
    """Who an encoder says it is, as JSON holds it: at least `name` and `max_tokens`.

    Raises:
        InputError: `describe` raises, or returns what JSON can't hold.
    """
    kind = type(encoder).__name__
    who = f"describe() of the encoder {kind}"
    about = call(encoder.describe, who=who) if isinstance(encoder, Describes) else {}
    if not isinstance(about, Mapping):
        raise InputError(
            f"{who} returned an object of type {type(about).__name__}; a dictionary is needed."
        )
    whole = {"name": kind, "max_tokens": "not told", **about}
    for key, value in whole.items():
        _check_json(key, value, who)
    if not isinstance(whole["name"], str):
        raise InputError(f"{who}: 'name' is {_short(whole['name'])}; a string is needed.")
    found: dict[str, Any] = json.loads(json.dumps(whole))
    return found


def _check_json(key: object, value: object, who: str) -> None:
    try:
        json.dumps(value, allow_nan=False)
    except (TypeError, ValueError, RecursionError):
        reason = f"{key!r} is {_short(value)} ({type(value).__name__})"
    else:
        if isinstance(key, str):
            return
        reason = f"the key {_short(key)} is no string"
    raise InputError(
        f"{who}: {reason}, which JSON can't hold; strings, finite numbers, true, false, None, "
        "lists and dictionaries of these are needed."
    )


def _short(value: object) -> str:
    try:
        said = repr(value)
    except Exception:
        said = "a value"
    return said if len(said) <= 60 else f"{said[:57]}..."


def first_repeated(names: Iterable[str]) -> str | None:
    """The first of some names that was there before.

    >>> first_repeated(["a", "b", "a"])
    'a'
    """
    seen: set[str] = set()
    for name in names:
        if name in seen:
            return name
        seen.add(name)
    return None


def quoted(texts: Sequence[str], row: int) -> str:
    """A text of a list as messages show it."""
    return repr(texts[row][:60])
