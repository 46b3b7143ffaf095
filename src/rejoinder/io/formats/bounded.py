"""Decompression within limits: the output is counted, so that an archive bomb is refused."""

import io
import lzma
import struct
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import IO, NoReturn, Protocol, Self, cast

from rejoinder.errors import InputError, RejoinderError
from rejoinder.io.files.storage import lacks_memory
from rejoinder.io.formats.compression import MAGIC, Frames

_PACKED_BYTES = 1 << 10
"""Bytes that are decompressed at a time: four of zstd can become 128 KiB."""
_MAX_HEADER_BYTES = 1 << 20
"""Largest header of a tar entry with a long name or attributes. tarfile reads it into memory."""
_LONG_HEADERS = (
    tarfile.XHDTYPE, tarfile.XGLTYPE, tarfile.SOLARIS_XHDTYPE, tarfile.GNUTYPE_LONGNAME,
    tarfile.GNUTYPE_LONGLINK,
)  # fmt: skip
ARCHIVE_DAMAGES = (
    tarfile.TarError, zipfile.BadZipFile, NotImplementedError, struct.error, RuntimeError,
    IndexError, KeyError, TypeError, OverflowError,
)  # fmt: skip
"""The errors of zipfile and tarfile for damaged archives."""


@dataclass(frozen=True)
class Limits:
    """The largest size of a decompressed file or an unpacked archive."""

    total: int = 8 << 30
    """Bytes of all its files together."""
    ratio: int = 200
    """Decompressed bytes per compressed byte, beyond `free`. Text shrinks to a tenth, a bomb to a
    thousandth."""
    free: int = 64 << 20
    """Bytes that any archive may hold, whatever its own size."""
    files: int = 100_000
    """Number of entries, folders included."""


LIMITS = Limits()


class Reader(Protocol):
    """A binary stream."""

    def read(self, size: int = -1, /) -> bytes:
        """Returns at most `size` bytes, b"" at the end."""
        ...


class Meter:
    """Counts what comes out of one compressed file, and refuses it beyond the limits."""

    def __init__(self, path: Path, limits: Limits = LIMITS) -> None:
        self.path, self.limits = path, limits
        self.packed = path.stat().st_size
        self.bytes = self.files = 0

    def add(self, count: int, read: int | None = None) -> None:
        """Counts decompressed bytes, when `read` bytes of the file are read (None means all)."""
        self.bytes += count
        self._check(self.bytes, self.packed if read is None else read)

    def announce(self, count: int) -> None:
        """Checks the size that a header announces, before any of its bytes are read."""
        self._check(self.bytes + count, self.packed)

    def add_entry(self) -> None:
        """Counts an entry of an archive."""
        self.files += 1
        if self.files > self.limits.files:
            self._refuse(f"more than {self.limits.files:,} files")

    def _check(self, count: int, read: int) -> None:
        if count > self.limits.total:
            self._refuse(f"{count:,} bytes, more than {self.limits.total:,}")
        if count > max(self.limits.free, read * self.limits.ratio):
            self._refuse(f"{count:,} bytes, more than {self.limits.ratio} times its own {read:,}")

    def _refuse(self, amount: str) -> NoReturn:
        raise InputError(
            f"{self.path} unpacks to {amount}; it is refused. Unpack it yourself if you trust "
            "it, and name the folder."
        )


class Metered:
    """A stream whose bytes are counted. The headers of an archive can be a bomb too."""

    def __init__(self, stream: Reader, meter: Meter, source: IO[bytes] | None = None) -> None:
        self.stream, self.meter, self.source = stream, meter, source

    def read(self, size: int = -1, /) -> bytes:
        """Returns at most `size` bytes and counts them."""
        data = self.stream.read(size)
        self.meter.add(len(data), None if self.source is None else self.source.tell())
        return data


class _Unpacked:
    """A stream of the decompressed content of a file."""

    def __init__(self, suffix: str, file: IO[bytes]) -> None:
        self._file, self._frames = file, Frames(suffix)
        self._pieces = self._decompressed()
        self._ready = io.BytesIO()

    def read(self, size: int = -1, /) -> bytes:
        """Returns at most `size` bytes, b"" at the end."""
        if size < 0:
            return b"".join(iter(lambda: self.read(1 << 20), b""))
        while not (data := self._ready.read(size)):
            piece = next(self._pieces, None)
            if piece is None:
                break
            self._ready = io.BytesIO(piece)
        return data

    def _decompressed(self) -> Iterator[bytes]:
        while packed := self._file.read(_PACKED_BYTES):
            yield from self._frames.decompress(packed)
        if self._frames.is_open:
            raise EOFError("it ends within compressed data")


OPENERS: dict[str, Callable[[IO[bytes]], Reader]] = {
    suffix: partial(_Unpacked, suffix) for suffix in MAGIC.values()
}
"""Functions that open a stream of the decompressed content, in bounded memory, by suffix."""


class _Entry(tarfile.TarInfo):
    """A header of a tar. Long ones are refused before they are read into memory."""

    @classmethod
    def frombuf(cls, buf: bytes | bytearray, encoding: str, errors: str) -> Self:
        """Returns the header in a block of 512 bytes."""
        entry = super().frombuf(buf, encoding, errors)
        if entry.type in _LONG_HEADERS and entry.size > _MAX_HEADER_BYTES:
            raise ValueError(f"a header of {entry.size:,} bytes")
        return entry


def tar_of(stream: Reader, errors: str) -> tarfile.TarFile:
    """Returns a tar archive whose entries are read one after another.

    `errors` is what becomes of names that are not UTF-8, see `bytes.decode`.
    """
    return tarfile.open(
        fileobj=cast("IO[bytes]", stream), mode="r|", tarinfo=_Entry,
        encoding="utf-8", errors=errors,
    )  # fmt: skip


@contextmanager
def damage_errors(path: Path, action: str, *others: type[Exception]) -> Iterator[None]:
    """Turns `others` and errors of decompression libraries within the block into an InputError."""
    damage: tuple[type[Exception], ...] = (
        *others,
        zlib.error,
        lzma.LZMAError,
        EOFError,
        OSError,
        ValueError,
    )
    try:
        yield
    except RejoinderError:  # an InputError is a ValueError too
        raise
    except damage as error:
        if isinstance(error, OSError) and error.strerror:  # the machine's fault, not the file's
            raise InputError(f"{path} can't be {action}: {error.strerror}.") from None
        if lacks_memory(error):
            raise
        reason = str(error) or "it ends too early"
        raise InputError(f"{path} is damaged or cut: {reason}. Fetch or copy it again.") from None


def read_packed(path: Path, suffix: str, limits: Limits = LIMITS) -> bytes:
    """Returns the decompressed content of a file, whose compression is a key of `OPENERS`.

    Raises:
        InputError: the file can't be read, is damaged or cut, or exceeds the limits.
        MissingExtraError: the file is zstd and `zstandard` is not installed.
    """
    with damage_errors(path, "read"), path.open("rb") as file:
        stream = Metered(OPENERS[suffix](file), Meter(path, limits), file)
        return b"".join(iter(lambda: stream.read(1 << 20), b""))
