"""Reads `config.json` of a model folder and checks its seal and contents."""

import json
from collections.abc import Container, Mapping
from pathlib import Path
from reprlib import repr as short
from typing import Annotated, Any

import numpy as np
from msgspec import Meta, Struct, field
from numpy.typing import NDArray

from rejoinder.encoders.kinds import SizeOrNone, checked
from rejoinder.errors import ModelError
from rejoinder.io.files.hashed import check_seal, refuse_constant
from rejoinder.io.formats.text_lines import Count
from rejoinder.models.adaptation.linear import FILE as ADAPTATION
from rejoinder.models.layout import RESPONSES, upgraded
from rejoinder.text.subwords import FILE as SUBWORDS
from rejoinder.text.vocabulary import FILE as VOCABULARY

FILE = "config.json"
FORMATS = (1, 2, 3, 4)
"""The format versions that are read. 3 is 2 with an int8 table or without a response head, which
code that knows only 2 can't run; 4 has its encoder in a graph of ONNX. A model of neither is still
written as 2."""
GRAPH_FORMAT = FORMATS[-1]
WEIGHTS = "weights.safetensors"
GRAPH = "encoder.onnx"

_SEAL = "sha256"
_TEXT_FILES = {"subwords": SUBWORDS, "words": VOCABULARY}
_REMEDY = "Copy the folder again, or export the model anew."


Facts = Mapping[str, Any]


class _Labelled(Struct, frozen=True):
    rows: Mapping[str, Count] | None = None
    """Rows by task."""
    leaks: Count = 0


class _Training(Struct, frozen=True):
    """The facts of training that model cards, notes on leaks and `rejoinder info` read."""

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
    """The facts of an export, which model cards and messages read."""

    source: _Source = field(name="from")
    dropped: list[str]
    dim: SizeOrNone | None = None
    max_words: SizeOrNone | None = None
    unknown_buckets: SizeOrNone | None = None


class _Text(Struct, frozen=True):
    kind: Annotated[str, Meta(pattern=r"\A(subwords|words)\Z")]


class _Config(Struct, frozen=True):
    """What code reads of `config.json`; `layout` checks the sizes."""

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

    Format version 1 is read as if it were the present one, with or without its seal `sha256`.

    Raises:
        ModelError: `folder` is not a model folder, or the file is damaged, changed, or of another
            format version.
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
    except RecursionError:
        raise ModelError(f"{path} is nested too deeply; the folder is damaged.") from None
    except (OSError, ValueError) as error:
        raise ModelError(f"{path} can't be read: {error}; the folder is damaged.") from None
    version = config.get("format_version") if isinstance(config, dict) else None
    if version not in FORMATS or isinstance(version, bool):
        raise ModelError(
            f"{path} is of format version {short(version)}; this version reads 1 to {FORMATS[-1]}. "
            "Train or export the model again, or use the version that wrote it."
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
    """Checks the name, the facts of training and the files; `layout` checks the sizes.

    Raises:
        ModelError: a key is missing, or its value is of another type.
    """
    known = checked(_Config, config, where)
    needed = {WEIGHTS, _TEXT_FILES[known.text.kind]}
    if known.adaptation is not None:
        needed.add(ADAPTATION)
    if config["format_version"] == GRAPH_FORMAT:
        needed.add(GRAPH)
    if known.files.keys() != needed:
        raise ModelError(
            f"{where}: files lists {', '.join(known.files)}; such a model has "
            f"{', '.join(sorted(needed))}. The folder is damaged."
        )
