"""Unpacking archives that strangers packed: nothing leaves its folder or grows without end."""

import io
import re
import stat
import struct
import tarfile
import zipfile
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import IO, Any, NoReturn, Self, cast

from rejoinder.errors import InputError
from rejoinder.files.storage import storage_errors
from rejoinder.formats.bounded import LIMITS, OPENERS, Limits, Meter, Metered, Reader, damages
from rejoinder.formats.compression import compression_of

_PIECE = 1 << 20
_SUFFIXES = re.compile(r"\.(zip|tgz|tbz2?|txz|tar(\.\w+)?)$", re.IGNORECASE)
_TAR_MAGIC = (257, b"ustar")
_LONGEST_HEADER = 1 << 20
"""Bytes of a tar's header that holds a long name or other facts; tarfile reads it at once."""
_HEADERS = (
    tarfile.XHDTYPE, tarfile.XGLTYPE, tarfile.SOLARIS_XHDTYPE, tarfile.GNUTYPE_LONGNAME,
    tarfile.GNUTYPE_LONGLINK,
)  # fmt: skip


def is_archive(path: Path) -> bool:
    """Whether a file holds other files, or is itself compressed."""
    return bool(_SUFFIXES.search(path.name)) or path.suffix in OPENERS


def unpack(archive: Path, into: Path, limits: Limits = LIMITS) -> list[Path]:
    """Unpack a zip, a tar in any compression, or a single compressed file; other files are kept.

    Archives within an archive are not opened.

    Args:
        archive: what it is is seen by its content.
        into: an empty folder.
        limits: of size and number.

    Returns:
        The files: below `into`, or `archive` itself where it is a plain file.

    Raises:
        InputError: it is damaged, would write outside of `into`, holds links or devices, is
            encrypted, or grows beyond the limits: sizes that a zip or a tar states are added up
            before they are unpacked.
        MissingExtraError: it is zstandard and the library is not installed.
        StorageError: the disk is full.
    """
    try:
        with archive.open("rb") as file:
            head = file.read(512)
        meter = Meter(archive, limits)
    except OSError as error:
        raise InputError(f"{archive} can't be read: {error.strerror}.") from None
    try:
        with storage_errors(into):
            return _unpack(archive, head, into, meter)
    except _failures() as error:
        if isinstance(error, OSError) and error.strerror:  # of this machine, not of the archive
            raise InputError(f"{archive} can't be unpacked to {into}: {error.strerror}.") from None
        raise InputError(
            f"{archive} is damaged or cut: {str(error) or 'it ends too early'}. Fetch or copy it "
            "again."
        ) from None


def _failures() -> tuple[type[Exception], ...]:
    """How zipfile, tarfile and decompression fail on bytes that are no archive."""
    return (
        *damages(), tarfile.TarError, zipfile.BadZipFile, NotImplementedError, struct.error,
        RuntimeError, IndexError, KeyError, TypeError, OverflowError,
    )  # fmt: skip


def _unpack(archive: Path, head: bytes, into: Path, meter: Meter) -> list[Path]:
    if head.startswith(b"PK\x03\x04"):
        return _unzip(archive, into, meter)
    suffix = compression_of(head)
    if suffix is None and not _is_tar(head, archive.name):
        return [archive]
    with archive.open("rb") as file:
        stream = OPENERS[suffix](file) if suffix else cast("Reader", file)
        return _unstream(archive, Metered(stream, meter, file), into, meter)


def _is_tar(head: bytes, name: str) -> bool:
    start, magic = _TAR_MAGIC
    return head[start:].startswith(magic) or name.endswith(".tar")


def _unzip(archive: Path, into: Path, meter: Meter) -> list[Path]:
    found = []
    with zipfile.ZipFile(archive) as file:
        entries = file.infolist()
        places = _zip_places(archive, entries, into, meter)
        meter.announce(sum(entry.file_size for entry, _ in places))
        for entry, place in places:
            # a stream ends at the size that the directory states, and its CRC is checked there
            with file.open(entry) as stream:
                _write(Metered(cast("Reader", stream), meter), place, archive, entry.filename)
            found.append(place)
    return found


