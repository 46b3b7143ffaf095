"""Reads `config.json` of a model folder and the tensors that it describes, and checks them.

Folders of format version 1 are converted to version 2, which has other names of tables and tensors.
Small tensors are copied, large ones mapped into memory: this takes no time, reads pages only when
they are used, and shares them between processes.
"""

import json
import re
from collections.abc import Container, Mapping
from pathlib import Path
from reprlib import repr as short
from typing import Annotated, Any

import numpy as np
from msgspec import Meta, Struct, field
from numpy.typing import NDArray
from safetensors.numpy import load_file

from rejoinder import encoders
from rejoinder.encoders.layers import Tensors
from rejoinder.errors import ModelError
from rejoinder.io.files.hashed import Count, check_seal, refuse_constant
from rejoinder.io.formats.embedding_files import UNREADABLE
from rejoinder.models.adaptation import FILE as ADAPTATION
from rejoinder.text.vocabulary import FILE as VOCABULARY
from rejoinder.text.vocabulary import SUBWORDS

FILE = "config.json"
FORMATS = (1, 2, 3, 4)
"""The format versions that can be read. 3 is 2 with an int8 table or without a response head, which
code for version 2 can't run; 4 has its encoder in an ONNX graph. Other models are still written as
version 2."""
GRAPH_FORMAT = FORMATS[-1]
WEIGHTS = "weights.safetensors"
GRAPH = "encoder.onnx"

_SEAL = "sha256"
_TEXT_FILES = {"subwords": SUBWORDS, "words": VOCABULARY}
_REMEDY = "Copy the folder again, or export the model again."

Facts = Mapping[str, Any]

RESPONSES = "responses"
"""The head of the response side, F in v' = F(v)."""
ENTAILMENT = "entailment"
"""The classifier of premise and hypothesis."""
CLASSES = 3
"""Contradiction, neutral, entailment."""
PAIR_FEATURES = 4
"""Number of inputs of the classifier: u1, u2, |u1 - u2|, u1 * u2."""


class _Labelled(Struct, frozen=True):
    rows: Mapping[str, Count] | None = None
    """Rows by task."""
    leaks: Count = 0


class _Training(Struct, frozen=True):
    """The facts of training for model cards, notes on leaks and `rejoinder info`."""

    pairs: Count | None = None
    leaks_dropped: Count | None = None
    steps: Count | None = None
    seed: int | None = None
    data: Mapping[str, Count] | None = None
    sources_left_out: Mapping[str, Count] | None = None
    leaks_by_set: Mapping[str, Count] | None = None
    leak_sets: list[str] | None = None
    inputs: list[str] | None = None
    labelled: Mapping[str, _Labelled] | None = None
    search_weight: Annotated[float, Meta(ge=0, le=1)] | None = None


class _Source(Struct, frozen=True):
    name: str
    sha256: str


class _Export(Struct, frozen=True):
    """The facts of an export for model cards and messages."""

    source: _Source = field(name="from")
    dropped: list[str]
    dim: encoders.SizeOrNone | None = None
    max_words: encoders.SizeOrNone | None = None
    unknown_buckets: encoders.SizeOrNone | None = None


class _Text(Struct, frozen=True):
    kind: Annotated[str, Meta(pattern=r"\A(subwords|words)\Z")]


class _Config(Struct, frozen=True):
    """The keys of `config.json` that code reads; `expected_shapes` checks the sizes."""

    name: str
    text: _Text
    encoder: Facts
    heads: Mapping[str, Facts]
    files: Mapping[str, Facts]
    training: _Training | None = None
    adaptation: Facts | None = None
    export: _Export | None = None


def read_config(folder: Path) -> dict[str, Any]:
    """Reads `config.json` and checks all but its sizes.

    Format version 1 is read as version 2, with or without its seal `sha256`.

    Raises:
        ModelError: `folder` is not a model folder, or the file is damaged, was changed, or has an
            unknown format version.
    """
    path = folder / FILE
    if folder.is_file():
        raise ModelError(f"{folder} is a file; a model is a folder, such as RUN/model of a run.")
    try:
        config = json.loads(path.read_text("utf-8"), parse_constant=refuse_constant)
        # fails for half a surrogate pair, which could not be printed
        json.dumps(config, ensure_ascii=False).encode("utf-8")
    except FileNotFoundError:
        raise ModelError(
            f"{folder} is not a model folder: it has no {FILE}. The model of a run is RUN/model."
        ) from None
    except (OSError, ValueError, RecursionError) as error:
        raise ModelError(f"{path} can't be read: {error}; the folder is damaged.") from None
    version = config.get("format_version") if isinstance(config, dict) else None
    if version not in FORMATS or isinstance(version, bool):
        raise ModelError(
            f"{path} has format version {short(version)}; this version reads 1 to {FORMATS[-1]}."
        )
    if _SEAL in config or version != 1:
        config = check_seal(config, path, ModelError, _REMEDY)
    if version == 1:
        config = upgraded(config)
    check_config(config, str(path))
    return config  # type: ignore[no-any-return]


def format_of(
    heads: Container[str], tensors: Mapping[str, NDArray[Any]], graph: bytes | None = None
) -> int:
    """Returns the lowest format version that can describe a model, from 2 to 4."""
    if graph is not None:
        return GRAPH_FORMAT
    quantized = any(tensor.dtype == np.int8 for tensor in tensors.values())
    return 3 if quantized or RESPONSES not in heads else 2


