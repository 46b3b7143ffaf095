"""Reads and writes model folders: config.json, weights.safetensors, vocabulary, MODEL_CARD.md."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors.numpy import save_file

from rejoinder.encoders import BIGRAM_ROWS, EncoderKind
from rejoinder.encoders.layers import Tensors, scales_name
from rejoinder.errors import ModelError
from rejoinder.io.files.atomic import new_folder, write_bytes, write_text
from rejoinder.io.files.claims import read_one_state
from rejoinder.io.files.hashed import check_file, file_facts, sealed
from rejoinder.models.adaptation import FILE as ADAPTATION
from rejoinder.models.adaptation import Adaptation, read_adaptation
from rejoinder.models.card import FILE as CARD
from rejoinder.models.card import model_card
from rejoinder.models.config import (
    FILE,
    GRAPH,
    WEIGHTS,
    check_config,
    expected_shapes,
    format_of,
    known_kind,
    read_config,
    read_tensors,
    renamed,
)
from rejoinder.text.features import TextFeatures, load_features
from rejoinder.version import VERSION

_FLOATS = (np.float16, np.float32)
_REMEDY = "Copy the whole folder again."


@dataclass(frozen=True)
class ModelContents:
    """A complete model in memory."""

    name: str
    features: TextFeatures
    encoder: Mapping[str, Any]
    """Kind and sizes, as in the config of the run."""
    heads: Mapping[str, Mapping[str, Any]]
    """Dense layers after the embedding, by objective: `inputs` (how many concatenated embeddings
    they read), `layers`, `activation`, `residual`. `responses` is missing only if an export left it
    out."""
    training: Mapping[str, Any]
    """Pairs, steps, seed, data."""
    tensors: Tensors
    """Tensors by their names in training: `encoder.…`, `heads.OBJECTIVE.…`, and `scale`."""
    sha256: str = ""
    """SHA-256 of the weights file; empty before it is written."""
    adaptation: Adaptation | None = None
    """The linear map fitted on graded pairs after training, if any."""
    graph: bytes | None = None
    """The encoder as an ONNX graph, if the model was exported to ONNX; `tensors` then have no
    `encoder.…`."""
    export: Mapping[str, Any] | None = None
    """How a smaller model was made: the source, the options, the heads left out."""

    @property
    def kind(self) -> EncoderKind:
        """The kind of the encoder."""
        return known_kind(self.encoder, self.name)

    @property
    def dim(self) -> int:
        """Embedding dimension."""
        return self.kind.dim(self.encoder)

    @property
    def weight_type(self) -> str:
        """NumPy name of the type of the encoder's weights, such as `float16`.

        For a graph it is the type of the export.
        """
        if self.graph is not None:
            return str((self.export or {}).get("dtype") or "float32")
        dtypes = [
            tensor.dtype
            for name, tensor in self.tensors.items()
            if name.startswith("encoder.") and name != BIGRAM_ROWS and tensor.ndim > 1
        ]
        return min(dtypes, key=lambda dtype: dtype.itemsize, default=np.dtype(np.float32)).name

    @property
    def max_tokens(self) -> int | None:
        """Maximum number of tokens of a text that the encoder reads; None means all."""
        most: int | None = self.features.config().get("max_tokens", self.encoder.get("max_tokens"))  # type: ignore[assignment]
        return most

    @property
    def is_sum_of_rows(self) -> bool:
        """Whether its embeddings are sums of rows, as for a DAN without dense layers."""
        return self.kind.name == "dan" and not self.encoder["layers"]

    def describe(self) -> dict[str, Any]:
        """Plain JSON values: name, kind, dim, SHA-256 of the weights, max_tokens, training.

        A model that `rejoinder export` made also has the key `export`.
        """
        return {
            "name": self.name,
            "kind": self.encoder["kind"],
            "dim": self.dim,
            "sha256": self.sha256,
            "max_tokens": self.max_tokens,
            "training": dict(self.training),
            "adaptation": None if self.adaptation is None else self.adaptation.describe(),
            **({} if self.export is None else {"export": dict(self.export)}),
        }


def write_model(folder: Path, model: ModelContents, *, overwrite: bool = False) -> None:
    """Writes the folder completely or not at all; the same model gives the same bytes.

    Raises:
        InputError: `folder` is occupied.
        ModelError: tensors do not have the configured sizes, or contain values that are not finite.
    """
    tensors = {name: np.asarray(value, order="C") for name, value in sorted(model.tensors.items())}
    config = config_of(model)
    _check_tensors(tensors, config, folder)
    if model.adaptation is not None:
        model.adaptation.check_dim(model.dim, f"{folder}: ")
    with new_folder(folder, overwrite=overwrite) as new:
        save_file(tensors, new / WEIGHTS)
        names = [WEIGHTS, *model.features.save(new)]
        if model.graph is not None:
            write_bytes(new / GRAPH, model.graph)
            names.append(GRAPH)
        if model.adaptation is not None:
            model.adaptation.write(new / ADAPTATION)
            names.append(ADAPTATION)
        config["files"] = file_facts(new, names)
        check_config(config, str(folder))
        write_text(new / CARD, model_card(config))
        text = json.dumps(sealed(config), indent=1, ensure_ascii=False)
        write_text(new / FILE, text + "\n")


def config_of(model: ModelContents) -> dict[str, Any]:
    """Returns the content of `config.json` without `files` and the seal `sha256`."""
    config: dict[str, Any] = {
        "format_version": format_of(model.heads, model.tensors, model.graph),
        "rejoinder_version": VERSION,
        "name": model.name,
        "text": model.features.config(),
        "encoder": dict(model.encoder),
        "heads": {name: dict(head) for name, head in sorted(model.heads.items())},
        "training": dict(model.training),
        "adaptation": None if model.adaptation is None else model.adaptation.describe(),
    }
    if model.export is not None:
        config["export"] = dict(model.export)
    return config


def folder_bytes(folder: Path) -> int:
    """Returns the bytes of the files in a model folder."""
    return sum(file.stat().st_size for file in folder.iterdir())


def read_model(folder: Path, *, verify: bool = True) -> ModelContents:
    """Reads a model folder and checks its version, files, hashes, names, shapes and values.

    Without `verify`, hashes and values are not checked, so that the weights of a large model, which
    are mapped into memory, are read only when used. Sizes of files are still compared.

    All files are of the same model, even if another process replaces the folder meanwhile.

    Raises:
        ModelError: the folder is not a model, or is damaged; the message says where.
        InputError: another process replaces the folder again and again.
    """
    return read_one_state(folder / FILE, lambda: _read(folder, verify=verify))


def _read(folder: Path, *, verify: bool) -> ModelContents:
    config = read_config(folder)
    for name, facts in config["files"].items():
        try:
            check_file(folder / name, facts, ModelError, _REMEDY, content=verify)
        except OSError as error:
            raise ModelError(f"{folder / name} can't be read: {error.strerror}.") from None
    tensors = read_tensors(folder / WEIGHTS, remedy=_REMEDY)
    if config["format_version"] == 1:
        tensors = renamed(tensors)
    _check_tensors(tensors, config, folder / WEIGHTS, values=verify)
    adaptation = None
    if config.get("adaptation") is not None:
        adaptation = read_adaptation(folder / ADAPTATION)
        dim = known_kind(config["encoder"], str(folder)).dim(config["encoder"])
        adaptation.check_dim(dim, f"{folder / ADAPTATION}: ")
        if adaptation.describe() != config["adaptation"]:
            raise ModelError(
                f"{folder / FILE}: the table adaptation differs from {ADAPTATION}. {_REMEDY}"
            )
    return ModelContents(
        name=config["name"],
        features=load_features(folder, config["text"]),
        encoder=config["encoder"],
        heads=config["heads"],
        training=config.get("training") or {},
        tensors=tensors,
        sha256=config["files"][WEIGHTS]["sha256"],
        adaptation=adaptation,
        graph=(folder / GRAPH).read_bytes() if GRAPH in config["files"] else None,
        export=config.get("export"),
    )


def _check_tensors(
    tensors: Tensors, config: Mapping[str, Any], where: Path, *, values: bool = True
) -> None:
    shapes = expected_shapes(config, str(where))
    types: dict[str, tuple[type, ...]] = {BIGRAM_ROWS: (np.int32,)}
    table = f"encoder.{known_kind(config['encoder'], str(where)).table}"
    if table in shapes:
        types[table] = (np.int8, *_FLOATS)
        if table in tensors and tensors[table].dtype == np.int8:
            shapes[scales_name(table)] = tensors[table].shape[:1]
            types[scales_name(table)] = (np.float32,)
    missing, foreign = shapes.keys() - tensors.keys(), tensors.keys() - shapes.keys()
    if missing or foreign:
        raise ModelError(
            f"{where}: tensors {sorted(missing)} are missing, {sorted(foreign)} are unknown."
        )
    for name, shape in shapes.items():
        actual = tensors[name].shape
        pairs = zip(shape, actual, strict=False)
        if len(actual) != len(shape) or any(want not in (-1, have) for want, have in pairs):
            raise ModelError(f"{where}: {name} has shape {actual}; the config says {shape}.")
        allowed = types.get(name, _FLOATS)
        if tensors[name].dtype not in allowed:
            needed = " or ".join(kind.__name__ for kind in allowed)
            raise ModelError(f"{where}: {name} has type {tensors[name].dtype}; allowed: {needed}.")
        if values and not _finite(tensors[name]):
            raise ModelError(f"{where}: {name} contains values that are not finite.")
    if not tensors["scale"] > 0:
        raise ModelError(f"{where}: scale is {tensors['scale']}; it must be above 0.")
    if BIGRAM_ROWS in tensors:
        # each word and each trained bucket needs a row, which the sums do not check
        rows, count = tensors[BIGRAM_ROWS], len(tensors["encoder.table.weight"])
        words = config["text"]["words"] + config["text"]["unknown_buckets"]
        if count < words or rows.min() < -1 or rows.max() >= count:
            raise ModelError(
                f"{where}: the table has {count} rows, for {words} words and the rows "
                f"{rows.min()} to {rows.max()} of {BIGRAM_ROWS}. The folder is damaged."
            )


def _finite(tensor: NDArray[Any]) -> bool:
    """Whether all values are finite, without a second array of the tensor's size."""
    if tensor.dtype.kind != "f":
        return True
    # an infinity or NaN would be the largest or the least value
    return bool(np.isfinite(tensor.max(initial=0)) and np.isfinite(tensor.min(initial=0)))
