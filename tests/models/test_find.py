"""Models at addresses, from a local server: downloaded once, checked, cached."""

import hashlib
import io
import re
import shutil
import subprocess
import sys
import tarfile
import threading
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
import zstandard

from rejoinder.api.evaluation import load_encoder
from rejoinder.errors import BusyError, InputError, MissingExtraError, ModelError, StorageError
from rejoinder.inference.encoder import SentenceEncoder
from rejoinder.models.find import cache_folder, cached_model
from rejoinder.models.folder import write_model
from tiny_models import dan_model


class Handler(SimpleHTTPRequestHandler):
    def do_GET(self) -> None:
        self.server.asked.append(self.path)
        super().do_GET()

    def log_message(self, *_: object) -> None:
        """Says nothing."""


@pytest.fixture
def served(tmp_path, monkeypatch):
    """The folder that a server on this machine shows; `served.address` and `served.asked`."""
    folder = tmp_path / "served"
    folder.mkdir()
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Handler, directory=folder))
    server.asked = []
    threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    monkeypatch.setenv("REJOINDER_CACHE", str(tmp_path / "cache"))
    yield Served(folder, server)
    server.shutdown()
    server.server_close()


class Served:
    def __init__(self, folder, server):
        self.folder, self.asked = folder, server.asked
        self.address = f"http://127.0.0.1:{server.server_port}"

    def add(self, name, content):
        """Serves a file; returns its address and SHA-256."""
        (self.folder / name).write_bytes(content)
        return f"{self.address}/{name}", hashlib.sha256(content).hexdigest()


def archive(tmp_path, form, inside="tiny"):
    """The bytes of an archive whose model folder is `inside`; "." has its files at the top."""
    place = tmp_path / f"to-pack-{form}"
    write_model(place / inside, dan_model())
    return Path(shutil.make_archive(tmp_path / "packed", form, place)).read_bytes()


def files_of(folder):
    return sorted(str(p.relative_to(folder)) for p in folder.rglob("*") if p.is_file())


@pytest.mark.parametrize("inside", ["tiny", "."])
@pytest.mark.parametrize("form", ["zip", "gztar", "tar"])
def test_an_archive_is_downloaded_once_and_read_from_the_cache(served, tmp_path, form, inside):
    address, sha256 = served.add("model", archive(tmp_path, form, inside))
    told = []
    encoder = SentenceEncoder.load(address, sha256=sha256, progress=lambda *f: told.append(f))
    expected = SentenceEncoder(dan_model()).encode("hello you")
    assert encoder.encode("hello you").tolist() == expected.tolist()
    size = (served.folder / "model").stat().st_size
    assert told[-1] == (address, size, size)
    (served.folder / "model").unlink()
    for again in (address, "https://example.org/the-same.zip"):
        assert repr(SentenceEncoder.load(again, sha256=sha256.upper())) == repr(encoder)
        assert repr(load_encoder(again, sha256=sha256)) == repr(encoder)
    assert served.asked == ["/model"]
    assert {name.split("/")[1] for name in files_of(tmp_path / "cache")} == {sha256}


def test_zstd(served, tmp_path):
    packed = zstandard.ZstdCompressor().compress(archive(tmp_path, "tar"))
    address, sha256 = served.add("model.tar.zst", packed)
    assert SentenceEncoder.load(address, sha256=sha256).dim == 5


