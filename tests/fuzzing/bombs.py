"""Compressed files that are small and hold much: read in bounded memory, or refused."""

import bz2
import gzip
import io
import lzma
import resource
import shutil
import tarfile
import zipfile
from collections.abc import Callable
from functools import cache
from itertools import product
from pathlib import Path
from random import Random

import zstandard

from rejoinder.datasets.acquire.files import unpack
from rejoinder.datasets.catalogue import read_bytes
from rejoinder.datasets.leaks import read_rows
from rejoinder.errors import RejoinderError
from rejoinder.io.formats.text_lines import file_lines

PACKERS = {
    ".gz": gzip.compress, ".bz2": bz2.compress, ".xz": lzma.compress, ".zst": zstandard.compress,
}  # fmt: skip
PIECE = 1 << 20
"""Bytes of a member of a compressed file, which has up to 1,024 of them: 1 GB."""
STREAMED = 4
"""Members at most where all lines are read, which no limit forbids."""
UNITS = (b"\0", b"a", b"a\n", b"A man is playing.\tA man plays.\n", b'{"text": "a"}\n')
MOST_MEMORY = 640 << 20
"""Bytes by which this process may grow. Files may unpack to 200 times their size: 200 MB here."""


def checker(folder: Path) -> Callable[[Random], bool]:
    """The check of this area: one compressed file or archive."""
    before = _memory()

    def check(random: Random) -> bool:
        shutil.rmtree(folder / "work", ignore_errors=True)
        (folder / "work").mkdir(parents=True)
        suffix, unit = random.choice([*product(PACKERS, UNITS)])
        read = random.choice([_read, _unpack, _unpack_archive, _lines, _rows])
        members = int(4 ** random.uniform(0, 5))
        if read in (_lines, _rows) and b"\n" in unit:
            members = min(members, STREAMED)
        path = folder / "work" / f"bomb{suffix}"
        path.write_bytes(packed(suffix, unit) * members)
        whole = members * (PIECE // len(unit)) * len(unit)
        try:
            read(path, unit, whole)
        except RejoinderError:
            return False
        finally:
            assert _memory() - before < MOST_MEMORY, "too much memory"
        return True

    return check


@cache
def packed(suffix: str, unit: bytes) -> bytes:
    """Returns a member: a piece of repeated bytes, compressed."""
    return PACKERS[suffix](unit * (PIECE // len(unit)))


def _memory() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10


def _read(path: Path, _unit: bytes, whole: int) -> None:
    assert len(read_bytes(path)) == whole


def _unpack(path: Path, _unit: bytes, whole: int) -> None:
    [file] = unpack(path, path.with_name("into"))
    assert file.stat().st_size == whole


def _unpack_archive(path: Path, unit: bytes, whole: int) -> None:
    """Unpacks an archive of several files, one of which is the compressed file."""
    many = path.with_name("archive")
    if len(unit) > 1:
        with zipfile.ZipFile(many, "w") as archive:
            archive.writestr("small", "text")
            archive.write(path, path.name)
    else:
        content = unit * min(whole, PIECE)
        entry = tarfile.TarInfo("zeros")
        entry.size = len(content)
        memory = io.BytesIO()
        with tarfile.open(fileobj=memory, mode="w") as archive:
            for number in range(min(whole // PIECE, 64)):
                entry.name = str(number)
                archive.addfile(entry, io.BytesIO(content))
        many.write_bytes(PACKERS[path.suffix](memory.getvalue()))
    assert unpack(many, path.with_name("into"))


def _lines(path: Path, unit: bytes, whole: int) -> None:
    expected = whole // len(unit) if b"\n" in unit else 1
    assert sum(1 for _ in file_lines(path)) == expected


def _rows(path: Path, unit: bytes, whole: int) -> None:
    expected = whole // len(unit) if b"\n" in unit else 1
    assert sum(map(len, read_rows(path))) == expected
