"""Turns the sources that a user names into files: unpacks archives and walks through folders."""

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NoReturn

from rejoinder.datasets.acquire.archives import is_archive, unpack
from rejoinder.datasets.acquire.conversions import COCO_NAMES
from rejoinder.datasets.catalogue import DataSet
from rejoinder.errors import InputError
from rejoinder.io.formats.bounded import OPENERS


def check_sources(sources: Sequence[Path]) -> None:
    """Refuses sources that are neither files nor folders."""
    for source in sources:
        if not os.path.lexists(source):
            raise InputError(f"{source} is not there; name an archive, a file or a folder.")
        if not source.is_file() and not source.is_dir():
            raise InputError(
                f"{source} is neither a file nor a folder; name an archive, a file or a folder."
            )


def gather(sources: Sequence[Path], datasets: Sequence[DataSet], into: Path) -> list[Path]:
    """Returns all files of files, archives and folders. Archives are unpacked below `into`.

    A compressed file in a folder is used only if its name is that of a file of the data sets.
    """
    names = set(COCO_NAMES)
    for dataset in datasets:
        names.update(dataset.extras)
        names.update(name for file in dataset.files for name in (file.name, *file.names))
    files: list[Path] = []
    archives = 0
    for source in sources:
        for path in walk(source):
            is_packed = path.suffix in OPENERS and ".tar" not in path.name
            if path != source and is_packed and path.stem not in names:
                continue
            if path == source or is_archive(path):
                archives += 1
                files += unpack(path, into / str(archives))
            else:
                files.append(path)
    return files


def walk(source: Path) -> Iterator[Path]:
    """Yields a file, or all files of a folder without hidden folders and those of desktops."""
    if not source.is_dir():
        yield source
        return
    for folder, folders, names in os.walk(source, onerror=_unreadable):
        folders[:] = sorted(name for name in folders if not name.startswith((".", "__MACOSX")))
        paths = (Path(folder) / name for name in sorted(names))
        yield from (path for path in paths if path.is_file())


def _unreadable(error: OSError) -> NoReturn:
    raise InputError(f"{error.filename} can't be read: {error.strerror}.") from None
