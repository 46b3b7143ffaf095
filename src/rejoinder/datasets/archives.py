"""Unpacking archives that strangers packed: nothing leaves its folder or grows without end."""

import bz2
import contextlib
import gzip
import io
import lzma
import re
import stat
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import IO, Protocol, cast

from rejoinder.errors import InputError, MissingExtraError

_PIECE = 1 << 20
_SUFFIXES = re.compile(r"\.(zip|tgz|tbz2?|txz|tar(\.\w+)?)$", re.IGNORECASE)
_PACKED = (".gz", ".bz2", ".xz", ".zst")
_TAR_MAGIC = (257, b"ustar")


@dataclass(frozen=True)
class Limits:
    """What an archive may grow to."""

    total: int = 8 << 30
    """Bytes of all its files together."""
    ratio: int = 200
    """Times its own size, beyond `free`: text packs to a tenth, a bomb to a thousandth."""
    free: int = 64 << 20
    """Bytes that any archive may have."""
    files: int = 100_000


LIMITS = Limits()


class _Reader(Protocol):
    def read(self, size: int = -1, /) -> bytes: ...


class _Meter:
    """Counts what comes out of one archive, and stops it in time."""

    def __init__(self, archive: Path, limits: Limits) -> None:
        self.archive, self.limits = archive, limits
        self.packed = archive.stat().st_size
        self.bytes = self.files = 0

    def add(self, count: int) -> None:
        self.bytes += count
        if self.bytes > self.limits.total:
            self._refuse(f"more than {self.limits.total:,} bytes")
        if self.bytes > max(self.limits.free, self.packed * self.limits.ratio):
            self._refuse(f"more than {self.limits.ratio} times its own {self.packed:,} bytes")

    def add_file(self) -> None:
        self.files += 1
        if self.files > self.limits.files:
            self._refuse(f"more than {self.limits.files:,} files")

    def _refuse(self, what: str) -> None:
        raise InputError(
            f"{self.archive} unpacks to {what}, which no data set here does; it is refused. Unpack "
            "it yourself if you trust it, and name the folder."
        )


class _Metered:
    """A stream whose bytes are counted: headers of an archive can be a bomb too."""

    def __init__(self, stream: _Reader, meter: _Meter) -> None:
        self.stream, self.meter = stream, meter

    def read(self, size: int = -1, /) -> bytes:
        data = self.stream.read(size)
        self.meter.add(len(data))
        return data


def is_archive(path: Path) -> bool:
    """Whether a file holds other files, or is itself compressed."""
    return bool(_SUFFIXES.search(path.name)) or path.suffix in _PACKED


def unpack(archive: Path, into: Path, limits: Limits = LIMITS) -> list[Path]:
    """Unpack a zip, a tar in any compression, or a single compressed file; other files are kept.

    Args:
        archive: what it is is seen by its content.
        into: an empty folder.
        limits: of size and number.

    Returns:
        The files: below `into`, or `archive` itself where it is a plain file.

    Raises:
        InputError: it is damaged, would write outside of `into`, holds links or devices, or grows
            beyond the limits.
        MissingExtraError: it is zstandard and the library is not installed.
    """
    try:
        with archive.open("rb") as file:
            head = file.read(512)
    except OSError as error:
        raise InputError(f"{archive} can't be read: {error.strerror}.") from None
    meter = _Meter(archive, limits)
    try:
        if head.startswith(b"PK\x03\x04"):
            return _unzip(archive, into, meter)
        opener = next((make for magic, make in _OPENERS if head.startswith(magic)), None)
        if opener is None and not _is_tar(head, archive.name):
            return [archive]
        with archive.open("rb") as file, opener(file) if opener else file as stream:
            return _unstream(archive, cast("_Reader", stream), into, meter)
    except _damages() as error:
        if isinstance(error, OSError) and error.strerror:  # of this machine, not of the archive
            raise InputError(f"{archive} can't be unpacked to {into}: {error.strerror}.") from None
        raise InputError(
            f"{archive} is damaged or cut: {str(error) or 'it ends too early'}. Fetch or copy it "
            "again."
        ) from None


def _zstd(file: IO[bytes]) -> IO[bytes]:
    try:
        import zstandard
    except ImportError:
        raise MissingExtraError("zstandard", "extract") from None
    reader = zstandard.ZstdDecompressor(max_window_size=2**31)
    return cast("IO[bytes]", reader.stream_reader(file, read_across_frames=True))


