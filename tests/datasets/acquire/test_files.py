"""Archives: whatever is packed well is unpacked, and what would do harm is refused."""

import bz2
import gzip
import io
import lzma
import os
import stat
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest
import zstandard

from rejoinder.datasets.acquire.files import unpack
from rejoinder.datasets.catalogue import read_bytes
from rejoinder.errors import InputError
from rejoinder.io.formats.compression import Limits, read_packed

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
        (special("link", tarfile.SYMTYPE, "/etc"), "a link"),
        (special("link", tarfile.LNKTYPE, "other"), "a link"),
        (special("null", tarfile.CHRTYPE), "a link"),
        (special("pipe", tarfile.FIFOTYPE), "a link"),
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
        ("link", stat.S_IFLNK | 0o777, "a link"),
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
        with pytest.raises(InputError, match="50 times"):
            unpack(tmp_path / name, into / name, tight)
    with pytest.raises(InputError, match=r"2,000,000 bytes.*1,000;"):
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
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as file:
        file.writestr("x", "1")
        file.writestr("./x", "2")
    with pytest.raises(InputError, match=r"a\.zip holds '\./x', .* twice"):
        unpack(tmp_path / "a.zip", into / "zip")
    (tmp_path / "b.tar").write_bytes(tar_of(plain("x"), plain("x/y")))
    with pytest.raises(InputError, match=r"'x/y', .* a file and a folder"):
        unpack(tmp_path / "b.tar", into / "b")


def test_a_zip_whose_directory_says_that_it_is_a_bomb_is_refused_unopened(tmp_path, into):
    with zipfile.ZipFile(tmp_path / "a.zip", "w", zipfile.ZIP_DEFLATED) as file:
        file.writestr("small", b"text")
        file.writestr("zeros", bytes(2_000_000))
    with pytest.raises(InputError, match=r"2,000,004 bytes.*1,000,000"):
        unpack(tmp_path / "a.zip", into, Limits(total=1_000_000))
    assert not any(into.iterdir())


def test_a_zip_whose_directory_lies_stops_at_the_size_it_states(tmp_path, into):
    with zipfile.ZipFile(tmp_path / "a.zip", "w", zipfile.ZIP_DEFLATED) as file:
        file.writestr("zeros", bytes(2_000_000))
    content = (tmp_path / "a.zip").read_bytes()
    (tmp_path / "a.zip").write_bytes(
        content.replace((2_000_000).to_bytes(4, "little"), (1_000).to_bytes(4, "little"))
    )
    with pytest.raises(InputError, match=r"CRC-32.*'zeros'"):
        unpack(tmp_path / "a.zip", into)
    assert (into / "zeros").stat().st_size <= 1_000


def test_a_tar_is_refused_by_a_header_before_its_bytes(tmp_path, into):
    entry = tarfile.TarInfo("huge")
    entry.size = 1 << 40
    (tmp_path / "a.tar").write_bytes(entry.tobuf() + bytes(1024))
    with pytest.raises(InputError, match=r"1,099,511,63\d,\d* bytes"):
        unpack(tmp_path / "a.tar", into)
    entry = tarfile.TarInfo("header")
    entry.type, entry.size = tarfile.XHDTYPE, 1 << 30
    (tmp_path / "a.tar").write_bytes(entry.tobuf() + bytes(1024))
    with pytest.raises(InputError, match="1,073,741,824"):
        unpack(tmp_path / "a.tar", into)
    (tmp_path / "a.tar").write_bytes(tar_of(special("holes", tarfile.GNUTYPE_SPARSE)))
    with pytest.raises(InputError, match="a sparse file"):
        unpack(tmp_path / "a.tar", into)
    assert not any(into.iterdir())


def test_a_stream_is_stopped_by_what_was_read_of_it_not_by_its_whole_size(tmp_path, into):
    """A large archive may hold much, but not all of it in its first bytes."""
    (tmp_path / "a.gz").write_bytes(gzip.compress(bytes(50_000_000)) + os.urandom(2_000_000))
    with pytest.raises(InputError, match=r"50 times its own \d\d?,\d{3}"):
        unpack(tmp_path / "a.gz", into, Limits(ratio=50, free=1_000_000))
    assert (into / "a").stat().st_size < 5_000_000


def test_names(tmp_path, into):
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as file:
        entry = zipfile.ZipInfo("x")
        entry.filename = ""
        file.writestr(entry, "text")
    with pytest.raises(InputError, match="holds '', which has no name"):
        unpack(tmp_path / "a.zip", into)
    memory = io.BytesIO()
    with tarfile.open(
        fileobj=memory, mode="w", format=tarfile.USTAR_FORMAT, encoding="latin-1"
    ) as file:
        file.addfile(tarfile.TarInfo("caf\xe9"))
    (tmp_path / "a.tar").write_bytes(memory.getvalue())
    assert unpack(tmp_path / "a.tar", into) == [into / "caf\ufffd"]
    with zipfile.ZipFile(tmp_path / "b.zip", "w") as file:
        file.writestr("x" * 300, "text")
    with pytest.raises(InputError, match=r"b\.zip .*File name too long"):
        unpack(tmp_path / "b.zip", into)


def test_an_encrypted_zip(tmp_path, into):
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as file:
        file.writestr("x", "text")
    content = bytearray((tmp_path / "a.zip").read_bytes())
    content[content.index(b"PK\x01\x02") + 8] |= 1
    (tmp_path / "a.zip").write_bytes(content)
    with pytest.raises(InputError, match="'x', which is encrypted"):
        unpack(tmp_path / "a.zip", into)


def test_a_full_disk_is_said(tmp_path):
    script = (
        "import resource, sys; from pathlib import Path\n"
        "from rejoinder.datasets.acquire.files import unpack\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))\n"
        "unpack(Path(sys.argv[1]), Path(sys.argv[2]))"
    )
    (tmp_path / "a.gz").write_bytes(gzip.compress(os.urandom(100_000)))
    said = subprocess.run(
        [sys.executable, "-c", script, tmp_path / "a.gz", tmp_path / "into"],
        capture_output=True, text=True, check=False,
    ).stderr  # fmt: skip
    assert "StorageError: " in said
    assert "a file would exceed the size limit" in said


@pytest.mark.parametrize("suffix", [".gz", ".bz2", ".xz", ".zst"])
def test_compressed_files_of_readers_are_metered_and_whole(tmp_path, suffix):
    path = tmp_path / f"a{suffix}"
    content = os.urandom(100_000)
    path.write_bytes(PACKERS[suffix](content) + PACKERS[suffix](b"more"))
    assert read_bytes(path) == content + b"more"
    path.write_bytes(PACKERS[suffix](content)[:-20])
    with pytest.raises(InputError, match="is damaged or cut"):
        read_bytes(path)
    path.write_bytes(PACKERS[suffix](bytes(3_000_000)))
    with pytest.raises(InputError, match="50 times"):
        read_packed(path, suffix, Limits(ratio=50, free=1_000_000))