def check_config(config: Mapping[str, Any], where: str) -> None:
    """Checks the name, the facts of training and the files; `expected_shapes` checks the sizes.

    Raises:
        ModelError: a key is missing, or its value is of another type.
    """
    known = encoders.checked(_Config, config, where)
    needed = {WEIGHTS, _TEXT_FILES[known.text.kind]}
    if known.adaptation is not None:
        needed.add(ADAPTATION)
    if config["format_version"] == GRAPH_FORMAT:
        needed.add(GRAPH)
    if known.files.keys() != needed:
        raise ModelError(
            f"{where}: files lists {', '.join(known.files)}; such a model has "
            f"{', '.join(sorted(needed))}."
        )


class _Head(Struct, frozen=True):
    inputs: Annotated[int, Meta(ge=1, le=64)]
    """Number of embeddings, or functions of them, that the head reads, concatenated."""
    layers: list[encoders.Size]
    activation: encoders.ActivationName
    residual: bool


def expected_shapes(config: Mapping[str, Any], where: str = "config.json") -> encoders.Shapes:
    """Returns the shapes of a model's tensors by name; -1 where the config does not fix a size.

    `config` is the content of `config.json`, which messages call `where`. The scales of an int8
    table are not included.

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
    shapes: encoders.Shapes = {}
    if config["format_version"] == GRAPH_FORMAT:  # the graph holds the tensors of the encoder
        kind.text_sizes(text, where)
    else:
        of_encoder = kind.tensor_shapes(encoder, text, where)
        shapes = {f"encoder.{name}": shape for name, shape in of_encoder.items()}
    dim = kind.dim(encoder)
    for name, table in heads.items():
        shapes |= _head_shapes(
            name, encoders.checked(_Head, table, where, f"heads.{name}"), dim, where
        )
    if RESPONSES not in heads and RESPONSES not in (config.get("export") or {}).get("dropped", ()):
        raise ModelError(f"{where}: heads.{RESPONSES} is missing. The folder is damaged.")
    return shapes | {"scale": ()}


def known_kind(encoder: Mapping[str, Any], where: str) -> encoders.EncoderKind:
    """Returns the kind of an encoder, from the table `encoder` of `config.json`.

    Raises:
        ModelError: the kind is unknown.
    """
    name = encoder.get("kind")
    if not isinstance(name, str) or name not in encoders.ENCODERS:
        known = ", ".join(map(repr, sorted(encoders.ENCODERS)))
        raise ModelError(f"{where}: encoder.kind {name!r} is unknown; known: {known}.")
    return encoders.ENCODERS[name]


def _head_shapes(name: str, head: _Head, dim: int, where: str) -> encoders.Shapes:
    """Shapes of the dense layers of a head, `heads.NAME.layers.0.weight` and so on."""
    given = (head.inputs, *head.layers[-1:])
    needed = {RESPONSES: (1, dim), ENTAILMENT: (PAIR_FEATURES, CLASSES)}.get(name, given)
    if given != needed and (head.layers or name == ENTAILMENT):
        raise ModelError(f"{where}: heads.{name} has inputs and units {given}; needed: {needed}.")
    return encoders.dense_shapes(
        f"heads.{name}", head.inputs * dim, head.layers, residual=head.residual
    )


_PREFIXES = (
    (r"embedding$", "encoder.table.weight"),
    (r"bigram_rows$", "encoder.bigram_rows"),
    (r"dan\.", "encoder.dnn.layers."),
    (r"skip\.weight$", "encoder.dnn.skip.weight"),
    (r"(transformer|bilstm)\.", "encoder."),
    (r"head\.", "heads.responses.layers."),
    (r"entailment\.", "heads.entailment.layers."),
)
"""Prefixes of names in version 1, with those of version 2."""


def upgraded(config: Mapping[str, Any]) -> dict[str, Any]:
    """Returns `config.json` of version 1 with the tables of version 2, not yet checked."""
    rest = {name: value for name, value in config.items() if name not in ("head", "entailment")}
    heads = {"responses": _head(config.get("head"), 1)}
    if config.get("entailment") is not None:
        heads["entailment"] = _head(config["entailment"], 4)
    return {**rest, "heads": heads}


def renamed(tensors: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the tensors of a version 1 folder by their current names.

    >>> list(renamed({"dan.0.bias": 0, "head.1.weight": 1, "scale": 2}))
    ['encoder.dnn.layers.0.bias', 'heads.responses.layers.1.weight', 'scale']
    """
    return {_renamed(name): tensor for name, tensor in tensors.items()}


def _renamed(name: str) -> str:
    for old, new in _PREFIXES:
        name = re.sub(f"^{old}", new, name)
    return name


def _head(table: object, inputs: int) -> object:
    if not isinstance(table, Mapping):
        return table  # refused when the tables are checked
    return {"inputs": inputs, **{key: value for key, value in table.items() if key != "kind"}}


LARGE = 64 * 2**20
"""Least size in bytes of a file whose tensors are mapped."""
_TYPES = {"U8": "u1", "I8": "<i1", "I32": "<i4", "I64": "<i8", "F16": "<f2", "F32": "<f4"}


def read_tensors(path: Path, *, remedy: str = "write it again.", mapped: bool = False) -> Tensors:
    """Returns the tensors of a file, read-only. `remedy` says what to do about damage.

    Large files are mapped into memory; with `mapped`, all are.

    Raises:
        ModelError: the file can't be read, or has another format.
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
