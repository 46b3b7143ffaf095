"""Models as graphs of ONNX. `tests/integration/onnx` writes and runs them with the real library."""

import pytest

from rejoinder.errors import InputError, ModelError
from rejoinder.interfaces.targets import export_to
from rejoinder.models.folder import read_model, write_model
from tiny_models import dan_model


def test_a_dan_needs_no_graph(tmp_path):
    write_model(tmp_path / "model", dan_model())
    with pytest.raises(InputError, match="is for transformer and bilstm"):
        export_to(tmp_path / "model", tmp_path / "out", "onnx")
    assert not (tmp_path / "out").exists()


def test_a_type_that_it_does_not_write_is_refused(tmp_path):
    with pytest.raises(InputError, match="'float16': onnx is written as float32 or int8"):
        export_to("rejoinder-base", tmp_path / "out", "onnx", dtype="float16")
    with pytest.raises(InputError, match="'int8': model2vec is written as float32"):
        export_to("rejoinder-base", tmp_path / "out", "model2vec", dtype="int8")


def test_a_folder_without_its_graph_is_damaged(tmp_path):
    from dataclasses import replace

    plain = dan_model(buckets=0)
    tensors = {n: tensor for n, tensor in plain.tensors.items() if not n.startswith("encoder.")}
    write_model(tmp_path / "model", replace(plain, tensors=tensors, graph=b"a graph"))
    assert read_model(tmp_path / "model").graph == b"a graph"
    (tmp_path / "model" / "encoder.onnx").write_bytes(b"A graph")
    with pytest.raises(ModelError, match=r"encoder\.onnx is not the file that was written"):
        read_model(tmp_path / "model")
    (tmp_path / "model" / "encoder.onnx").unlink()
    with pytest.raises(ModelError, match=r"encoder\.onnx is missing"):
        read_model(tmp_path / "model")
