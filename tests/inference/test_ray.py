"""Ray that an encoding starts itself; tests/inference/test_part_encoding.py has the contract."""

import signal
import tempfile
from pathlib import Path

import pytest

from rejoinder.errors import InputError
from rejoinder.inference import ray
from rejoinder.inference.part_encoding import encode_files
from rejoinder.models.folder import write_model
from tiny_models import dan_model


@pytest.fixture
def short(monkeypatch):
    """A folder of the test's own for Ray's sockets, whose paths must be short."""
    with tempfile.TemporaryDirectory(prefix="r", dir=ray._SHORT) as folder:
        monkeypatch.setattr(ray, "_SHORT", folder)
        yield Path(folder)


@pytest.mark.slow
def test_ray_on_this_machine_leaves_nothing_behind(monkeypatch, tmp_path, short):
    model, path = tmp_path / "model", tmp_path / "texts.txt"
    write_model(model, dan_model())
    path.write_text("How old are you?\n" * 50, "utf-8")
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "scratch"))
    (tmp_path / "scratch").mkdir()
    handler = signal.getsignal(signal.SIGTERM)
    written = encode_files(model, path, tmp_path / "e.npy", engine="ray", threads=1)
    assert written.n == 50
    assert signal.getsignal(signal.SIGTERM) is handler
    assert not list(short.iterdir())
    assert not list((tmp_path / "scratch").iterdir())


@pytest.mark.parametrize(
    ("engine", "asked", "match"),
    [
        ("ray", {"memory": "2GB"}, "`memory` has no effect on Ray"),
        ("ray", {"master": "127.0.0.1:1", "threads": 2}, "leave one of them out"),
        (
            "ray",
            {"master": "ray://127.0.0.1:1"},
            r"`master` ray://127\.0\.0\.1:1: can't connect to Ray .*refused",
        ),
        ("dask", {}, "`engine` 'dask': use one of spark, ray|spark"),
    ],
)
def test_settings_without_effect_are_refused(tmp_path, engine, asked, match):
    model, path = tmp_path / "model", tmp_path / "texts.txt"
    write_model(model, dan_model())
    path.write_text("How old are you?\n", "utf-8")
    with pytest.raises(InputError, match=match):
        encode_files(model, path, tmp_path / "e.npy", engine=engine, **asked)
    assert {each.name for each in tmp_path.iterdir()} == {"model", "texts.txt"}
