"""Archives: whatever is packed well is unpacked, and what would do harm is refused."""

import bz2
import gzip
import io
import lzma
import os
import stat
import tarfile
import zipfile
from pathlib import Path

import pytest
import zstandard

from rejoinder.datasets.archives import Limits, unpack
from rejoinder.errors import InputError

PACKERS = {
    "": bytes,
    ".gz": gzip.compress,
    ".bz2": bz2.compress,
    ".xz": lzma.compress,
    ".zst": zstandard.ZstdCompressor().compress,
}


def tar_of(*entries: tuple[tarfile.TarInfo, bytes]) -> bytes:
    memory = io.BytesIO()
    with tarfile.open(fileobj=memory, mode="w") as file:
        for entry, content in entries:
            entry.size = len(content)
            file.addfile(entry, io.BytesIO(content))
    return memory.getvalue()


def plain(name: str, content: bytes = b"text\n") -> tuple[tarfile.TarInfo, bytes]:
    return tarfile.TarInfo(name), content


def special(name: str, kind: bytes, target: str = "") -> tuple[tarfile.TarInfo, bytes]:
    entry = tarfile.TarInfo(name)
    entry.type, entry.linkname = kind, target
    return entry, b""


@pytest.fixture
def into(tmp_path) -> Path:
    place = tmp_path / "into"
    place.mkdir()
    return place


@pytest.mark.parametrize("suffix", PACKERS)
def test_tars_in_every_compression(tmp_path, into, suffix):
    archive = tmp_path / f"a.tar{suffix}"
    archive.write_bytes(PACKERS[suffix](tar_of(plain("x/one.txt"), plain("./two.txt", b""))))
    assert [path.relative_to(into).as_posix() for path in unpack(archive, into)] == [
        "x/one.txt",
        "two.txt",
    ]
    assert (into / "x/one.txt").read_bytes() == b"text\n"


@pytest.mark.parametrize("suffix", [suffix for suffix in PACKERS if suffix])
def test_a_single_compressed_file(tmp_path, into, suffix):
    archive = tmp_path / f"a.txt{suffix}"
    archive.write_bytes(PACKERS[suffix](b"text\n"))
    assert unpack(archive, into) == [into / "a.txt"]


def test_a_plain_file_is_itself(tmp_path, into):
    (tmp_path / "a.txt").write_bytes(b"text\n")
    assert unpack(tmp_path / "a.txt", into) == [tmp_path / "a.txt"]


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        (plain("../out.txt"), "leaves the folder"),
        (plain("x/../../out.txt"), "leaves the folder"),
        (plain("x\\..\\..\\out.txt"), "leaves the folder"),
        (plain("/etc/out.txt"), "absolute path"),
        (plain("C:\\out.txt"), "absolute path"),
        (special("link", tarfile.SYMTYPE, "/etc"), "link or a device"),
        (special("link", tarfile.LNKTYPE, "other"), "link or a device"),
        (special("null", tarfile.CHRTYPE), "link or a device"),
        (special("pipe", tarfile.FIFOTYPE), "link or a device"),
        (special("../folder", tarfile.DIRTYPE), "leaves the folder"),
    ],
)
def test_tars_that_would_do_harm(tmp_path, into, entry, message):
    archive = tmp_path / "a.tar.gz"
    archive.write_bytes(gzip.compress(tar_of(entry)))
    with pytest.raises(InputError, match=message):
        unpack(archive, into)
    assert {path.name for path in tmp_path.iterdir()} == {"a.tar.gz", "into"}
    assert not any(path.is_file() or path.is_symlink() for path in into.rglob("*"))


@pytest.mark.parametrize(
    ("name", "mode", "message"),
    [
        ("../out.txt", 0, "leaves the folder"),
        ("/out.txt", 0, "absolute path"),
        ("link", stat.S_IFLNK | 0o777, "link or a device"),
    ],
)
def test_zips_that_would_do_harm(tmp_path, into, name, mode, message):
    archive = tmp_path / "a.zip"
    with zipfile.ZipFile(archive, "w") as file:
        entry = zipfile.ZipInfo(name)
        entry.external_attr = mode << 16
        file.writestr(entry, "/etc/passwd")
    with pytest.raises(InputError, match=message):
        unpack(archive, into)
    assert not (tmp_path / "out.txt").exists()


def test_bombs(tmp_path, into):
    zeros = bytes(2_000_000)
    tight = Limits(total=1 << 30, ratio=50, free=1_000_000)
    with zipfile.ZipFile(tmp_path / "a.zip", "w", zipfile.ZIP_DEFLATED) as file:
        file.writestr("zeros", zeros)
    (tmp_path / "a.tar.xz").write_bytes(lzma.compress(tar_of(plain("zeros", zeros))))
    (tmp_path / "zeros.gz").write_bytes(gzip.compress(zeros))
    for name in ("a.zip", "a.tar.xz", "zeros.gz"):
        with pytest.raises(InputError, match="more than 50 times its own"):
            unpack(tmp_path / name, into / name, tight)
    with pytest.raises(InputError, match="more than 1,000 bytes"):
        unpack(tmp_path / "a.zip", into / "total", Limits(total=1_000))
    (tmp_path / "many.tar").write_bytes(tar_of(plain("1"), plain("2"), plain("3")))
    with pytest.raises(InputError, match="more than 2 files"):
        unpack(tmp_path / "many.tar", into / "many", Limits(files=2))


@pytest.mark.parametrize("suffix", [".gz", ".bz2", ".xz", ".zst"])
def test_archives_that_are_cut(tmp_path, into, suffix):
    packed = PACKERS[suffix](tar_of(plain("x", os.urandom(100_000))))
    (tmp_path / f"a.tar{suffix}").write_bytes(packed[: len(packed) // 2])
    with pytest.raises(InputError, match="damaged or cut"):
        unpack(tmp_path / f"a.tar{suffix}", into)


def test_a_zip_that_is_cut(tmp_path, into):
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as file:
        file.writestr("x", os.urandom(10_000))
    content = (tmp_path / "a.zip").read_bytes()
    (tmp_path / "a.zip").write_bytes(content[:5_000])
    with pytest.raises(InputError, match="damaged or cut"):
        unpack(tmp_path / "a.zip", into)


def test_an_entry_twice(tmp_path, into):
    (tmp_path / "a.tar").write_bytes(tar_of(plain("x"), plain("x")))
    with pytest.raises(InputError, match="twice"):
        unpack(tmp_path / "a.tar", into)
