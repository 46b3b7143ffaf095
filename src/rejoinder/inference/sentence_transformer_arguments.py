"""The arguments of `SentenceTransformer.encode` that `SentenceEncoder.encode` takes, too."""

from collections.abc import Callable, Mapping
from reprlib import repr as short
from typing import Any, TypedDict

import numpy as np
from numpy.typing import NDArray

from rejoinder.encoders.layers import unit_rows
from rejoinder.errors import InputError, nearest, require
from rejoinder.inference.inputs import flag, whole_number
from rejoinder.inference.outputs import OnTooLong
from rejoinder.protocols import Embeddings

PRECISIONS = ("float32", "int8", "uint8", "binary", "ubinary")

_REFUSED: Mapping[str, tuple[tuple[object, ...], str]] = {
    "prompt": ((None, ""), "the models were trained without prompts"),
    "prompt_name": ((None,), "the models were trained without prompts"),
    "device": ((None, "cpu"), "embeddings are computed on the CPU"),
    "output_value": (("sentence_embedding",), "a sentence has one embedding, and no others"),
    "pool": ((None,), "SentenceEncoder.load(model, threads=N) says how many cores are used"),
    "chunk_size": ((None,), "batch_size says how many sentences are computed at a time"),
}
"""Arguments that have no effect here: the values that are let through, and why no other is."""


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
    """Returns what the arguments of `encode` ask for, of embeddings with `dim` dimensions.

    Returns:
        Whether rows have length 1, and what brings (N, D) float32 embeddings, or the (D,) of one
        sentence, into the form that `encode` returns.

    Raises:
        InputError: an argument is unknown, refused, or not of the values that it may have.
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
            raise InputError("normalize and normalize_embeddings mean the same; give one of them.")
        normalize = flag("normalize_embeddings", given["normalize_embeddings"])
    precision = given.get("precision", "float32")
    if precision not in PRECISIONS:
        raise InputError(
            f"precision is {short(precision)}; one of {', '.join(PRECISIONS)} is needed."
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
    """Returns embeddings of fewer bits, as `sentence_transformers` computes them.

    `binary` and `ubinary` are the signs, eight in a byte: (N, D / 8), int8 or uint8. `int8` and
    `uint8` are steps of a 255th between the least and the largest value of each dimension among
    these embeddings, so that they depend on all of them.

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
            f"precision {precision!r} takes its steps from all embeddings, of which there are "
            "fewer than two. Encode the sentences together, or take float32 or ubinary."
        )
    least, largest = embeddings.min(axis=0), embeddings.max(axis=0)
    steps = (largest - least) / np.float32(255)
    levels = np.floor((embeddings - least) / np.where(steps > 0, steps, np.float32(1)))
    whole: NDArray[np.uint8] = np.clip(levels, 0, 255).astype(np.uint8)
    return whole if precision == "uint8" else (whole.astype(np.int16) - 128).astype(np.int8)
