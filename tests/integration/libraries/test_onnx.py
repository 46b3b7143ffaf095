"""Transformers and BiLSTMs exported to ONNX: the vectors of torch, and no torch to run them."""

import json
import subprocess
import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import numpy as np
import pytest

from rejoinder import SentenceEncoder
from rejoinder.errors import InputError, ModelError
from rejoinder.interfaces.targets import export_to
from rejoinder.models.folder import write_model

SENTENCES = [
    "How old are you?",
    "",
    "hello",
    "what is your name , tom ? " * 40,
    "\u4e2d\u6587 \U0001f600 xyzzy",
    *(" ".join(["old"] * count) for count in range(1, 70)),
]
WITHOUT_TORCH = """
import json, sys
sys.modules.update(torch=None, pydantic=None)
from rejoinder import SentenceEncoder
encoder = SentenceEncoder.load(sys.argv[1])
print(json.dumps(encoder.encode(json.loads(sys.argv[2])).tolist()))
"""


def tiny_models():
    path = Path(__file__).parents[2] / "tiny_models.py"
    spec = spec_from_file_location(path.stem, path)
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module", params=["transformer", "bilstm"])
def folder(request, tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("models") / request.param
    write_model(folder, getattr(tiny_models(), f"{request.param}_model")())
    return folder


def test_vectors_are_those_of_torch(folder, tmp_path):
    written = export_to(folder, tmp_path / "onnx", "onnx")
    ours, torchs = (SentenceEncoder.load(path) for path in (written.folder, folder))
    for normalize in (True, False):
        np.testing.assert_allclose(
            ours.encode(SENTENCES, normalize=normalize),
            torchs.encode(SENTENCES, normalize=normalize),
            atol=1e-4,
        )
    np.testing.assert_allclose(
        ours.encode_response(SENTENCES), torchs.encode_response(SENTENCES), atol=1e-4
    )
    hits = [
        [hit.index for hit in encoder.rank("how old", SENTENCES, 5)] for encoder in (ours, torchs)
    ]
    assert hits[0] == hits[1]


def test_it_runs_without_torch(folder, tmp_path):
    written = export_to(folder, tmp_path / "onnx", "onnx")
    command = [sys.executable, "-c", WITHOUT_TORCH, str(written.folder), json.dumps(SENTENCES[:9])]
    printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    np.testing.assert_allclose(
        np.array(json.loads(printed)), SentenceEncoder.load(folder).encode(SENTENCES[:9]), atol=1e-4
    )


def test_int8_is_near(folder, tmp_path):
    written = export_to(folder, tmp_path / "onnx", "onnx", dtype="int8")
    small, whole = (SentenceEncoder.load(path) for path in (written.folder, folder))
    assert small.describe()["export"]["dtype"] == "int8"
    np.testing.assert_allclose(small.encode(SENTENCES), whole.encode(SENTENCES), atol=0.05)


def test_the_same_model_gives_the_same_bytes(folder, tmp_path):
    for name in ("first", "second"):
        export_to(folder, tmp_path / name, "onnx")
    first, second = (
        {file.name: file.read_bytes() for file in (tmp_path / name).iterdir()}
        for name in ("first", "second")
    )
    assert first == second


def test_a_graph_is_not_exported_again(folder, tmp_path):
    export_to(folder, tmp_path / "onnx", "onnx")
    with pytest.raises(InputError, match="is a graph of ONNX already"):
        export_to(tmp_path / "onnx", tmp_path / "again", "onnx")


def test_bytes_that_are_no_graph_are_a_damaged_model(tmp_path):
    from dataclasses import replace

    model = tiny_models().bilstm_model()
    tensors = {n: tensor for n, tensor in model.tensors.items() if not n.startswith("encoder.")}
    write_model(tmp_path / "model", replace(model, tensors=tensors, graph=b"no graph"))
    with pytest.raises(ModelError, match=r"the graph of .* can't be read"):
        SentenceEncoder.load(tmp_path / "model")
