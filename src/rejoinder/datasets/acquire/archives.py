"""Unpacks untrusted archives: no file leaves the folder, and sizes are limited."""

import io
import re
import stat
import zipfile
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import Any, NoReturn, cast

from rejoinder.errors import InputError
from rejoinder.io.files.storage import read_errors, storage_errors
from rejoinder.io.formats.bounded import (
    ARCHIVE_DAMAGES,
    LIMITS,
    OPENERS,
    Limits,
    Meter,
    Metered,
    Reader,
    damage_errors,
    tar_of,
)
from rejoinder.io.formats.compression import compression_of

_PIECE_BYTES = 1 << 20
_SUFFIXES = re.compile(r"\.(zip|tgz|tbz2?|txz|tar(\.\w+)?)$", re.IGNORECASE)


def is_archive(path: Path) -> bool:
    """Returns whether a file has the name of an archive or of a compressed file."""
    return bool(_SUFFIXES.search(path.name)) or path.suffix in OPENERS


def unpack(archive: Path, into: Path, limits: Limits = LIMITS) -> list[Path]:
    """Unpacks a zip, a tar in any compression, or a single compressed file into an empty folder.

    The content of the file decides, not its name. Archives inside the archive are not opened.
    Archives that are damaged, encrypted or too large, that hold links or devices, or that would
    write outside `into` are refused, if possible before anything is unpacked.

    Returns the paths of the files below `into`, or `archive` itself if it is a plain file.
    """
    with read_errors(archive):
        with archive.open("rb") as file:
            head = file.read(512)
        meter = Meter(archive, limits)
    suffix, paths = compression_of(head), []
    with damage_errors(archive, f"unpacked to {into}", *ARCHIVE_DAMAGES), storage_errors(into):
        if head.startswith(b"PK\x03\x04"):
            entries = _zip_entries(archive, meter)
        elif suffix is not None or _is_tar(head, archive.name):
            entries = _stream_entries(archive, suffix, meter)
        else:
            return [archive]
        for name, content in entries:
            path = _path_inside(archive, name, into)
            if content is not None:
                _write(content, path, archive, name)
                paths.append(path)
    return paths


def _is_tar(head: bytes, name: str) -> bool:
    return head[257:].startswith(b"ustar") or name.endswith(".tar")


def _zip_entries(archive: Path, meter: Meter) -> Iterator[tuple[str, Reader | None]]:
    """Yields the name and the content of each entry. The content of a folder is None."""
    with zipfile.ZipFile(archive) as file:
        meter.announce(sum(entry.file_size for entry in file.infolist()))
        for entry in file.infolist():
            meter.add_entry()
            if entry.filename.endswith("/"):
                yield entry.filename, None
                continue
            if stat.S_IFMT(entry.external_attr >> 16) not in (0, stat.S_IFREG):
                _refuse_entry(archive, entry.filename, "is a link or a device")
            if entry.flag_bits & 1:
                _refuse_entry(archive, entry.filename, "is encrypted")
            # a stream ends at the size that the directory states, and its CRC is checked there
            with file.open(entry) as stream:
                yield entry.filename, Metered(cast("Reader", stream), meter)


def _stream_entries(
    archive: Path, suffix: str | None, meter: Meter
) -> Iterator[tuple[str, Reader | None]]:
    """Yields the same of a tar, or else the single file that was compressed."""
    with archive.open("rb") as file:
        stream = Metered(OPENERS[suffix](file) if suffix else cast("Reader", file), meter, file)
        head = b""
        while len(head) < 512 and (piece := stream.read(512 - len(head))):
            head += piece
        whole = _Joined(head, stream)
        if not _is_tar(head, re.sub(r"\.\w+$", "", archive.name)):
            yield archive.stem if archive.suffix in OPENERS else archive.name, whole
            return
        with tar_of(whole, "replace") as tar:
            for entry in tar:
                meter.add_entry()
                # the holes of a sparse file are not in the stream, so they would not be counted
                if not (entry.isdir() or entry.isfile()) or entry.issparse():
                    _refuse_entry(archive, entry.name, "is a link, a device or a sparse file")
                meter.announce(entry.size)
                content: Any = tar.extractfile(entry)  # None for a folder
                yield entry.name, content


class _Joined:
    """A stream whose first bytes have been read already."""

    def __init__(self, head: bytes, rest: Reader) -> None:
        self.head, self.rest = io.BytesIO(head), rest

    def read(self, size: int = -1, /) -> bytes:
        return self.head.read(size) or self.rest.read(size)


def _path_inside(archive: Path, name: str, into: Path) -> Path:
    """Returns the path of an entry below `into`. Absolute paths and `..` are refused."""
    path = PurePosixPath(name.replace("\\", "/"))
    if path.is_absolute() or ":" in path.parts[:1] or re.match(r"[A-Za-z]:", name) or "\0" in name:
        _refuse_entry(archive, name, "has an absolute path")
    if ".." in path.parts:
        _refuse_entry(archive, name, "has a path that leaves the folder")
    if not path.parts and not name.endswith(("/", ".")):
        _refuse_entry(archive, name, "has no name")
    return into / path


def _refuse_entry(archive: Path, name: str, reason: str) -> NoReturn:
    shown = name if len(name) <= 100 else f"{name[:100]}…"
    raise InputError(
        f"{archive} holds {shown!r}, which {reason}. Get the archive from the official "
        "place, or unpack it yourself and name the folder."
    )


def _write(stream: Reader, path: Path, archive: Path, name: str) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        file = path.open("xb")
    except (FileExistsError, NotADirectoryError, IsADirectoryError):
        _refuse_entry(archive, name, "occurs twice, or is a file and a folder")
    with file:
        while piece := stream.read(_PIECE_BYTES):
            file.write(piece)
