"""Downloads from a test server that misbehaves in every way we know."""

import dataclasses
import hashlib
import io
import re
import socket
import subprocess
import sys
import threading
import zipfile
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import httpx
import numpy as np
import pytest

from rejoinder.datasets.acquire.layout import (
    Added,
    Failed,
    _refuse_unsafe_redirect,
    download,
    fetch,
)
from rejoinder.datasets.catalogue import DataSet, catalogue
from rejoinder.errors import InputError, MissingExtraError, StorageError

CONTENT = np.random.default_rng(0).bytes(300_000)
MRPC = "Quality\t#1 ID\t#2 ID\t#1 String\t#2 String\n"


class Server(ThreadingHTTPServer):
    daemon_threads = True
    files: dict[str, bytes]
    moved: dict[str, str]
    breaks: int
    """Number of connections that end too early."""
    busy: int
    """Number of requests that are answered with 503."""
    ranges: list[str | None]
    ignore_range: bool
    shift: int
    """Bytes between the range asked for and the range sent."""
    tag: str
    awake: threading.Event
    """Requests wait for it."""

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.0"
    server: Server

    def do_GET(self) -> None:
        asked = self.headers.get("Range")
        self.server.ranges.append(asked)
        self.server.awake.wait()
        if self.server.busy:
            self.server.busy -= 1
            self.send_error(503)
            return
        if self.path in self.server.moved:
            self.send_response(302)
            self.send_header("Location", self.server.moved[self.path])
            self.end_headers()
            return
        content = self.server.files.get(self.path)
        if content is None:
            self.send_error(404)
            return
        start = 0
        changed = self.headers.get("If-Range", self.server.tag) != self.server.tag
        if asked and not self.server.ignore_range and not changed:
            start = int(asked.removeprefix("bytes=").removesuffix("-"))
            if start >= len(content):
                self.send_error(416)
                return
            self.send_response(206)
            start += self.server.shift
            self.send_header("Content-Range", f"bytes {start}-{len(content) - 1}/{len(content)}")
        else:
            self.send_response(200)
        self.send_header("ETag", self.server.tag)
        self.send_header("Content-Length", str(len(content) - start))
        self.end_headers()
        rest = content[start:]
        if self.server.breaks:
            self.server.breaks -= 1
            rest = rest[: len(rest) // 2]
        self.wfile.write(rest)

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@pytest.fixture
def server(monkeypatch) -> Iterator[Server]:
    monkeypatch.setattr("rejoinder.datasets.acquire.layout._WAIT", 0.01)
    one = Server(("127.0.0.1", 0), Handler)
    one.files, one.breaks, one.ranges = {"/file.bin": CONTENT}, 0, []
    one.moved, one.busy, one.shift = {}, 0, 0
    one.ignore_range, one.tag = False, '"one"'
    one.awake = threading.Event()
    one.awake.set()
    thread = threading.Thread(target=one.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    yield one
    one.awake.set()
    one.shutdown()
    one.server_close()


def quiet(_name: str, _done: int, _total: int | None) -> None:
    pass


def test_a_download_tells_how_far_it_is(server, tmp_path):
    told = []
    digest = hashlib.sha256(CONTENT).hexdigest()
    place = tmp_path / "new" / "file.bin"
    address = f"{server.address}/file.bin"
    download(address, place, lambda *facts: told.append(facts), sha256=digest)
    assert place.read_bytes() == CONTENT
    assert told[0] == (address, 0, len(CONTENT))
    assert told[-1] == (address, len(CONTENT), len(CONTENT))
    assert [path.name for path in place.parent.iterdir()] == ["file.bin"]
    download(address, place, quiet)
    assert len(server.ranges) == 1


def test_a_connection_that_breaks_off_is_taken_up(server, tmp_path):
    server.breaks = 2
    download(f"{server.address}/file.bin", tmp_path / "f", quiet)
    assert (tmp_path / "f").read_bytes() == CONTENT
    assert server.ranges == [None, "bytes=150000-", "bytes=225000-"]


def test_a_busy_server_is_asked_again(server, tmp_path):
    server.busy = 2
    download(f"{server.address}/file.bin", tmp_path / "f", quiet)
    assert (tmp_path / "f").read_bytes() == CONTENT
    server.busy = 3
    with pytest.raises(InputError, match=r" 503 .*ADVICE"):
        download(f"{server.address}/file.bin", tmp_path / "g", quiet, advice="ADVICE")


def test_a_proxy_that_can_t_be_used_is_named(server, tmp_path, monkeypatch):
    monkeypatch.setenv("ALL_PROXY", "gopher://127.0.0.1:1")
    with pytest.raises(InputError, match=r"gopher.*ADVICE"):
        download(f"{server.address}/file.bin", tmp_path / "f", quiet, advice="ADVICE")


def test_a_server_that_always_breaks_off_and_the_next_day(server, tmp_path):
    server.breaks = 3
    with pytest.raises(InputError, match=r" 3 times.* 262,500 bytes .* ADVICE"):
        download(f"{server.address}/file.bin", tmp_path / "f", quiet, advice="ADVICE")
    assert not (tmp_path / "f").exists()
    download(f"{server.address}/file.bin", tmp_path / "f", quiet)
    assert (tmp_path / "f").read_bytes() == CONTENT
    assert server.ranges[-1] == "bytes=262500-"


def test_a_server_that_knows_no_ranges(server, tmp_path):
    server.breaks, server.ignore_range = 1, True
    download(f"{server.address}/file.bin", tmp_path / "f", quiet)
    assert (tmp_path / "f").read_bytes() == CONTENT


def test_a_server_that_sends_another_range(server, tmp_path):
    server.breaks, server.shift = 1, 10
    download(f"{server.address}/file.bin", tmp_path / "f", quiet)
    assert (tmp_path / "f").read_bytes() == CONTENT
    assert server.ranges == [None, "bytes=150000-", None]


def test_a_file_that_changed_meanwhile(server, tmp_path):
    server.breaks = 3
    with pytest.raises(InputError):
        download(f"{server.address}/file.bin", tmp_path / "f", quiet)
    server.files["/file.bin"], server.tag = CONTENT[::-1], '"two"'
    download(f"{server.address}/file.bin", tmp_path / "f", quiet)
    assert (tmp_path / "f").read_bytes() == CONTENT[::-1]


def test_a_rest_that_is_longer_than_the_file(server, tmp_path):
    (tmp_path / "f.part").write_bytes(CONTENT + b"more")
    download(f"{server.address}/file.bin", tmp_path / "f", quiet)
    assert (tmp_path / "f").read_bytes() == CONTENT


def test_wrong_bytes(server, tmp_path):
    with pytest.raises(InputError, match=r"/file\.bin .*SHA-256 .* 0{64}.* ADVICE"):
        download(
            f"{server.address}/file.bin", tmp_path / "f", quiet, sha256="0" * 64, advice="ADVICE"
        )
    assert not (tmp_path / "f").exists()
    assert not (tmp_path / "f.part").exists()


def test_dead_addresses(server, tmp_path, monkeypatch):
    with pytest.raises(InputError, match=r"/none .*404 .*ADVICE"):
        download(f"{server.address}/none", tmp_path / "f", quiet, advice="ADVICE")
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        port = closed.getsockname()[1]
    with pytest.raises(InputError, match=r"can't be reached: .* ADVICE"):
        download(f"http://127.0.0.1:{port}/f", tmp_path / "f", quiet, advice="ADVICE")
    with pytest.raises(InputError, match=r"can't be reached: .*protocol"):
        download(tmp_path.as_uri(), tmp_path / "f", quiet)
    server.awake.clear()
    monkeypatch.setattr("rejoinder.datasets.acquire.layout._TIMEOUT", 0.05)
    with pytest.raises(InputError, match=r"3 times|timed out"):
        download(f"{server.address}/file.bin", tmp_path / "f", quiet)


def test_redirects_to_another_scheme_or_without_end_are_refused(server, tmp_path):
    file = f"{server.address}/file.bin"
    server.moved = {"/a": file, "/b": "file:///etc/passwd", "/c": "ftp://127.0.0.1/x", "/d": "/d"}
    download(f"{server.address}/a", tmp_path / "a", quiet)
    assert (tmp_path / "a").read_bytes() == CONTENT
    for name, said in (
        ("b", "redirects to file:///etc/passwd. Only https"),
        ("c", "redirects to ftp://127.0.0.1/x. Only https"),
        ("d", "can't be reached: .* redirects"),
    ):
        with pytest.raises(InputError, match=rf"/{name} {said}.* ADVICE$"):
            download(f"{server.address}/{name}", tmp_path / name, quiet, advice="ADVICE")
    assert [path.name for path in tmp_path.iterdir()] == ["a"]


def test_no_redirect_from_https_to_http():
    request = httpx.Request("GET", "https://example.org/a")
    for target in ("https://example.org/b", "/b"):
        response = httpx.Response(302, headers={"Location": target}, request=request)
        _refuse_unsafe_redirect("https://example.org/a", response)
    response = httpx.Response(302, headers={"Location": "http://example.org/b"}, request=request)
    with pytest.raises(InputError, match=r"http://example.org/b\. .*https"):
        _refuse_unsafe_redirect("https://example.org/a", response)


def test_a_full_disk_is_told_from_a_dead_address_and_what_came_stays(server, tmp_path):
    script = (
        "import resource, sys; from pathlib import Path\n"
        "from rejoinder.datasets.acquire.layout import download\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))\n"
        "download(sys.argv[1], Path(sys.argv[2]), lambda *_: None)"
    )
    address = f"{server.address}/file.bin"
    done = subprocess.run(
        [sys.executable, "-c", script, address, tmp_path / "f"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert "StorageError: " in done.stderr
    assert "f.part can't be written: a file would exceed the size limit" in done.stderr
    assert (tmp_path / "f.part").stat().st_size == 100_000
    download(address, tmp_path / "f", quiet)
    assert (tmp_path / "f").read_bytes() == CONTENT
    assert server.ranges[-1] == "bytes=100000-"
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(StorageError, match=r"can't be written: (a part of|.*exists)"):
        download(address, tmp_path / "file" / "f", quiet)


def test_the_missing_extra_is_named_only_when_something_is_downloaded(
    server, tmp_path, monkeypatch
):
    monkeypatch.setitem(sys.modules, "httpx", None)
    with pytest.raises(MissingExtraError, match=r"httpx.*rejoinder\[data\]"):
        download(f"{server.address}/file.bin", tmp_path / "f", quiet)
    (tmp_path / "f").write_bytes(b"here")
    download(f"{server.address}/file.bin", tmp_path / "f", quiet)


def test_a_file_that_no_set_is_as_large_as(server, tmp_path, monkeypatch):
    monkeypatch.setattr("rejoinder.datasets.acquire.layout._MAX_BYTES", 1_000)
    with pytest.raises(InputError, match=r"file\.bin .* 1,000 bytes"):
        download(f"{server.address}/file.bin", tmp_path / "f", quiet)


def of_size(server: Server, *names: str) -> DataSet:
    known = catalogue().sets["mrpc"]
    files = tuple(
        dataclasses.replace(file, rows=count, letters="")
        for file, count in zip(known.files, (3, 2), strict=True)
    )
    addresses = tuple(f"{server.address}/{name}" for name in names)
    return dataclasses.replace(known, files=files, addresses=addresses)


def rows(count: int) -> bytes:
    return (MRPC + "".join(f"1\t{row}\t2\tone\ttwo\n" for row in range(count))).encode()


def test_from_the_address_to_the_layout(server, tmp_path):
    memory = io.BytesIO()
    with zipfile.ZipFile(memory, "w") as file:
        file.writestr("MRPC/msr_paraphrase_test.txt", rows(2))
    server.files |= {"/msr_paraphrase_train.txt": rows(3), "/test.zip": memory.getvalue()}
    dataset = of_size(server, "msr_paraphrase_train.txt", "test.zip")
    [added] = fetch([dataset], tmp_path, quiet)
    assert isinstance(added, Added)
    assert added.missing == ()
    assert sorted(path.name for path in tmp_path.rglob("*") if path.is_file()) == [
        "msr_paraphrase_test.txt",
        "msr_paraphrase_train.txt",
    ]
    assert not (tmp_path / ".downloads").exists()
    [again] = fetch([dataset], tmp_path, quiet)
    assert isinstance(again, Added)
    assert again.notes == ("MRPC is already complete.",)
    assert len(server.ranges) == 2


def test_one_that_fails_does_not_keep_the_others(server, tmp_path):
    train, test = "msr_paraphrase_train.txt", "msr_paraphrase_test.txt"
    server.files |= {f"/{train}": rows(3), f"/{test}": rows(2), "/wrong.txt": b"other\n"}
    whole = of_size(server, train, test)
    half = of_size(server, train, "none.txt")
    wrong = dataclasses.replace(of_size(server, "wrong.txt"), id="sick")
    cqa = catalogue().sets["cqa17"]
    outcomes = list(fetch([half, wrong, cqa, whole], tmp_path, quiet))
    assert [type(one) for one in outcomes] == [Failed, Failed, Failed, Added]
    reasons = [one.reason for one in outcomes if isinstance(one, Failed)]
    assert re.search("none.txt .*404", reasons[0])
    assert "Microsoft Research Paraphrase Corpus" in reasons[0]
    assert "`rejoinder data add mrpc FILE`" in reasons[0]
    assert "files downloaded for MRPC" in reasons[1]
    assert "http://alt.qcri.org" in reasons[2]
    assert not list(Path(tmp_path).rglob("wrong.txt"))
