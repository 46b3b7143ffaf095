"""Writes files and folders atomically: they appear complete or not at all.

They are written next to the target and then renamed.

Also handles outputs that may take several runs, with parts that grow next to the output.

The parts of `e.npy` are in the folder `.e.npy.unfinished`, with `state.json`: their sizes and
checksums when the state was saved, and the data that the writer needs to continue. A killed process
leaves the folder, and the next run cuts the parts back to those sizes. Only the holder of the lock
on the output (`io.files.claims`) may touch it.
"""

import io
import json
import os
import shutil
import tempfile
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

from msgspec import to_builtins

from rejoinder.errors import InputError, StorageError
from rejoinder.io.files import storage
from rejoinder.io.files.addresses import Address, AnyPath
from rejoinder.io.files.claims import claim_output, companion, part_of, swap_in
from rejoinder.io.files.hashed import Count, FileName, Record, read_sealed, sealed
from rejoinder.io.files.system import rename


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
        storage.storage_errors(path),
    ):
        path = storage.resolved(path)
        part.mkdir()
        yield part
        _apply_umask(part)
        with storage.creation_errors(path):
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
    path = storage.resolved(path)
    if storage.is_device(path):
        with storage.storage_errors(path), path.open("wb") as file:
            yield file
        return
    with part_of(path) as part, storage.storage_errors(path):
        with part.open("wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        with storage.creation_errors(path):
            rename(part, path)


def write_bytes(path: AnyPath, content: bytes) -> None:
    """Writes `content` to `path`, whole or not at all."""
    if isinstance(path, Address):
        path.put(content)
        return
    with new_file(path) as file:
        file.write(content)


def write_text(path: AnyPath, content: str) -> None:
    """Writes `content` to `path` as UTF-8, whole or not at all."""
    write_bytes(path, content.encode("utf-8"))


def _apply_umask(folder: Path) -> None:
    """Gives every file below `folder` the mode that `folder` itself got from the umask."""
    # safetensors creates files that only their owner can read
    mode = folder.stat().st_mode & 0o666
    for path in folder.rglob("*"):
        if path.is_file() and not path.is_symlink():
            path.chmod(mode)


_STATE = "state.json"
_VERSION = 2
_BLOCK_BYTES = 1 << 20
_REMEDY = "Begin again with `overwrite=True`."


class Extent(Record, frozen=True):
    """The bytes of a part that count; what follows them was written after the state was saved."""

    bytes: Count
    crc32: Count


class Saved(Record, frozen=True):
    """What an interrupted run left."""

    facts: Mapping[str, Any]
    """What the writer saved with the parts; JSON values."""
    parts: Mapping[FileName, Extent]
    """How much of each part counts, by its name."""


class Part(io.BufferedWriter):
    """A part that is appended to, and the checksum of its bytes."""

    def __init__(self, path: Path, kept: Extent | None, header_bytes: int) -> None:
        """Opens a new part, or one of which `kept` is continued.

        The first `header_bytes` are not in the checksum.

        Raises:
            InputError: the bytes that are kept have another checksum.
        """
        self.path, self._header_bytes = path, header_bytes
        self._size = self._crc32 = 0
        super().__init__(io.FileIO(path, "w" if kept is None else "r+"))
        if kept is None:
            return
        with storage.read_errors(path), path.open("rb") as file:
            while block := file.read(min(kept.bytes - self._size, _BLOCK_BYTES)):
                self._count(block)
        if self.extent != kept:
            self.close()
            raise InputError(f"{path} was changed after it was written (CRC-32). {_REMEDY}")
        self.truncate(kept.bytes)
        self.seek(0, os.SEEK_END)

    def write(self, content: Any, /) -> int:
        """Appends bytes."""
        self._count(content)
        return super().write(content)

    def _count(self, content: bytes) -> None:
        skipped = max(0, self._header_bytes - self._size)
        self._crc32 = zlib.crc32(memoryview(content)[skipped:], self._crc32)
        self._size += len(content)

    @property
    def extent(self) -> Extent:
        """What was written so far."""
        return Extent(self._size, self._crc32)


@dataclass
class Growing:
    """The open parts of an output."""

    folder: Path
    files: list[Part] = field(default_factory=list)
    _mark: dict[str, Any] | None = field(default=None, init=False)

    def mark(self, facts: Mapping[str, Any]) -> None:
        """Remembers the present extents and `facts`, as a state that can be continued."""
        saved = Saved(facts, {file.path.name: file.extent for file in self.files})
        self._mark = {"format_version": _VERSION, **to_builtins(saved)}

    def close(self) -> None:
        """Closes the parts, which are complete."""
        for file in self.files:
            file.close()

    def save(self) -> None:
        """Makes the last mark outlast the process and the machine.

        Without a mark, or with closed parts, it does nothing.
        """
        if self._mark is None or any(file.closed for file in self.files):
            return
        for file in self.files:
            file.flush()
            os.fsync(file.fileno())
        write_text(self.folder / _STATE, json.dumps(sealed(self._mark)))


def unfinished_folder(path: Path) -> Path:
    """Returns the folder of the parts of an output."""
    return companion(storage.resolved(path), "unfinished")


def read_unfinished(path: Path) -> Saved | None:
    """Returns what an interrupted run left for the output `path`, None if it left nothing.

    Raises:
        InputError: it is damaged, or of another version.
    """
    folder = unfinished_folder(path)
    if not (folder / _STATE).is_file():
        return None
    saved = read_sealed(folder / _STATE, Saved, _VERSION, InputError, _REMEDY)
    if path.exists() and not any((folder / name).exists() for name in saved.parts):
        return None  # the process ended after `publish` had renamed the output
    for name, kept in saved.parts.items():
        if not (folder / name).is_file() or (folder / name).stat().st_size < kept.bytes:
            raise InputError(f"{folder / name} is missing or cut. {_REMEDY}")
    return saved


@contextmanager
def growing(
    path: Path, parts: Sequence[str], saved: Saved | None, *, header_bytes: int = 0
) -> Iterator[Growing]:
    """Opens the parts of an output to append to them, as new ones or as `saved`.

    The first `header_bytes` of each may be changed when the output is finished.

    If the block fails, whatever the error, the last mark is saved. Parts that were never saved are
    removed. A device can't be continued: its parts are in a temporary folder.

    Raises:
        InputError: the saved parts are others, or their bytes were changed.
        StorageError: the parts can't be written.
    """
    path = storage.resolved(path)
    if saved is not None and saved.parts.keys() != set(parts):
        names = ", ".join(sorted(saved.parts)) or "none"
        raise InputError(
            f"{unfinished_folder(path) / _STATE} has the parts {names}, not {', '.join(parts)}. "
            f"{_REMEDY}"
        )
    with ExitStack() as stack:
        if storage.is_device(path):
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="rejoinder-")))
        else:
            folder = unfinished_folder(path)
            if saved is None:
                discard_unfinished(path)
        grown = Growing(folder)
        with storage.storage_errors(path):
            try:  # a signal may come at any moment, and leaves no folder without a state
                with storage.creation_errors(path):
                    folder.mkdir(exist_ok=True)
                for name in parts:
                    kept = None if saved is None else saved.parts[name]
                    grown.files.append(Part(folder / name, kept, header_bytes))
                yield grown
                grown.close()
            except BaseException:
                with suppress(OSError, StorageError):  # a full disk: an earlier state stands
                    grown.save()
                for part in grown.files:
                    with suppress(OSError):  # that it can no longer write is reported already
                        part.close()
                if not (folder / _STATE).exists():
                    shutil.rmtree(folder, ignore_errors=True)
                raise


def publish(finished: Path, path: Path) -> None:
    """Renames a finished file of the parts' folder to the output, and removes the folder.

    A device is written directly.

    Raises:
        StorageError: the output can't be written.
    """
    path = storage.resolved(path)
    with storage.storage_errors(path):
        if storage.is_device(path):
            with finished.open("rb") as file, path.open("wb") as device:
                shutil.copyfileobj(file, device)
            return
        with finished.open("r+b") as file:
            os.fsync(file.fileno())
        with storage.creation_errors(path):
            rename(finished, path)
        discard_unfinished(path)


def discard_unfinished(path: Path) -> None:
    """Removes what an interrupted run left for an output."""
    shutil.rmtree(unfinished_folder(path), ignore_errors=True)
