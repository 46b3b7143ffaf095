"""The arguments and methods of `SentenceTransformer` that `SentenceEncoder` has, too."""

from collections.abc import Mapping
from dataclasses import dataclass
from reprlib import repr as short
from typing import Any, Protocol, TypedDict

import numpy as np
from numpy.typing import NDArray

from rejoinder.errors import InputError, nearest, require
from rejoinder.inference.inputs import Sentences, flag, whole_number
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


class Arguments(TypedDict, total=False):
    """Arguments of `SentenceTransformer.encode` that `SentenceEncoder.encode` takes by name."""

    normalize_embeddings: bool
    convert_to_numpy: bool
    convert_to_tensor: bool
    truncate_dim: int | None
    precision: str
    prompt: str | None
    prompt_name: str | None
    device: str | None
    output_value: str
    pool: None
    chunk_size: None


class _Encodes(Protocol):
    """What the methods below need of an encoder."""

    @property
    def dim(self) -> int: ...

    def encode(self, sentences: Sentences, **arguments: Any) -> Any: ...


class SentenceTransformerMethods:
    """Methods by which code written for `SentenceTransformer` calls an encoder."""

    def encode_query(self: _Encodes, sentences: Sentences, **arguments: Any) -> Any:
        """Computes the embeddings of queries: those of `encode`, which has no side for them.

        A message and its answers are compared by `encode` and `encode_response`.
        """
        return self.encode(sentences, **arguments)

    def encode_document(self: _Encodes, sentences: Sentences, **arguments: Any) -> Any:
        """Computes the embeddings of documents: those of `encode`, which has no side for them."""
        return self.encode(sentences, **arguments)

    def get_sentence_embedding_dimension(self: _Encodes) -> int:
        """Returns the dimension D of the embeddings, as `dim` does."""
        return self.dim

    def get_embedding_dimension(self: _Encodes) -> int:
        """Returns the dimension D of the embeddings, as `dim` does."""
        return self.dim


@dataclass(frozen=True)
class OutputForm:
    """The form in which `encode` returns embeddings."""

    normalize: bool
    """Whether rows have length 1."""
    dim: int | None
    """Number of dimensions kept, the first ones; None keeps all."""
    precision: str
    """One of `PRECISIONS`."""
    container: str
    """`array` (NumPy), `tensor` (torch), or `list` of tensors."""

    def __call__(self, embeddings: Embeddings) -> Any:
        """Returns (N, D) float32 embeddings, or the (D,) of one sentence, in this form.

        Raises:
            InputError: `int8` or `uint8` is asked for, and there are fewer than two embeddings.
            MissingExtraError: tensors are asked for, and torch is not installed.
        """
        if self.dim is not None:
            embeddings = embeddings[..., : self.dim]
            if self.normalize:
                lengths = np.linalg.norm(embeddings, axis=-1, keepdims=True)
                embeddings = np.divide(
                    embeddings, np.where(lengths > 0, lengths, 1), dtype=np.float32
                )
        values = quantized(embeddings, self.precision)
        if self.container == "array":
            return values
        require("train", "torch")
        import torch

        tensor = torch.from_numpy(np.ascontiguousarray(values))
        return list(tensor) if self.container == "list" and tensor.ndim > 1 else tensor


_PLAIN = OutputForm(normalize=True, dim=None, precision="float32", container="array")


def output_form(arguments: Arguments, normalize: bool | None, dim: int) -> OutputForm:
    """Returns the form that the arguments of `encode` ask for, of embeddings with `dim` dimensions.

    Raises:
        InputError: an argument is unknown, refused, or not of the values that it may have.
    """
    if not arguments and normalize is None:
        return _PLAIN
    given: dict[str, Any] = dict(arguments)
    for name, value in given.items():
        if name not in Arguments.__annotations__:
            own = ("batch_size", "normalize", "show_progress_bar")
            hint = nearest(name, (*Arguments.__annotations__, *own))
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
    return OutputForm(
        normalize=True if normalize is None else flag("normalize", normalize),
        dim=None if kept is None else whole_number("truncate_dim", kept, dim),
        precision=precision,
        container=_container(given),
    )


def _container(given: Mapping[str, Any]) -> str:
    if flag("convert_to_tensor", given.get("convert_to_tensor", False)):
        return "tensor"
    return "array" if flag("convert_to_numpy", given.get("convert_to_numpy", True)) else "list"


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