def test_wrong_bytes_are_refused_and_leave_nothing(served, tmp_path):
    content = archive(tmp_path, "zip")
    address, sha256 = served.add("model.zip", content)
    with pytest.raises(InputError, match=rf"{sha256}.* 00"):
        SentenceEncoder.load(address, sha256="0" * 64)
    address, sha256 = served.add("cut.zip", content[:-30])
    with pytest.raises(InputError, match="damaged or cut"):
        SentenceEncoder.load(address, sha256=sha256)
    memory = io.BytesIO()
    with tarfile.open(fileobj=memory, mode="w") as file:
        file.addfile(tarfile.TarInfo("../config.json"))
    address, sha256 = served.add("evil.tar", memory.getvalue())
    with pytest.raises(InputError, match="leaves the folder"):
        SentenceEncoder.load(address, sha256=sha256)
    for name, bad in (("plain", b"no archive"), ("two.zip", two_models(tmp_path))):
        address, sha256 = served.add(name, bad)
        with pytest.raises(ModelError, match=rf"{name} .*(no|2) "):
            SentenceEncoder.load(address, sha256=sha256)
    with pytest.raises(InputError, match=r"404.*folder"):
        SentenceEncoder.load(f"{served.address}/none", sha256=sha256)
    assert not (tmp_path / "cache").exists()


def two_models(tmp_path):
    for name in ("one", "two"):
        write_model(tmp_path / "both" / name, dan_model())
    return Path(shutil.make_archive(tmp_path / "both", "zip", tmp_path / "both")).read_bytes()


@pytest.mark.parametrize(
    ("address", "sha256", "said"),
    [
        ("https://example.org/m.zip", None, "needs the SHA-256 of its archive"),
        ("https://example.org/m.zip", "abc", "sha256 is 'abc'; a SHA-256 has 64"),
        ("https://example.org/m.zip", 5, "sha256 is 5; a SHA-256 has 64"),
        ("http://example.org/m.zip", "0" * 64, "https"),
        ("ftp://localhost/m.zip", "0" * 64, "https"),
        ("file:///m.zip", "0" * 64, "https"),
        ("https://[/m.zip", "0" * 64, "is not an address: "),
    ],
)
def test_what_is_no_safe_address_is_refused(address, sha256, said):
    with pytest.raises(InputError, match=rf"^{re.escape(address)}.*{said}|^{said}"):
        SentenceEncoder.load(address, sha256=sha256)


def test_another_process_is_waited_for_with_patience(served, tmp_path, monkeypatch):
    address, sha256 = served.add("model.zip", archive(tmp_path, "zip"))
    script = (
        "import sys; from pathlib import Path; from rejoinder.io.files.claims import claim\n"
        "with claim(Path(sys.argv[1])):\n    print('held', flush=True); sys.stdin.read()"
    )
    holder = subprocess.Popen(
        [sys.executable, "-c", script, cache_folder() / "models" / sha256],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    with holder:
        assert holder.stdout.readline() == "held\n"
        with monkeypatch.context() as patch:
            patch.setattr("rejoinder.models.find._PATIENCE", 0.0)
            with pytest.raises(BusyError, match=f"process {holder.pid}"):
                cached_model(address, sha256)
        found = []
        waiting = threading.Thread(target=lambda: found.append(cached_model(address, sha256)))
        waiting.start()
        holder.stdin.close()
        waiting.join()
    assert found[0].name == "tiny"


def test_threads_download_once(served, tmp_path):
    address, sha256 = served.add("model.zip", archive(tmp_path, "zip"))
    found = []
    threads = [
        threading.Thread(target=lambda: found.append(cached_model(address, sha256)))
        for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 4
    assert len({*found}) == len(served.asked) == 1


def test_where_the_cache_is(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("REJOINDER_CACHE", "here")
    assert cache_folder() == tmp_path / "here"
    monkeypatch.setenv("REJOINDER_CACHE", "")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "user"))
    assert cache_folder().name == "rejoinder"
    monkeypatch.setitem(sys.modules, "platformdirs", None)
    with pytest.raises(MissingExtraError, match=r"rejoinder\[data\]"):
        cache_folder()


def test_a_cache_that_can_t_be_written_is_named(served, tmp_path, monkeypatch):
    address, sha256 = served.add("model.zip", archive(tmp_path, "zip"))
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("REJOINDER_CACHE", str(tmp_path / "file"))
    with pytest.raises(StorageError, match="REJOINDER_CACHE"):
        SentenceEncoder.load(address, sha256=sha256)
