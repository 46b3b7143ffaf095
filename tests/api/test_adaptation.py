"""`adapt` of the library: any encoder or its name, with and without files written."""

import numpy as np
import pytest

from rejoinder.api.export import adapt
from rejoinder.errors import InputError
from rejoinder.inference.encoder import SentenceEncoder
from rejoinder.models.adaptation import FitSettings, read_adaptation
from rejoinder.models.folder import write_model
from sts_files import write_benchmark
from tiny_models import WORDS, dan_model

SETTINGS = FitSettings(learning_rate=3e-3, max_epochs=3)


class Lengths:
    """An encoder of somebody else: counts words by their length."""

    def encode(self, sentences):
        rows = np.zeros((len(sentences), 7), np.float32)
        for row, text in zip(rows, sentences, strict=True):
            np.add.at(row, [len(word) % 7 for word in text.split()], 1)
        return rows


@pytest.fixture
def data(tmp_path, monkeypatch):
    return write_benchmark(tmp_path / "sts", {"train": 200, "dev": 80}, monkeypatch)


def test_a_model_folder_gives_an_encoder_and_the_same_model_on_disk(data, tmp_path):
    write_model(tmp_path / "model", dan_model())
    adapted = adapt(tmp_path / "model", data, out=tmp_path / "out", settings=SETTINGS)
    written = SentenceEncoder.load(tmp_path / "out")
    assert isinstance(adapted, SentenceEncoder)
    assert written.describe()["adaptation"] == adapted.describe()["adaptation"]
    np.testing.assert_array_equal(adapted.encode(WORDS), written.encode(WORDS))
    again = adapt(str(tmp_path / "model"), str(data), settings=SETTINGS)
    np.testing.assert_array_equal(again.encode(WORDS), adapted.encode(WORDS))
    with pytest.raises(InputError, match="overwrite=True"):
        adapt(tmp_path / "model", data, out=tmp_path / "out")
    adapt(Lengths(), data, out=tmp_path / "out", settings=SETTINGS, overwrite=True)
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["adaptation.safetensors"]


def test_any_encoder_is_adapted_in_memory(data, tmp_path):
    before = sorted(tmp_path.rglob("*"))
    adapted = adapt(Lengths(), data, settings=SETTINGS)
    facts = adapted.describe()["adaptation"]
    assert facts["encoder"] == {"name": "Lengths"}
    assert facts["dev_pearson_after"] >= facts["dev_pearson_before"]
    assert sorted(tmp_path.rglob("*")) == before
    adapted.adaptation.write(tmp_path / "a.safetensors")
    assert read_adaptation(tmp_path / "a.safetensors").sha256 == facts["sha256"]
    assert len(adapted._fitted_pairs()) == len(adapted.adaptation.fitted_pairs) > 0
    with pytest.raises(InputError, match="an object with encode"):
        adapt(7, data)
