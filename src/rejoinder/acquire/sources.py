"""What a user hands over, as files: archives unpacked, folders walked through."""

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NoReturn

from rejoinder.acquire.archives import is_archive, unpack
from rejoinder.acquire.conversions import COCO_NAMES
from rejoinder.datasets.catalogue import DataSet
from rejoinder.errors import InputError

_PACKED = (".gz", ".bz2", ".xz", ".zst")


def check_sources(sources: Sequence[Path]) -> None:
    """Refuse what is neither a file nor a folder.

    Raises:
        InputError: it is not there, or is a device or a pipe.
    """
    for source in sources:
        if not os.path.lexists(source):
            raise InputError(f"{source} is not there; name an archive, a file or a folder.")
        if not source.is_file() and not source.is_dir():
            raise InputError(
                f"{source} is neither a file nor a folder; name an archive, a file or a folder."
            )


def gathered(sources: Sequence[Path], datasets: Sequence[DataSet], into: Path) -> list[Path]:
    """All files of the sources; archives are unpacked below `into`.

    Raises:
        InputError: an archive is refused or damaged, or a folder can't be read.
        StorageError: the disk is full.
    """
    names = _names(datasets)
    files: list[Path] = []
    archives = 0
    for source in sources:
        for path in walk(source):
            if path != source and not _of_interest(path, names):
                continue
            if path == source or is_archive(path):
                archives += 1
                files += unpack(path, into / str(archives))
            else:
                files.append(path)
    return files


def walk(source: Path) -> Iterator[Path]:
    """A file, or all plain files of a folder; hidden folders and those of desktops are left out.

    Raises:
        InputError: a folder can't be read.
    """
    if not source.is_dir():
        yield source
        return
    for folder, folders, names in os.walk(source, onerror=_unreadable):
        folders[:] = sorted(name for name in folders if not name.startswith((".", "__MACOSX")))
        paths = (Path(folder) / name for name in sorted(names))
        yield from (path for path in paths if path.is_file())


def _unreadable(error: OSError) -> NoReturn:
    raise InputError(f"{error.filename} can't be read: {error.strerror}.") from None


def _of_interest(path: Path, names: frozenset[str]) -> bool:
    """Whether a file of a folder is opened: a compressed one only if its name says so."""
    if path.suffix not in _PACKED or ".tar" in path.name:
        return True
    return path.stem in names


def _names(datasets: Sequence[DataSet]) -> frozenset[str]:
    own = {
        name
        for dataset in datasets
        for file in dataset.files
        for name in (file.name, *file.names, *dataset.extras)
    }
    return frozenset(own | COCO_NAMES)
