"""Writes files and folders that appear whole or not at all.

They are written next to the target and then renamed.
"""

import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from rejoinder.io.files.claims import claim_output, part_of, swap_in
from rejoinder.io.files.outputs import is_device, resolved
from rejoinder.io.files.storage import creation_errors, storage_errors


@contextmanager
def new_folder(
    path: Path, *, overwrite: bool = False, inputs: Iterable[object] = ()
) -> Iterator[Path]:
    """Yields a temporary folder next to `path` and renames it to `path` when the block succeeds.

    If the block fails, `path` stays as it was and the temporary folder is removed. An existing
    empty folder is replaced, a non-empty one only with `overwrite`. Files get the mode that the
    umask allows, whatever the library that wrote them chose.

    Raises:
        InputError, BusyError: see `claims.claim_output`.
        StorageError: `path` can't be written: a full disk, missing rights.
    """
    with (
        claim_output(path, overwrite=overwrite, inputs=inputs),
        part_of(path) as part,
        storage_errors(path),
    ):
        path = resolved(path)
        part.mkdir()
        yield part
        _apply_umask(part)
        with creation_errors(path):
            swap_in(part, path)


@contextmanager
def new_file(path: Path) -> Iterator[IO[bytes]]:
    """Yields a temporary file next to `path` and renames it to `path` when the block succeeds.

    A reader sees either the old file or the whole new one. If the block fails, the old file stays.
    Devices and pipes are written directly.

    Raises:
        BusyError: another process is writing `path`.
        StorageError: `path` can't be written: a full disk, missing rights.
    """
    path = resolved(path)
    if is_device(path):
        with storage_errors(path), path.open("wb") as file:
            yield file
        return
    with part_of(path) as part, storage_errors(path):
        with part.open("wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        with creation_errors(path):
            part.replace(path)


def write_bytes(path: Path, content: bytes) -> None:
    """Writes `content` to `path`, whole or not at all."""
    with new_file(path) as file:
        file.write(content)


def write_text(path: Path, content: str) -> None:
    """Writes `content` to `path` as UTF-8, whole or not at all."""
    write_bytes(path, content.encode("utf-8"))


def _apply_umask(folder: Path) -> None:
    """Gives every file below `folder` the mode that `folder` itself got from the umask."""
    # safetensors creates files that only their owner can read
    mode = folder.stat().st_mode & 0o666
    for path in folder.rglob("*"):
        if path.is_file() and not path.is_symlink():
            path.chmod(mode)
