"""Model folders whose encoder is a graph of ONNX: Transformers and BiLSTMs without torch.

The folder is one of this package (format version 4): `SentenceEncoder` runs it with ONNX Runtime.
Other programs run `encoder.onnx`, which maps `ids` (G, T) int64 and `present` (G, T) bool, false
where padded, to `embeddings` (G, D) float32, not normalised.
"""

import logging
import warnings
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from rejoinder.errors import InputError, require
from rejoinder.inference.outputs import TorchRuntime
from rejoinder.interfaces.targets import FOLDER, Target
from rejoinder.models.folder import ModelContents, write_model

_OPSET = 17
_AXES = {
    "ids": {0: "sentences", 1: "positions"},
    "present": {0: "sentences", 1: "positions"},
    "embeddings": {0: "sentences"},
}


def write(model: ModelContents, folder: Path, dtype: str) -> str:
    """Writes a model folder with a graph; see `Target.write`.

    Raises:
        InputError: the encoder is not one that reads padded sentences, or is a graph already.
        MissingExtraError: torch, onnx or ONNX Runtime is not installed.
    """
    if model.graph is not None:
        raise InputError(f"{model.name} is a graph of ONNX already; export the model it is from.")
    require("train", "torch", "pydantic")
    if not hasattr(model.kind.module_class, "encode_group"):
        raise InputError(
            f"{model.name} is a {model.encoder['kind']}, which NumPy computes without torch; "
            "`to='onnx'` is for encoders that read padded sentences: transformer or bilstm."
        )
    require("onnx", "onnx", "onnxruntime")
    graph = _graph(TorchRuntime(model, None).encoder)
    if dtype == "int8":
        graph = _quantized(graph)
    tensors = {
        name: tensor for name, tensor in model.tensors.items() if not name.startswith("encoder.")
    }
    facts = _facts(model, dtype)
    made = replace(model, graph=graph, tensors=tensors, export=facts)
    write_model(folder, made, overwrite=True)
    return f'SentenceEncoder.load("{FOLDER}")'


def _graph(encoder: Any) -> bytes:
    """Returns the encoder as a graph, with any number of sentences and positions."""
    import torch

    from rejoinder.encoders.nn.layers import PaddedGroup

    class Group(torch.nn.Module):
        """The encoder as a function of tensors."""

        def __init__(self) -> None:
            super().__init__()
            self.encoder = encoder

        def forward(self, ids: torch.Tensor, present: torch.Tensor) -> Any:
            return self.encoder.encode_group(PaddedGroup(ids, present))

    present = torch.tensor([[True, True, True], [True, True, False]])
    with TemporaryDirectory() as folder, warnings.catch_warnings(), torch.inference_mode():
        file = Path(folder) / "graph.onnx"
        warnings.simplefilter("ignore")
        # the exporter that goes through torch.export fixes the length of an LSTM's input
        torch.onnx.export(
            Group().eval(), (torch.zeros(2, 3, dtype=torch.int64), present), file, dynamo=False,
            opset_version=_OPSET, input_names=["ids", "present"], output_names=["embeddings"],
            dynamic_axes=_AXES,
        )  # fmt: skip
        return file.read_bytes()


def _quantized(graph: bytes) -> bytes:
    """Returns the graph with matrices of 8-bit whole numbers, by ONNX Runtime."""
    from onnxruntime.quantization import QuantType, quantize_dynamic

    with TemporaryDirectory() as folder:
        whole, small = Path(folder) / "whole.onnx", Path(folder) / "small.onnx"
        whole.write_bytes(graph)
        logging.disable(logging.WARNING)  # of the root logger: that it leaves ids as they are
        try:
            # processors without VNNI add products of 8 bits in 16, which 7 bits never overflow
            quantize_dynamic(
                whole, small, weight_type=QuantType.QInt8, per_channel=True, reduce_range=True
            )
        finally:
            logging.disable(logging.NOTSET)
        return small.read_bytes()


def _facts(model: ModelContents, dtype: str) -> Mapping[str, Any]:
    """Returns what the model was made from, for `config.json`."""
    source: dict[str, Any] = {"name": model.name, "sha256": model.sha256}
    if model.export is not None:
        source["export"] = dict(model.export)
    sizes = dict.fromkeys(("dim", "max_words", "unknown_buckets", "spelling"))
    return {"from": source, "dtype": dtype, **sizes, "dropped": []}


ONNX = Target(name="onnx", dtypes=("float32", "int8"), write=write)
