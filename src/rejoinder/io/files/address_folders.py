"""Folders that are written at an address. What is there without being whole can be told.

A store renames no folder. While one is written, a marker lies in it, which says whose it is, and
whether all else was written by runs that did not end. The file that makes the folder whole comes
last, and then the marker goes.
"""

import json
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

from rejoinder.errors import BusyError, InputError, RejoinderError
from rejoinder.io.files.addresses import Address
from rejoinder.io.files.places import for_each
from rejoinder.io.files.storage import process_description

MARKER = ".rejoinder-unfinished"
_RUNS: dict[Address, str] = {}
"""What this process writes: the run's own name by folder."""


def refuse_occupied(folder: Address, *, overwrite: bool = False) -> None:
    """Refuses an output whose content would be lost. What a killed run left may be replaced.

    Raises:
        InputError: `folder` is a file or a whole bucket, the store refuses, or there are files of
            others in it and `overwrite` is false.
    """
    if not folder.key:
        raise InputError(f"{folder} is a whole bucket; name a folder in it, such as {folder}pairs.")
    if folder.looked_up().kind == "file":
        raise InputError(f"{folder} is a file; a folder is written there. Name another folder.")
    if not overwrite and not _is_ours(folder):
        raise InputError(
            f"{folder} exists and is not empty; name another folder, or replace it with "
            "`overwrite=True`."
        )


@contextmanager
def new_folder_at(folder: Address, *, overwrite: bool = False) -> Iterator[None]:
    """Marks `folder` as unfinished while the block writes it.

    The block calls `clear` before it writes files into the folder, and `check_ours` before it
    writes the file that makes the folder whole. If it fails before `clear`, the folder is as it
    was; later, it is empty. If the process is killed, the next run takes its place.

    Raises:
        InputError: see `refuse_occupied`.
        BusyError: another command began to write there.
        StorageError: the store can't be written.
    """
    refuse_occupied(folder, overwrite=overwrite)
    run = _RUNS[folder] = uuid.uuid4().hex
    try:
        _mark(folder, run, ours=_is_ours(folder))
        yield
        (folder / MARKER).remove()
    except BaseException:
        with suppress(RejoinderError):  # the first error counts
            _abandon(folder, run)
        raise
    finally:
        del _RUNS[folder]


def clear(folder: Address, last: str) -> None:
    """Removes what was in a folder that this process writes, beginning with the file `last`."""
    check_ours(folder)
    (folder / last).remove()  # from here on, readers see that the folder is not complete
    for_each(Address.remove, _others(folder))
    _mark(folder, _RUNS[folder], ours=True)


def check_ours(folder: Address) -> None:
    """Checks that no other command has begun to write the folder.

    Raises:
        BusyError: one has.
    """
    marker = _marker(folder)
    if marker.get("run") != _RUNS[folder]:
        raise BusyError(
            f"another command ({marker.get('by', 'unknown')}) began to write {folder}; wait for "
            "it to end, or name another output."
        )


def _mark(folder: Address, run: str, *, ours: bool) -> None:
    tree = {"run": run, "by": process_description(), "all_is_of_unfinished_runs": ours}
    (folder / MARKER).put(json.dumps(tree).encode())


def _marker(folder: Address) -> dict[str, Any]:
    """Returns what the marker says; empty where there is none."""
    marker = folder / MARKER
    if not marker.exists():
        return {}
    with marker.open() as file:
        try:
            tree = json.loads(file.read())
        except ValueError:  # somebody else's file
            tree = None
    return tree if isinstance(tree, dict) else {}


def _is_ours(folder: Address) -> bool:
    """Returns whether the folder has only what runs left that did not end."""
    return not _others(folder) or bool(_marker(folder).get("all_is_of_unfinished_runs"))


def _others(folder: Address) -> list[Address]:
    """Returns what is in the folder except the marker."""
    return [entry for entry in folder.iterdir() if entry.name != MARKER]


def _abandon(folder: Address, run: str) -> None:
    marker = _marker(folder)
    if marker.get("run") != run:
        return
    (folder if marker["all_is_of_unfinished_runs"] else folder / MARKER).remove()
