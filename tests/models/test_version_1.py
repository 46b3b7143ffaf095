"""Model folders of format version 1, written by the code of that time, still load and agree."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest

from rejoinder.errors import ModelError
from rejoinder.inference.encoder import SentenceEncoder
from rejoinder.models.folder import read_model, write_model

FOLDERS = Path(__file__).parent / "version_1"
EXPECTED = json.loads((FOLDERS / "expected.json").read_text("utf-8"))
TEXTS = EXPECTED["texts"]
KINDS = ["dan", "bilstm", "transformer"]


def assert_as_written(encoder, expected):
    np.testing.assert_allclose(encoder.encode(TEXTS), expected["embeddings"], atol=2e-6)
    np.testing.assert_allclose(encoder.encode_response(TEXTS), expected["responses"], atol=2e-6)
    assert encoder.entails == ("entail" in expected)
    if encoder.entails:
        found = encoder.entail(TEXTS, TEXTS[::-1])
        np.testing.assert_allclose(found, expected["entail"], atol=2e-6)


@pytest.mark.parametrize("kind", KINDS)
def test_a_folder_of_version_1_encodes_as_it_did(kind):
    assert_as_written(SentenceEncoder.load(FOLDERS / kind), EXPECTED[kind])


@pytest.mark.parametrize("kind", KINDS)
def test_a_folder_of_version_1_is_written_as_version_2(kind, tmp_path):
    write_model(tmp_path / "model", read_model(FOLDERS / kind))
    config = json.loads((tmp_path / "model" / "config.json").read_text("utf-8"))
    assert config["format_version"] == 2
    assert_as_written(SentenceEncoder.load(tmp_path / "model"), EXPECTED[kind])


def test_a_folder_of_version_1_may_lack_the_seal(tmp_path):
    model = shutil.copytree(FOLDERS / "dan", tmp_path / "model")
    config = json.loads((model / "config.json").read_text("utf-8"))
    del config["sha256"]
    (model / "config.json").write_text(json.dumps(config), "utf-8")
    assert_as_written(SentenceEncoder.load(model), EXPECTED["dan"])


def test_a_damaged_folder_of_version_1_is_refused(tmp_path):
    model = shutil.copytree(FOLDERS / "dan", tmp_path / "model")
    config = json.loads((model / "config.json").read_text("utf-8"))
    del config["sha256"]
    config["head"] = None
    (model / "config.json").write_text(json.dumps(config), "utf-8")
    with pytest.raises(ModelError, match=r"heads is .*'responses': None.*: Expected `object`"):
        read_model(model)
