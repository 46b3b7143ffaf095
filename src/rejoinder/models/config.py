"""Reads `config.json` of a model folder and checks its seal and contents."""

import json
from collections.abc import Container, Mapping
from pathlib import Path
from reprlib import repr as short
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rejoinder.errors import ModelError
from rejoinder.io.files.hashed import check_seal, refuse_constant
from rejoinder.io.formats.json_tables import Table, is_size
from rejoinder.models.adaptation.linear import FILE as ADAPTATION
from rejoinder.models.layout import RESPONSES
from rejoinder.models.version_1 import upgraded
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
_EXPORT_SIZES = ("dim", "max_words", "unknown_buckets")
_MOST = 2**63 - 1
_REMEDY = "Copy the folder again, or export the model anew."


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
    if version not in FORMATS or not is_size(version):
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
    if not isinstance(config.get("name"), str):
        raise ModelError(f"{where}: name is {short(config.get('name'))}; a string is needed.")
    text = Table(config, "text", where)
    for key in ("encoder", "heads"):
        Table(config, key, where)
    for key in ("training", "adaptation", "export"):
        if not isinstance(config.get(key), Mapping | None):
            raise ModelError(f"{where}: {key} is not a table; the folder is damaged.")
    _check_training(config, where)
    _check_export(config, where)
    needed = [WEIGHTS, _TEXT_FILES[text.word("kind", sorted(_TEXT_FILES))]]
    if config.get("adaptation") is not None:
        needed.append(ADAPTATION)
    if config["format_version"] == GRAPH_FORMAT:
        needed.append(GRAPH)
    files = Table(config, "files", where).values
    for name in files:
        if name not in needed:
            raise ModelError(
                f"{where}: files lists {name!r}, which does not belong to such a model; its files "
                f"are {', '.join(needed)}."
            )
    for name in needed:
        if not isinstance(files.get(name), Mapping):
            raise ModelError(
                f"{where}: files.{name} is {short(files.get(name))}; a table of its bytes and "
                "sha256 is needed: the folder is damaged."
            )


def _check_training(config: Mapping[str, Any], where: str) -> None:
    """Checks the facts of training that model cards, notes on leaks and `rejoinder info` read."""
    if config.get("training") is None:
        return
    table = Table(config, "training", where)
    facts = table.values
    for key in ("pairs", "leaks_dropped", "steps", "seed"):
        if facts.get(key) is not None:
            table.size(key, -_MOST if key == "seed" else 0, _MOST)
    for key in ("data", "sources_left_out", "leaks_by_set"):
        if facts.get(key) is not None and not _are_counts(facts[key]):
            raise table.fault(key, "a table of numbers of pairs")
    for key in ("leak_sets", "inputs"):
        names = facts.get(key)
        if names is not None and not (
            isinstance(names, list | tuple) and all(isinstance(name, str) for name in names)
        ):
            raise table.fault(key, "a list of names")
    labelled = facts.get("labelled")
    if labelled is not None and not (
        isinstance(labelled, Mapping)
        and all(
            isinstance(file, Mapping) and _are_counts(file.get("rows") or {})
            for file in labelled.values()
        )
    ):
        raise table.fault("labelled", "a table of facts by file, with rows by task")


def _are_counts(value: object) -> bool:
    return isinstance(value, Mapping) and all(is_size(n, 0, _MOST) for n in value.values())


def _check_export(config: Mapping[str, Any], where: str) -> None:
    """Checks the facts of an export, which model cards and messages read."""
    if config.get("export") is None:
        return
    table = Table(config, "export", where)
    source = Table(table.values, "from", where, "export.")
    for key in ("name", "sha256"):
        if not isinstance(source.values.get(key), str):
            raise source.fault(key, "a string")
    for key in _EXPORT_SIZES:
        if table.values.get(key) is not None:
            table.size(key, 0)
    dropped = table.values.get("dropped")
    if not isinstance(dropped, list | tuple) or not all(isinstance(name, str) for name in dropped):
        raise table.fault("dropped", "a list of heads")
