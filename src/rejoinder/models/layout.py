"""Names and shapes of a model's tensors, from its `config.json`: loading checks them.

Model folders of format version 1, read as version 2: other names of tables and tensors.

Reads a safetensors file: small tensors are copied, large ones are mapped into memory.

A mapped tensor costs no time to load; its pages are read when they are used, and processes that
use the same file share them.
"""

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import numpy as np
from msgspec import Meta, Struct
from numpy.typing import NDArray
from safetensors.numpy import load_file

from rejoinder.encoders import ENCODERS, EncoderKind
from rejoinder.encoders.kinds import ActivationName, Shapes, Size, checked, dense_shapes
from rejoinder.errors import ModelError
from rejoinder.io.formats.embedding_files import UNREADABLE

RESPONSES = "responses"
"""The head of the response side, F in v' = F(v)."""
ENTAILMENT = "entailment"
"""The classifier of premise and hypothesis."""
CLASSES = 3
"""Contradiction, neutral, entailment."""
PAIR_FEATURES = 4
"""Embeddings and functions of them that the classifier reads: u1, u2, |u1 - u2|, u1 * u2."""


class _Head(Struct, frozen=True):
    inputs: Annotated[int, Meta(ge=1, le=64)]
    """Embeddings, or functions of them, that the head reads side by side."""
    layers: list[Size]
    activation: ActivationName
    residual: bool


def expected_shapes(config: Mapping[str, Any], where: str = "config.json") -> Shapes:
    """Returns the shapes of a model's tensors by name; -1 where the config does not fix a size.

    `config` has the tables `text`, `encoder` and `heads` of `config.json`, and `export` if there is
    one; messages name `where`. The scales of an int8 table are not among them.

    Raises:
        ModelError: a size is missing or invalid, or a kind is unknown.
        MissingExtraError: the encoder kind needs a package that is not installed.
    """
    encoder, text, heads = config["encoder"], config["text"], config["heads"]
    kind = known_kind(encoder, where)
    if text.get("kind") != kind.text:
        raise ModelError(
            f"{where}: text.kind is {text.get('kind')!r}; a {kind.name} reads {kind.text!r}."
        )
    of_encoder = kind.tensor_shapes(encoder, text, where)
    shapes = {f"encoder.{name}": shape for name, shape in of_encoder.items()}
    dim = kind.dim(encoder)
    for name, table in heads.items():
        shapes |= _head_shapes(name, checked(_Head, table, where, f"heads.{name}"), dim, where)
    if RESPONSES not in heads and RESPONSES not in (config.get("export") or {}).get("dropped", ()):
        raise ModelError(f"{where}: heads.{RESPONSES} is missing. The folder is damaged.")
    return shapes | {"scale": ()}


def known_kind(encoder: Mapping[str, Any], where: str) -> EncoderKind:
    """The kind of an encoder, from the table `encoder` of `config.json`.

    Raises:
        ModelError: the kind is unknown.
    """
    name = encoder.get("kind")
    if not isinstance(name, str) or name not in ENCODERS:
        known = ", ".join(map(repr, sorted(ENCODERS)))
        raise ModelError(f"{where}: encoder.kind {name!r} is unknown; known: {known}.")
    return ENCODERS[name]


def _head_shapes(name: str, head: _Head, dim: int, where: str) -> Shapes:
    """Shapes of the dense layers of a head, `heads.NAME.layers.0.weight` and so on."""
    given = (head.inputs, *head.layers[-1:])
    if name == RESPONSES and head.layers and given != (1, dim):
        raise ModelError(
            f"{where}: heads.{name} reads {head.inputs} embeddings and ends in {head.layers[-1]} "
            f"units; it reads 1, and embeddings have {dim}."
        )
    if name == ENTAILMENT and given != (PAIR_FEATURES, CLASSES):
        raise ModelError(
            f"{where}: heads.{name} has inputs {head.inputs} and layers {head.layers}; inputs "
            f"{PAIR_FEATURES} and layers that end in {CLASSES}, a unit for each class, are needed."
        )
    return dense_shapes(f"heads.{name}", head.inputs * dim, head.layers, residual=head.residual)


_PREFIXES = (
    (r"embedding$", "encoder.table.weight"),
    (r"bigram_rows$", "encoder.bigram_rows"),
    (r"dan\.", "encoder.dnn.layers."),
    (r"skip\.weight$", "encoder.dnn.skip.weight"),
    (r"(transformer|bilstm)\.", "encoder."),
    (r"head\.", "heads.responses.layers."),
    (r"entailment\.", "heads.entailment.layers."),
)
"""Beginnings of names in version 1, and those of version 2."""


def upgraded(config: Mapping[str, Any]) -> dict[str, Any]:
    """Returns `config.json` of version 1 with the tables of version 2, not yet checked."""
    rest = {name: value for name, value in config.items() if name not in ("head", "entailment")}
    heads = {"responses": _head(config.get("head"), 1)}
    if config.get("entailment") is not None:
        heads["entailment"] = _head(config["entailment"], 4)
    return {**rest, "heads": heads}


def renamed(tensors: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the tensors of a folder of version 1 by their present names.

    >>> list(renamed({"dan.0.bias": 0, "head.1.weight": 1, "scale": 2}))
    ['encoder.dnn.layers.0.bias', 'heads.responses.layers.1.weight', 'scale']
    """
    return {_renamed(name): tensor for name, tensor in tensors.items()}


def _renamed(name: str) -> str:
    for old, new in _PREFIXES:
        if re.match(old, name):
            return re.sub(f"^{old}", new, name)
    return name


def _head(table: object, inputs: int) -> object:
    if not isinstance(table, Mapping):
        return table  # refused when the tables are checked
    return {"inputs": inputs, **{key: value for key, value in table.items() if key != "kind"}}


Tensors = dict[str, NDArray[Any]]

LARGE = 64 * 2**20
"""Bytes of a file from which on its tensors are mapped."""
_TYPES = {"U8": "u1", "I8": "<i1", "I32": "<i4", "I64": "<i8", "F16": "<f2", "F32": "<f4"}


def read_tensors(path: Path, *, remedy: str = "write it again.", mapped: bool = False) -> Tensors:
    """Returns the tensors of a file, not to be changed. `remedy` says what to do about damage.

    A large file, or any with `mapped`, is mapped into memory.

    Raises:
        ModelError: the file can't be read, or is not of that format.
    """
    try:
        if mapped or path.stat().st_size >= LARGE:
            return _mapped(path)
        copied: Tensors = load_file(path)
        return copied
    except UNREADABLE as error:
        raise ModelError(f"{path} can't be read: {error}; {remedy}") from None


def _mapped(path: Path) -> Tensors:
    """Maps the tensors of a file: a length, a header of JSON, and the values (safetensors)."""
    content = np.memmap(path, np.uint8, mode="r")
    size = int.from_bytes(content[:8].tobytes(), "little")
    if size > len(content) - 8:
        raise ValueError("the header is longer than the file")
    header = json.loads(content[8 : 8 + size].tobytes())
    values = content[8 + size :]
    tensors: Tensors = {}
    for name, facts in header.items():
        if name == "__metadata__":
            continue
        low, high = facts["data_offsets"]
        if not 0 <= low <= high <= len(values):
            raise ValueError(f"{name} lies beyond the end of the file")
        kind = np.dtype(_TYPES[facts["dtype"]])
        part = values[low:high]
        if (8 + size + low) % kind.itemsize:  # such as a table after an odd number of bytes
            part = np.array(part)
        tensors[name] = part.view(np.ndarray).view(kind).reshape(facts["shape"])
    return tensors
