"""Checks an output before anything is written: which place it is, and what would be lost there."""

import errno
import os
import stat
from collections.abc import Iterable
from pathlib import Path

from rejoinder.errors import InputError, StorageError
from rejoinder.io.files.addresses import Address
from rejoinder.io.files.storage import creation_errors, refused


def resolved(path: Path) -> Path:
    """Returns the place that an output path leads to: links are followed, also the last one.

    All paths to one place give the same result, so they share a lock. Devices keep their path:
    `/dev/stdout` may lead to a pipe, which has none.

    Raises:
        StorageError: it is the root folder, links lead back to themselves, or there is no current
            folder.
    """
    with creation_errors(path):
        if is_device(path):
            return Path(os.path.abspath(path))  # noqa: PTH100 -- resolve() would follow the link
        real = Path(os.path.realpath(path))
        if real.is_symlink():
            raise refused(path, OSError(errno.ELOOP, ""))
    if not real.name:
        raise StorageError(f"{path} can't be written: it is the root folder. Name another output.")
    return real


def is_device(path: Path) -> bool:
    """Returns whether `path` exists and is neither a file nor a folder, such as a pipe."""
    try:
        mode = path.stat().st_mode
    except OSError:  # missing, or an error that the claim will report
        return False
    return not stat.S_ISREG(mode) and not stat.S_ISDIR(mode)


def refuse_occupied(path: Path, *, overwrite: bool = False) -> None:
    """Refuses an output folder whose content would be lost.

    Raises:
        InputError: `path` is a file, holds the current folder, or is a non-empty folder and
            `overwrite` is false.
    """
    with creation_errors(path):
        is_file = path.is_file()
        occupied = path.is_dir() and not overwrite and any(path.iterdir())
    if is_file:
        raise InputError(f"{path} is a file; a folder is written there. Name another folder.")
    if occupied:
        raise InputError(
            f"{path} exists and is not empty; name another folder, or replace it with "
            "`overwrite=True`."
        )
    real, here = resolved(path), Path(os.path.realpath("."))
    if real == here or real in here.parents:
        raise InputError(
            f"{path} is the current folder or holds it, and would be replaced; name a folder in it."
        )


def refuse_inputs(out: Path | Address, inputs: Iterable[object]) -> None:
    """Refuses an output that would replace what the same command reads, by whatever links.

    Inputs that are neither paths nor addresses, such as names of models, are passed over.

    Raises:
        InputError: an input is the output or lies in it, or the output exists in an input folder.
    """
    place = out if isinstance(out, Address) else resolved(out)
    for given in inputs:
        if isinstance(place, Address):
            lost = isinstance(given, Address) and (given == place or given.is_in(place))
        else:
            lost = isinstance(given, str | Path) and given != "" and _would_lose(place, given)
        if lost:
            raise InputError(
                f"{given} is read, and writing {out} would replace it, all or part; name another "
                "output."
            )


def _would_lose(place: Path, given: str | Path) -> bool:
    try:
        real = Path(os.path.realpath(given))
        # a link in the output is lost, even if what it leads to stays
        named = Path(os.path.realpath(Path(given).parent)) / Path(given).name
        if not real.exists():
            return False
        if place.is_dir() and not any(place.iterdir()):
            return real == place
    except (OSError, ValueError):  # no path at all, such as the address of a model
        return False
    lies_in = real == place or place in (*real.parents, *named.parents)
    return lies_in or (place.exists() and real in place.parents)
