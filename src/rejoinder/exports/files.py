"""Opens the files of an export: a file, a folder, a zip or a tar archive."""

import io
import json
import posixpath
import shutil
import sys
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Set
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import IO, Any, cast

from rejoinder.errors import InputError
from rejoinder.exports.databases import files_of
from rejoinder.io.files import storage
from rejoinder.io.formats.compression import (
    ARCHIVE_DAMAGES,
    OPENERS,
    Limits,
    Meter,
    Metered,
    compression,
    compression_of,
    damage_errors,
    decompressed,
    expanded,
    file_of,
    head_of,
    tar_of,
)
from rejoinder.io.formats.text_lines import BYTE_ORDER_MARK
from rejoinder.io.formats.texts import SQLITE

_HEAD = 1 << 16
_LARGEST = 1 << 28
_HEADS = 100
"""Most heads to cache: folders of mail have a file per mail."""
_TAR = (".tar", ".tar.gz", ".tar.bz2", ".tar.xz", ".tgz", ".tbz2", ".txz")
_ZIP = b"PK\x03\x04"
_Place = Path | tuple[zipfile.ZipFile, zipfile.ZipInfo] | Callable[[], Iterator[bytes]]


class Files:
    """Files by name: their sorted paths within the export.

    If a single folder contains everything, as in many archives, names leave it out.
    """

    def __init__(self, path: Path, places: Mapping[str, _Place], most: int | None = None) -> None:
        places = {name: place for name, place in places.items() if _is_shown(name)}
        top = _common_folder(list(places))
        self.path, self.top = path, top
        self.title = top.removesuffix("/") or _title(path)
        """Name of the folder left out, or else of the path, without suffixes."""
        self._places = {name.removeprefix(top): places[name] for name in sorted(places)}
        self._heads: dict[str, bytes] = {}
        self._left = most
        self.shapes: dict[str, Mapping[str, Set[str]]] = {}
        """Keys of JSON files, see `rows.shape`."""
        self.names = tuple(self._places)
        self.read = set[str]()
        """Names of the files whose content was opened, not only their heads."""

    def open(self, name: str) -> IO[bytes]:
        """Opens a file without its byte order mark; decompresses it if needed."""
        self.read.add(name)
        return self._open(name)

    def _open(self, name: str) -> IO[bytes]:
        place = self._places[name]
        if isinstance(place, Path):
            file = file_of(decompressed(place))
        elif callable(place):
            file = file_of(place())
        else:
            archive, member = place
            if member.flag_bits & 1:
                raise InputError(f"{self.path} has a password; unpack it and pass the folder.")
            file = io.BufferedReader(cast("io.RawIOBase", archive.open(member)), _HEAD)
            if suffix := compression_of(file.peek(8)[:8]):
                file = file_of(expanded(iter(partial(file.read, _HEAD), b""), suffix))
        if self._left is not None:
            file = file_of(self._counted(file))
        if file.peek(len(BYTE_ORDER_MARK)).startswith(BYTE_ORDER_MARK):
            file.read(len(BYTE_ORDER_MARK))
        return file

    def only(self, names: Iterable[str]) -> "Files":
        """Returns a view of some of the files, with the same names and `top`."""
        return Files(self.path, {name: self._places[name] for name in names}, self._left)

    def _counted(self, file: IO[bytes]) -> Iterator[bytes]:
        while piece := file.read(_HEAD):
            self._left = (self._left or 0) - len(piece)
            if self._left < 0:
                raise InputError(f"{self.path} has more bytes than the limit for reading it.")
            yield piece

    @property
    def size(self) -> int:
        """Total size of all files as stored, in bytes; files of a database count as 0."""
        places = self._places.values()
        alone = sum(place.stat().st_size for place in places if isinstance(place, Path))
        return alone + sum(place[1].compress_size for place in places if isinstance(place, tuple))

    def ending(self, suffix: str) -> list[str]:
        """Returns the names with a suffix; a single file may have no suffix, as from a pipe."""
        alone = len(self.names) == 1 and "." not in self.names[0]
        return [name for name in self.names if alone or name.lower().endswith(suffix)]

    def where(self, name: str) -> str:
        """Returns the name of a file for messages."""
        return str(self.path) if len(self.names) == 1 else f"{name} in {self.path}"

    def head(self, name: str) -> bytes:
        """Returns the first 64 KiB of a file."""
        if name not in self._heads:
            if len(self._heads) == _HEADS:
                self._heads.clear()
            with self._open(name) as file:
                self._heads[name] = file.read(_HEAD)
        return self._heads[name]

    @property
    def first(self) -> bytes:
        """The head of the only file; empty if there are several."""
        return self.head(self.names[0]) if len(self.names) == 1 else b""

    def json(self, name: str) -> Any:
        """Returns the tree of a JSON document.

        Raises:
            InputError: it is not JSON, or larger than 256 MiB.
        """
        with self.open(name) as file:
            content = file.read(_LARGEST + 1)
        if len(content) > _LARGEST:
            raise InputError(f"{self.where(name)} has more than 256 MiB, too much for its kind.")
        try:
            return json.loads(content.decode("utf-8-sig", "replace"), strict=False)
        except (ValueError, RecursionError) as error:
            raise InputError(f"{self.where(name)} is not JSON ({error}).") from None


