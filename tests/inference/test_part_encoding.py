"""The contract of encoding engines: rows of one machine, in parts that outlive an interruption."""

import gzip
import json
import os

import numpy as np
import polars as pl
import pytest

from rejoinder.errors import InputError
from rejoinder.inference.encoder import SentenceEncoder
from rejoinder.inference.encoding import encode_file
from rejoinder.inference.part_encoding import ENCODING_ENGINES, encode_files, finished_parts
from rejoinder.io.files.atomic import unfinished_folder
from rejoinder.io.files.hashed import sealed
from rejoinder.models.folder import write_model
from tiny_models import dan_model

LINES = [f"How old are you? {'good morning ' * (number % 5)}{number}" for number in range(300)]
LINES[17], LINES[40] = "zebra", ""
PART = 2_000
"""Bytes of a part, of which the plain file has several."""


@pytest.fixture(scope="module")
def ray():
    """A session for all tests of the module: the processes of Ray take long to start."""
    import ray

    ray.init("local", num_cpus=1, include_dashboard=False, log_to_driver=False)
    yield
    ray.shutdown()


@pytest.fixture(
    params=[
        pytest.param(name, marks=[pytest.mark.slow, pytest.mark.xdist_group(name)])
        for name in ENCODING_ENGINES
    ]
)
def encode(request):
    """Encodes with an engine whose session serves all tests."""
    request.getfixturevalue(request.param)

    def call(model, texts, out, **options):
        return encode_files(model, texts, out, engine=request.param, part_bytes=PART, **options)

    return call


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    folder = tmp_path_factory.mktemp("models") / "model"
    write_model(folder, dan_model())
    return folder


@pytest.fixture
def texts(tmp_path):
    """A folder with a plain file of several parts and a compressed one."""
    folder = tmp_path / "texts"
    folder.mkdir()
    (folder / "a.txt").write_text("".join(f"{line}\n" for line in LINES[:200]), "utf-8")
    (folder / "b.txt.gz").write_bytes(gzip.compress("\n".join(LINES[200:]).encode()))
    return folder


def rows(out):
    files = sorted(out.iterdir())
    manifest = json.loads((out / "manifest.json").read_text("utf-8"))
    assert [path.name for path in files] == [
        "manifest.json",
        *(part["file"] for part in manifest["parts"]),
    ]
    if out.suffix == ".npy":
        return np.concatenate([np.load(path) for path in files[1:]])
    return pl.concat(map(pl.read_parquet, files[1:]))


def test_rows_are_those_of_one_machine(encode, model, texts, tmp_path):
    encoder = SentenceEncoder.load(model)
    plain = encode_file(encoder, LINES, tmp_path / "plain.parquet")
    expected = pl.read_parquet(tmp_path / "plain.parquet")
    written = encode(model, texts, tmp_path / "e.parquet")
    assert (written.n, written.dim, written.resumed) == (300, plain.dim, 0)
    assert (written.unknown, written.too_long) == (plain.unknown, plain.too_long)
    found = rows(tmp_path / "e.parquet")
    assert len(list((tmp_path / "e.parquet").iterdir())) > 4
    assert found.get_column("text").equals(expected.get_column("text"))
    difference = found.get_column("embedding").to_numpy() - expected["embedding"].to_numpy()
    assert np.abs(difference).max() < 1e-6
    encode(model, [texts / "a.txt", str(texts / "*.gz")], tmp_path / "e.npy", response=True)
    responses = encoder.encode_response(LINES)
    np.testing.assert_allclose(rows(tmp_path / "e.npy"), responses, atol=1e-6)


def test_finished_parts_are_kept_and_the_rest_is_encoded(encode, model, texts, tmp_path):
    out, last = tmp_path / "e.npy", texts / "b.txt.gz"
    sound, times = last.read_bytes(), last.stat()
    last.write_bytes(sound[:-5] + bytes(5))
    os.utime(last, ns=(times.st_atime_ns, times.st_mtime_ns))
    with pytest.raises(InputError, match=r"b\.txt\.gz.* damaged"):
        encode(model, texts, out)
    assert not out.exists()
    finished, count = finished_parts(out)
    assert 0 < finished < count  # an engine may stop the others when one has failed
    records = unfinished_folder(out).glob(".part-*.counts")
    kept_rows = sum(json.loads(record.read_text("utf-8"))["n"] for record in records)
    with pytest.raises(InputError, match=rf"{finished} of {count} parts.*resume=True"):
        encode(model, texts, out)
    with pytest.raises(InputError, match=r"response was False.* True"):
        encode(model, texts, out, resume=True, response=True)
    last.write_bytes(sound)
    with pytest.raises(InputError, match=r"input .* sizes"):
        encode(model, texts, out, resume=True)

    os.utime(last, ns=(times.st_atime_ns, times.st_mtime_ns))
    kept = unfinished_folder(out) / "part-00000.npy"
    whole, known = kept.read_bytes(), kept.stat().st_ino
    with kept.open("r+b") as file:
        file.write(bytes([whole[0] ^ 1]))
    with pytest.raises(InputError, match=r"part-00000\.npy .*SHA-256.*overwrite=True"):
        encode(model, texts, out, resume=True)
    with kept.open("r+b") as file:
        file.write(whole)
    record = kept.with_name(".part-00000.counts")
    tree = json.loads(record.read_text("utf-8"))
    del tree["sha256"]
    record.write_text(json.dumps(sealed({**tree, "n": "9"})), "utf-8")
    with pytest.raises(InputError, match=r"part-00000\.counts is damaged: .*int.*str.*\.n"):
        encode(model, texts, out, resume=True)
    record.write_text(json.dumps(sealed(tree)), "utf-8")
    written = encode(model, texts, out, resume=True)
    assert (written.n, written.resumed) == (300, kept_rows)
    assert (out / kept.name).stat().st_ino == known
    np.testing.assert_allclose(rows(out), SentenceEncoder.load(model).encode(LINES), atol=1e-6)
    assert not unfinished_folder(out).exists()
    with pytest.raises(InputError, match=r"e\.npy"):
        encode(model, texts, out)


def test_faults_of_lines_name_the_file(encode, model, tmp_path):
    path = tmp_path / "latin.txt"
    path.write_bytes("word\ncafé\n".encode("latin-1"))
    with pytest.raises(InputError, match=r"latin\.txt.*line 2"):
        encode(model, path, tmp_path / "e.npy")
    with pytest.raises(InputError, match=r"\*\.none"):
        encode(model, tmp_path / "*.none", tmp_path / "f.npy")
    with pytest.raises(InputError, match=r"must end in one of"):
        encode(model, path, tmp_path / "folder")
