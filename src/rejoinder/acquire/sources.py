"""Turns the sources that a user names into files: unpacks archives and walks through folders."""

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NoReturn

from rejoinder.acquire.archives import is_archive, unpack
from rejoinder.acquire.conversions import COCO_NAMES
from rejoinder.datasets.catalogue import DataSet
from rejoinder.errors import InputError

_COMPRESSED = (".gz", ".bz2", ".xz", ".zst")


def check_sources(sources: Sequence[Path]) -> None:
    """Refuses sources that are neither files nor folders.

    Raises:
        InputError: a source does not exist, or is a device or a pipe.
    """
    for source in sources:
        if not os.path.lexists(source):
            raise InputError(f"{source} is not there; name an archive, a file or a folder.")
        if not source.is_file() and not source.is_dir():
            raise InputError(
                f"{source} is neither a file nor a folder; name an archive, a file or a folder."
            )


def gather(sources: Sequence[Path], datasets: Sequence[DataSet], into: Path) -> list[Path]:
    """Returns all files of the sources. Archives are unpacked below `into`.

    Args:
        sources: files, archives and folders.
        datasets: the data sets. A compressed file in a folder is opened if its name is theirs.
        into: an empty folder, or one that does not exist yet.

    Raises:
        InputError: an archive is refused or damaged, or a folder can't be read.
        StorageError: the disk is full.
    """
    names = _names(datasets)
    files: list[Path] = []
    archives = 0
    for source in sources:
        for path in walk(source):
            if path != source and not _is_wanted(path, names):
                continue
            if path == source or is_archive(path):
                archives += 1
                files += unpack(path, into / str(archives))
            else:
                files.append(path)
    return files


def walk(source: Path) -> Iterator[Path]:
    """Yields a file, or all files of a folder without hidden folders and those of desktops.

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


def _is_wanted(path: Path, names: frozenset[str]) -> bool:
    """Returns whether to use a file of a folder: a compressed one only if its name is known."""
    if path.suffix not in _COMPRESSED or ".tar" in path.name:
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
