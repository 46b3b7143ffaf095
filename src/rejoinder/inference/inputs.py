"""Checks arguments of `SentenceEncoder` and converts them to lists and matrices.

Also handles the arguments of `SentenceTransformer.encode` that `SentenceEncoder.encode` takes.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from reprlib import repr as short
from typing import Any, TypedDict

import numpy as np
from numpy.typing import NDArray

from rejoinder.encoders.layers import Array, unit_rows
from rejoinder.errors import InputError, nearest, require
from rejoinder.inference.outputs import OnTooLong
from rejoinder.protocols import Embeddings
from rejoinder.text.normalize import as_strings

Sentences = str | Sequence[str] | Iterable[str] | NDArray[np.str_]
"""One sentence or many: a list, any iterable, a column of Polars, pandas or Arrow, an array."""

# tuples: building a union in each call would take as long as the rest of a check
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


def check_share(name: str, value: object, least: float = 0) -> None:
    """Checks that `value` is a number from `least` to 1.

    Raises:
        InputError: it is not.
    """
    if isinstance(value, bool) or not isinstance(value, int | float) or not least <= value <= 1:
        raise InputError(f"{name} must be a number from {least:g} to 1; got {short(value)}.")


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
    return as_strings(sentences), False


def refuse_unordered(sentences: object) -> None:
    """Refuses values that are not iterable, and bytes, tables, dicts and sets."""
    columns = getattr(sentences, "columns", None)
    if isinstance(sentences, bytes | bytearray):
        remedy = "Decode them: sentences.decode('utf-8')"
    elif columns is not None and hasattr(sentences, "__getitem__"):  # of pandas, Polars, Arrow
        named = ", ".join(repr(name) for name in list(columns)[:20])
        remedy = f"Pass the column with the sentences, as in frame['text'], of {named}"
    elif isinstance(sentences, Mapping | Set) or not isinstance(sentences, Iterable):
        remedy = "Pass a string, or a list of strings"
    else:
        return
    got = f"a {type(sentences).__name__}" if isinstance(sentences, Iterable) else short(sentences)
    raise InputError(f"sentences must be strings; got {got}. {remedy}.")


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

    Rows that already have length 1 are returned without a copy, so that a large corpus is in
    memory once.

    Raises:
        InputError: the dimension differs, a value is not finite, or the length of a row overflows
            in float32.
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


PRECISIONS = ("float32", "int8", "uint8", "binary", "ubinary")

_REFUSED: Mapping[str, tuple[tuple[object, ...], str]] = {
    "prompt": ((None, ""), "the models were trained without prompts"),
    "prompt_name": ((None,), "the models were trained without prompts"),
    "device": ((None, "cpu"), "embeddings are computed on the CPU"),
    "output_value": (("sentence_embedding",), "only sentence embeddings can be computed"),
    "pool": ((None,), "SentenceEncoder.load(model, threads=N) sets the number of cores"),
    "chunk_size": ((None,), "batch_size sets how many sentences are computed at a time"),
}
"""Arguments without effect here: the accepted values, and why others are refused."""


class OwnArguments(TypedDict, total=False):
    """Arguments of `SentenceEncoder.encode` besides those of `SentenceTransformer.encode`."""

    batch_size: int
    show_progress_bar: bool | None
    normalize: bool | None
    on_too_long: OnTooLong | None


class FloatArguments(OwnArguments, total=False):
    """Arguments of `SentenceTransformer.encode` with which embeddings stay (N, D) float32."""

    normalize_embeddings: bool
    truncate_dim: int | None


class Arguments(FloatArguments, total=False):
    """Arguments of `SentenceTransformer.encode` that `SentenceEncoder.encode` takes by name."""

    convert_to_numpy: bool
    convert_to_tensor: bool
    precision: str
    prompt: str | None
    prompt_name: str | None
    device: str | None
    output_value: str
    pool: None
    chunk_size: None


def output_form(
    given: dict[str, Any], normalize: bool | None, dim: int
) -> tuple[bool, Callable[[Embeddings], Any]]:
    """Works out the output form that arguments of `encode` ask for, with `dim` dimensions.

    Returns:
        Whether rows have length 1, and a function that converts (N, D) float32 embeddings, or the
        (D,) embedding of one sentence, to the form that `encode` returns.

    Raises:
        InputError: an argument is unknown or refused, or has a value that is not allowed.
    """
    for name, value in given.items():
        if name not in Arguments.__annotations__:
            hint = nearest(name, Arguments.__annotations__)
            raise InputError(f"encode has no argument {name!r}; {hint}.")
        allowed, reason = _REFUSED.get(name, ((value,), ""))
        if not any(value is one or (isinstance(value, str) and value == one) for one in allowed):
            raise InputError(f"{name} is {short(value)}; {reason}. Leave it out.")
    if "normalize_embeddings" in given:
        if normalize is not None:
            raise InputError("normalize and normalize_embeddings mean the same; give only one.")
        normalize = flag("normalize_embeddings", given["normalize_embeddings"])
    precision = given.get("precision", "float32")
    if precision not in PRECISIONS:
        raise InputError(
            f"precision must be one of {', '.join(PRECISIONS)}; got {short(precision)}."
        )
    kept = given.get("truncate_dim")
    kept = None if kept is None else whole_number("truncate_dim", kept, dim)
    tensors = flag("convert_to_tensor", given.get("convert_to_tensor", False))
    arrays = flag("convert_to_numpy", given.get("convert_to_numpy", True)) and not tensors
    unit = normalize is None or flag("normalize", normalize)

    def form(embeddings: Embeddings) -> Any:
        if kept is not None:
            embeddings = embeddings[..., :kept]
            if unit:
                embeddings = unit_rows(np.atleast_2d(embeddings)).reshape(embeddings.shape)
        values = quantized(embeddings, precision)
        if arrays:
            return values
        require("train", "torch")
        import torch

        tensor = torch.from_numpy(np.ascontiguousarray(values))
        return tensor if tensors or tensor.ndim < 2 else list(tensor)

    return unit, form


def quantized(embeddings: Embeddings, precision: str) -> NDArray[Any]:
    """Returns embeddings quantized to fewer bits, as `sentence_transformers` computes them.

    `binary` and `ubinary` keep the signs, eight in a byte: (N, D / 8), int8 or uint8. `int8` and
    `uint8` divide the range of each dimension, from its least to its largest value, into 255
    steps, so the result depends on all embeddings together.

    Raises:
        InputError: the precision is `int8` or `uint8`, and there are fewer than two embeddings.
    """
    if precision == "float32":
        return embeddings
    if precision in ("binary", "ubinary"):
        signs = np.packbits(embeddings > 0, axis=-1)
        return signs if precision == "ubinary" else (signs - np.uint8(128)).view(np.int8)
    if embeddings.ndim < 2 or len(embeddings) < 2:
        raise InputError(
            f"precision {precision!r} takes its range from all embeddings and needs at least two. "
            "Encode the sentences together, or use float32 or ubinary."
        )
    least, largest = embeddings.min(axis=0), embeddings.max(axis=0)
    steps = (largest - least) / np.float32(255)
    levels = np.floor((embeddings - least) / np.where(steps > 0, steps, np.float32(1)))
    whole: NDArray[np.uint8] = np.clip(levels, 0, 255).astype(np.uint8)
    return whole if precision == "uint8" else (whole.astype(np.int16) - 128).astype(np.int8)