_OPENERS: tuple[tuple[bytes, Callable[[IO[bytes]], IO[bytes]]], ...] = (
    (b"\x1f\x8b", lambda file: cast("IO[bytes]", gzip.GzipFile(fileobj=file))),
    (b"BZh", lambda file: cast("IO[bytes]", bz2.BZ2File(file))),
    (b"\xfd7zXZ\x00", lambda file: cast("IO[bytes]", lzma.LZMAFile(file))),  # noqa: SIM115 -- closed by its user
    (b"\x28\xb5\x2f\xfd", _zstd),
)


def _damages() -> tuple[type[Exception], ...]:
    """The errors by which libraries say that an archive is damaged."""
    found: list[type[Exception]] = [
        tarfile.TarError, zipfile.BadZipFile, zlib.error, lzma.LZMAError, EOFError, OSError,
        NotImplementedError, ValueError,
    ]  # fmt: skip
    with contextlib.suppress(ImportError):
        import zstandard

        found.append(zstandard.ZstdError)
    return tuple(found)


def _is_tar(head: bytes, name: str) -> bool:
    start, magic = _TAR_MAGIC
    return head[start:].startswith(magic) or name.endswith(".tar")


def _unzip(archive: Path, into: Path, meter: _Meter) -> list[Path]:
    found = []
    with zipfile.ZipFile(archive) as file:
        for entry in file.infolist():
            if entry.is_dir():
                continue
            mode = entry.external_attr >> 16
            if stat.S_IFMT(mode) not in (0, stat.S_IFREG):
                _refuse_entry(archive, entry.filename, "is a link or a device")
            if entry.flag_bits & 1:
                _refuse_entry(archive, entry.filename, "is encrypted")
            place = _inside(archive, entry.filename, into)
            meter.add_file()
            with file.open(entry) as stream:
                _write(_Metered(cast("_Reader", stream), meter), place)
            found.append(place)
    return found


def _unstream(archive: Path, stream: _Reader, into: Path, meter: _Meter) -> list[Path]:
    """A tar, or else the one file that was compressed."""
    metered = _Metered(stream, meter)
    head = b""
    while len(head) < 512 and (piece := metered.read(512 - len(head))):
        head += piece
    whole = _Joined(head, metered)
    if not _is_tar(head, re.sub(r"\.\w+$", "", archive.name)):
        place = into / (archive.stem if archive.suffix in _PACKED else archive.name)
        _write(whole, place)
        return [place]
    found = []
    for entry, content in _entries(archive, whole):
        place = _inside(archive, entry, into)
        meter.add_file()
        _write(content, place)
        found.append(place)
    return found


def _entries(archive: Path, stream: "_Joined") -> Iterator[tuple[str, _Reader]]:
    with tarfile.open(fileobj=cast("IO[bytes]", stream), mode="r|") as file:
        for entry in file:
            if entry.isdir():
                _inside(archive, entry.name, Path())
                continue
            if not entry.isfile():
                _refuse_entry(archive, entry.name, "is a link or a device")
            content = file.extractfile(entry)
            if content is not None:
                yield entry.name, content


class _Joined:
    """A stream whose first bytes were read already."""

    def __init__(self, head: bytes, rest: _Reader) -> None:
        self.head, self.rest = io.BytesIO(head), rest

    def read(self, size: int = -1, /) -> bytes:
        return self.head.read(size) or self.rest.read(size)


def _inside(archive: Path, name: str, into: Path) -> Path:
    """Where an entry goes.

    Raises:
        InputError: its path is absolute or leaves the folder.
    """
    path = PurePosixPath(name.replace("\\", "/"))
    if path.is_absolute() or ":" in path.parts[:1] or re.match(r"[A-Za-z]:", name) or "\0" in name:
        _refuse_entry(archive, name, "has an absolute path")
    if ".." in path.parts:
        _refuse_entry(archive, name, "has a path that leaves the folder")
    return into / path


def _refuse_entry(archive: Path, name: str, why: str) -> None:
    raise InputError(
        f"{archive} holds {name!r}, which {why}; such an archive is refused. Get it from the "
        "official place, or unpack it yourself and name the folder."
    )


def _write(stream: _Reader, place: Path) -> None:
    if place.exists():
        raise ValueError(f"it holds {place.name} twice")
    place.parent.mkdir(parents=True, exist_ok=True)
    with place.open("xb") as file:
        while piece := stream.read(_PIECE):
            file.write(piece)
