"""Files and folders that appear whole or not at all: written beside their place, then renamed."""

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from rejoinder.errors import InputError


@contextmanager
def new_folder(place: Path, *, overwrite: bool = False) -> Iterator[Path]:
    """A temporary folder beside `place`, renamed to `place` when the block ends without an error.

    A block that fails leaves `place` as it was and removes the temporary folder. An existing
    empty folder is replaced; a non-empty one only with `overwrite`.

    Raises:
        InputError: `place` is a file, or a non-empty folder and `overwrite` is false.
    """
    place = Path(os.path.abspath(place))  # noqa: PTH100 -- resolve() would follow a link to elsewhere
    refuse_occupied(place, overwrite=overwrite)
    place.parent.mkdir(parents=True, exist_ok=True)
    beside = Path(tempfile.mkdtemp(prefix=f".{place.name}.", suffix=".part", dir=place.parent))
    beside.chmod(0o755)
    try:
        yield beside
        _swap(beside, place)
    finally:
        shutil.rmtree(beside, ignore_errors=True)


def refuse_occupied(place: Path, *, overwrite: bool = False) -> None:
    """Refuse an output folder that would lose something: to be called before the work begins.

    Raises:
        InputError: `place` is a file, or a non-empty folder and `overwrite` is false.
    """
    if place.is_file():
        raise InputError(f"{place} is a file; a folder is written there. Name another place.")
    if place.is_dir() and any(place.iterdir()) and not overwrite:
        raise InputError(
            f"{place} exists and is not empty; name another folder or allow it with --overwrite."
        )


@contextmanager
def new_file(place: Path) -> Iterator[IO[bytes]]:
    """A temporary file beside `place`, renamed to `place` when the block ends without an error.

    A reader sees the old file or the new one, whole; a block that fails leaves the old one.
    """
    place.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(prefix=f".{place.name}.", suffix=".part", dir=place.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        Path(name).chmod(0o644)
        Path(name).replace(place)
    finally:
        Path(name).unlink(missing_ok=True)


def write_bytes(place: Path, content: bytes) -> None:
    """Write `content` to `place`, whole or not at all."""
    with new_file(place) as file:
        file.write(content)


def write_text(place: Path, content: str) -> None:
    """Write `content` as UTF-8, whole or not at all."""
    write_bytes(place, content.encode("utf-8"))


def _swap(new: Path, place: Path) -> None:
    """Put `new` at `place`; an old folder there goes only once the new one is whole."""
    if not place.exists():
        new.replace(place)
        return
    old = Path(tempfile.mkdtemp(prefix=f".{place.name}.", suffix=".old", dir=place.parent))
    place.replace(old)
    try:
        new.replace(place)
    except OSError:
        old.replace(place)
        raise
    shutil.rmtree(old, ignore_errors=True)