def _zip_places(
    archive: Path, entries: list[zipfile.ZipInfo], into: Path, meter: Meter
) -> list[tuple[zipfile.ZipInfo, Path]]:
    """Files with where they go; all are checked before one is written."""
    places: dict[Path, zipfile.ZipInfo] = {}
    for entry in entries:
        meter.add_entry()
        place = _inside(archive, entry.filename, into)
        if entry.filename.endswith("/"):
            continue
        mode = entry.external_attr >> 16
        if stat.S_IFMT(mode) not in (0, stat.S_IFREG):
            _refuse_entry(archive, entry.filename, "is a link or a device")
        if entry.flag_bits & 1:
            _refuse_entry(archive, entry.filename, "is encrypted")
        if place in places:
            _refuse_entry(archive, entry.filename, "is in it twice")
        places[place] = entry
    return [(entry, place) for place, entry in places.items()]


def _unstream(archive: Path, stream: Reader, into: Path, meter: Meter) -> list[Path]:
    """A tar, or else the one file that was compressed."""
    head = b""
    while len(head) < 512 and (piece := stream.read(512 - len(head))):
        head += piece
    whole = _Joined(head, stream)
    if not _is_tar(head, re.sub(r"\.\w+$", "", archive.name)):
        name = archive.stem if archive.suffix in OPENERS else archive.name
        _write(whole, into / name, archive, name)
        return [into / name]
    found = []
    for name, content in _entries(archive, whole, meter):
        place = _inside(archive, name, into)
        _write(content, place, archive, name)
        found.append(place)
    return found


class _Entry(tarfile.TarInfo):
    """A header of a tar; long ones are refused before they are read into memory."""

    @classmethod
    def frombuf(cls, buf: bytes | bytearray, encoding: str, errors: str) -> Self:
        """The header in a block of 512 bytes."""
        entry = super().frombuf(buf, encoding, errors)
        if entry.type in _HEADERS and entry.size > _LONGEST_HEADER:
            raise ValueError(f"a header of {entry.size:,} bytes")
        return entry


def _entries(archive: Path, stream: "_Joined", meter: Meter) -> Iterator[tuple[str, Reader]]:
    whole = cast("IO[bytes]", stream)
    with tarfile.open(fileobj=whole, mode="r|", tarinfo=_Entry) as file:
        for entry in file:
            meter.add_entry()
            name = _readable(entry.name)
            if entry.isdir():
                _inside(archive, name, Path())
                continue
            if not entry.isfile():
                _refuse_entry(archive, name, "is a link or a device")
            if entry.issparse():  # its holes are in no stream, and so are not counted
                _refuse_entry(archive, name, "is a sparse file")
            meter.announce(entry.size)
            content: Any = file.extractfile(entry)
            yield name, content


def _readable(name: str) -> str:
    """A name that a tar holds in another encoding, as Latin-1: any bytes are that."""
    try:
        name.encode("utf-8")
    except UnicodeEncodeError:
        return name.encode("utf-8", "surrogateescape").decode("latin-1")
    return name


class _Joined:
    """A stream whose first bytes were read already."""

    def __init__(self, head: bytes, rest: Reader) -> None:
        self.head, self.rest = io.BytesIO(head), rest

    def read(self, size: int = -1, /) -> bytes:
        return self.head.read(size) or self.rest.read(size)


def _inside(archive: Path, name: str, into: Path) -> Path:
    """Where an entry goes.

    Raises:
        InputError: it has no name, or its path is absolute or leaves the folder.
    """
    path = PurePosixPath(name.replace("\\", "/"))
    if path.is_absolute() or ":" in path.parts[:1] or re.match(r"[A-Za-z]:", name) or "\0" in name:
        _refuse_entry(archive, name, "has an absolute path")
    if ".." in path.parts:
        _refuse_entry(archive, name, "has a path that leaves the folder")
    if not path.parts and not name.endswith(("/", ".")):
        _refuse_entry(archive, name, "is an entry without a name")
    return into / path


def _refuse_entry(archive: Path, name: str, why: str) -> NoReturn:
    shown = name if len(name) <= 100 else f"{name[:100]}…"
    raise InputError(
        f"{archive} holds {shown!r}, which {why}; such an archive is refused. Get it from the "
        "official place, or unpack it yourself and name the folder."
    )


def _write(stream: Reader, place: Path, archive: Path, name: str) -> None:
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        file = place.open("xb")
    except (FileExistsError, NotADirectoryError, IsADirectoryError):
        _refuse_entry(archive, name, "is in it twice, or is a file and a folder")
    with file:
        while piece := stream.read(_PIECE):
            file.write(piece)