@contextmanager
def opened(path: Path, most: int | None = None) -> Iterator[Files]:
    """Yields the files of an export, without hidden files and files that macOS adds.

    With `most`, at most that many bytes of content can be read, and tar archives are refused,
    because they would have to be unpacked.

    Raises:
        InputError: the path can't be read, is a damaged archive (even if this only shows when a
            file in it is read), or has more than `most` bytes.
    """
    with ExitStack() as stack:
        with _damage(path):
            files = _opened(path, stack, most)
        with _damage(path):
            yield files


def _opened(path: Path, stack: ExitStack, most: int | None) -> Files:
    if path.is_dir():
        return Files(path, _in_folder(path), most)
    if storage.is_database(path) or head_of(path, len(SQLITE)) == SQLITE:
        return Files(path, files_of(path), most)
    if zipfile.is_zipfile(path):
        archive = stack.enter_context(zipfile.ZipFile(path))
        members = [member for member in archive.infolist() if not member.is_dir()]
        return Files(path, {one.filename: (archive, one) for one in members}, most)
    with path.open("rb") as file:
        if file.read(len(_ZIP)) == _ZIP:
            raise zipfile.BadZipFile("the list of files at the end of the zip is missing")
    if most is None and _is_tar(path):
        return Files(path, _unpacked(path, stack.enter_context(storage.scratch_folder())))
    return Files(path, {path.name: path}, most)


def _is_tar(path: Path) -> bool:
    if path.name.endswith(_TAR):
        return True
    try:
        tarfile.TarInfo.frombuf(head_of(path, tarfile.BLOCKSIZE), "utf-8", "replace")
    except tarfile.HeaderError:
        return False
    return True


def _unpacked(path: Path, folder: Path) -> dict[str, _Place]:
    """Unpacks the files of a tar archive to numbered files in `folder`.

    In a compressed archive, finding a file means reading from the start. Names and links in the
    archive are never created on disk.
    """
    limits = Limits(total=shutil.disk_usage(folder).free, files=sys.maxsize)
    meter, suffix = Meter(path, limits), compression(path)
    places: dict[str, _Place] = {}
    links: dict[str, str] = {}
    copies = set()
    with (
        storage.storage_errors(folder),
        damage_errors(path, "unpacked", *ARCHIVE_DAMAGES),
        path.open("rb") as file,
        tar_of(
            Metered(OPENERS[suffix](file) if suffix else file, meter, file), "surrogateescape"
        ) as tar,
    ):
        for number, entry in enumerate(tar):
            name = posixpath.normpath("/" + entry.name.lstrip("/"))[1:]
            places.pop(name, None)
            links.pop(name, None)
            if entry.issym():
                links[name] = posixpath.join(posixpath.dirname(name), entry.linkname)
            elif entry.islnk():
                links[name] = entry.linkname
                copies.add(name)
            elif content := tar.extractfile(entry) if entry.isfile() else None:
                meter.announce(entry.size)
                if entry.issparse():  # holes are not in the stream
                    meter.add(entry.size)
                places[name] = place = folder / str(number)
                with place.open("wb") as out:
                    shutil.copyfileobj(content, out)
    _follow(path, {name: posixpath.normpath(link) for name, link in links.items()}, places)
    if missing := copies & links.keys() - places.keys():
        raise InputError(f"{path} is damaged: {min(missing)} links to a file that is missing.")
    return places


def _follow(path: Path, links: dict[str, str], places: dict[str, _Place]) -> None:
    """Adds the places of links in an archive; warns of links that lead out of it."""
    left_out = []
    for name in links:
        target, passed = links[name], {name}
        while target in links and target not in passed:
            passed.add(target)
            target = links[target]
        links |= dict.fromkeys(passed, target)  # long chains are followed once
        if target in places:
            places[name] = places[target]
        elif target.split("/")[0] in ("", "..") and _is_shown(name):
            left_out.append(name)
    storage.warn_of_links(path, left_out)


@contextmanager
def _damage(path: Path) -> Iterator[None]:
    """Converts errors of the standard library for damaged archives to `InputError`."""
    with storage.read_errors(path):
        try:
            yield
        except (tarfile.TarError, zipfile.BadZipFile, zlib.error, EOFError) as error:
            raise InputError(f"{path} is a damaged archive: {error}.") from None


def _in_folder(folder: Path) -> dict[str, _Place]:
    shown = (one for one in folder.rglob("*") if _is_shown(one.relative_to(folder).as_posix()))
    paths = storage.inside(shown, folder)
    return {path.relative_to(folder).as_posix(): path for path in paths if path.is_file()}


def _title(path: Path) -> str:
    if path.is_dir():
        return path.name
    suffix = next((one for one in _TAR if path.name.endswith(one)), path.suffix)
    return path.name.removesuffix(suffix)


def _is_shown(name: str) -> bool:
    *folders, file = name.split("/")
    if folders[-1:] in (["cur"], ["new"]):  # folders of a Maildir are hidden
        folders = folders[:-2]
    return not any(part.startswith(".") or part == "__MACOSX" for part in [*folders, file])


def _common_folder(names: list[str]) -> str:
    """Returns the folder that contains all names, with its slash; empty if none does.

    >>> _common_folder(["team/users.json", "team/general/2024-01-01.json"])
    'team/'
    """
    folders = {name.partition("/")[0] for name in names}
    if len(folders) != 1 or not all("/" in name for name in names):
        return ""
    return f"{folders.pop()}/"
