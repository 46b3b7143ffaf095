"""Tensors of a file, copied or mapped: the same values, and the same words about damage."""

import json
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import save_file

from rejoinder.errors import ModelError
from rejoinder.inference.encoder import SentenceEncoder
from rejoinder.models import config as module
from rejoinder.models.config import read_tensors
from rejoinder.models.folder import read_model, write_model
from tiny_models import dan_model

TENSORS = {
    "a.odd": np.arange(7, dtype=np.int8),
    "b.half": np.linspace(-1, 1, 6, dtype=np.float16).reshape(2, 3),
    "c.float": np.linspace(0, 1, 10, dtype=np.float32).reshape(5, 2),
    "d.rows": np.array([-1, 0, 5], np.int32),
    "e.scale": np.array(20.0, np.float32),
    "f.none": np.empty((0, 3), np.float32),
}
both = pytest.mark.parametrize("large", [1, 2**40], ids=["mapped", "copied"])


@pytest.fixture
def file(tmp_path) -> Path:
    save_file(TENSORS, tmp_path / "weights.safetensors", metadata={"by": "a test"})
    return tmp_path / "weights.safetensors"


@both
def test_tensors_are_those_that_were_written(file, large, monkeypatch):
    monkeypatch.setattr(module, "LARGE", large)
    tensors = read_tensors(file, remedy="")
    assert tensors.keys() == TENSORS.keys()
    for name, tensor in TENSORS.items():
        assert tensors[name].dtype == tensor.dtype
        np.testing.assert_array_equal(tensors[name], tensor)


@both
@pytest.mark.parametrize("kept", [0, 5, 40, -1])
def test_a_file_that_was_cut_is_refused(file, large, kept, monkeypatch):
    monkeypatch.setattr(module, "LARGE", large)
    file.write_bytes(file.read_bytes()[:kept])
    with pytest.raises(ModelError, match=r"Copy it again\."):
        read_tensors(file, remedy="Copy it again.")


@both
@pytest.mark.parametrize("name", ["Q7", "F8_E4M3", "BF16"])
def test_a_foreign_type_is_refused(file, large, name, monkeypatch):
    monkeypatch.setattr(module, "LARGE", large)
    size = 2 if name == "BF16" else 1
    header = json.dumps({"a": {"dtype": name, "shape": [1], "data_offsets": [0, size]}}).encode()
    file.write_bytes(len(header).to_bytes(8, "little") + header + b"x" * size)
    with pytest.raises(ModelError, match="can't be read"):
        read_tensors(file, remedy="")


def test_without_verification_a_changed_value_is_read_and_a_cut_file_is_not(tmp_path):
    write_model(tmp_path / "model", dan_model())
    weights = tmp_path / "model" / "weights.safetensors"
    content = bytearray(weights.read_bytes())
    content[len(content) // 2] ^= 1
    weights.write_bytes(content)
    with pytest.raises(ModelError, match="SHA-256"):
        read_model(tmp_path / "model")
    assert SentenceEncoder.load(tmp_path / "model", verify=False).dim == 5
    weights.write_bytes(content[:-1])
    with pytest.raises(ModelError, match="bytes"):
        SentenceEncoder.load(tmp_path / "model", verify=False)


def test_a_mapped_model_encodes_as_a_copied_one(tmp_path, monkeypatch):
    write_model(tmp_path / "model", dan_model())
    copied = SentenceEncoder.load(tmp_path / "model").encode(["How old are you?", "the cat"])
    monkeypatch.setattr(module, "LARGE", 1)
    mapped = SentenceEncoder.load(tmp_path / "model").encode(["How old are you?", "the cat"])
    np.testing.assert_array_equal(mapped, copied)
