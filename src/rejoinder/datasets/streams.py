"""Decompression that can't run away: what comes out is counted, and a cut file is an error."""

import bz2
import gzip
import io
import lzma
import zlib
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, NoReturn, Protocol, cast

from rejoinder.errors import InputError, MissingExtraError

_ZSTD_PIECE = 1 << 10
"""Bytes given to zstandard at a time: a block of 4 bytes can become 128 KiB."""


@dataclass(frozen=True)
class Limits:
    """What a compressed file or an archive may grow to."""

    total: int = 8 << 30
    """Bytes of all its files together."""
    ratio: int = 200
    """Times the bytes it takes, beyond `free`: text packs to a tenth, a bomb to a thousandth."""
    free: int = 64 << 20
    """Bytes that any archive may have."""
    files: int = 100_000
    """Entries, folders among them."""


LIMITS = Limits()


class Reader(Protocol):
    """Anything that is read in pieces."""

    def read(self, size: int = -1, /) -> bytes:
        """At most `size` bytes; none at the end."""
        ...


class Meter:
    """Counts what comes out of one compressed file, and stops it in time."""

    def __init__(self, path: Path, limits: Limits = LIMITS) -> None:
        self.path, self.limits = path, limits
        self.packed = path.stat().st_size
        self.bytes = self.files = 0

    def add(self, count: int, read: int | None = None) -> None:
        """Count `count` bytes.

        Args:
            count: bytes that came out.
            read: bytes of the compressed file that were read so far; none: take all of them.

        Raises:
            InputError: that is too many.
        """
        self.bytes += count
        self._check(self.bytes, self.packed if read is None else read)

    def announce(self, count: int) -> None:
        """Refuse now what would be too many bytes: `count` more are announced by a header.

        Raises:
            InputError: that is too many.
        """
        self._check(self.bytes + count, self.packed)

    def add_entry(self) -> None:
        """Count an entry of an archive.

        Raises:
            InputError: there are too many.
        """
        self.files += 1
        if self.files > self.limits.files:
            self._refuse(f"more than {self.limits.files:,} files")

    def _check(self, count: int, read: int) -> None:
        if count > self.limits.total:
            self._refuse(f"{count:,} bytes, more than {self.limits.total:,}")
        if count > max(self.limits.free, read * self.limits.ratio):
            self._refuse(f"{count:,} bytes, more than {self.limits.ratio} times its own {read:,}")

    def _refuse(self, what: str) -> NoReturn:
        raise InputError(
            f"{self.path} unpacks to {what}, which no data set here does; it is refused. Unpack "
            "it yourself if you trust it, and name the folder."
        )


class Metered:
    """A stream whose bytes are counted: headers of an archive can be a bomb too."""

    def __init__(self, stream: Reader, meter: Meter, source: IO[bytes] | None = None) -> None:
        self.stream, self.meter, self.source = stream, meter, source

    def read(self, size: int = -1, /) -> bytes:
        """At most `size` bytes, counted."""
        data = self.stream.read(size)
        self.meter.add(len(data), None if self.source is None else self.source.tell())
        return data


class _ZstdReader:
    """Decompressed zstandard frames; unlike the library's own reader it notices a cut end."""

    def __init__(self, file: IO[bytes]) -> None:
        try:
            import zstandard
        except ImportError:
            raise MissingExtraError("zstandard", "extract") from None
        self._make = zstandard.ZstdDecompressor(max_window_size=2**31).decompressobj
        self._failure = zstandard.ZstdError
        self._file, self._frame = file, self._make()
        self._begun = self._ended = False
        self._ready = io.BytesIO()

    def read(self, size: int = -1, /) -> bytes:
        """At most `size` bytes; none at the end."""
        if size < 0:
            return b"".join(iter(lambda: self.read(1 << 20), b""))
        while not (data := self._ready.read(size)) and not self._ended:
            self._ready = io.BytesIO(self._next())
        return data

    def _next(self) -> bytes:
        packed = self._file.read(_ZSTD_PIECE)
        if not packed:
            self._ended = True
            if self._begun:
                raise EOFError("it ends within compressed data")
        found = []
        try:
            while packed:
                self._begun = True
                found.append(self._frame.decompress(packed))
                packed = b""
                if self._frame.eof:
                    packed = self._frame.unused_data
                    self._frame, self._begun = self._make(), False
        except self._failure as error:
            raise ValueError(str(error)) from None
        return b"".join(found)


def _zstd(file: IO[bytes]) -> Reader:
    return _ZstdReader(file)


OPENERS: dict[str, Callable[[IO[bytes]], Reader]] = {
    ".gz": lambda file: cast("Reader", gzip.GzipFile(fileobj=file)),
    ".bz2": lambda file: cast("Reader", bz2.BZ2File(file)),
    ".xz": lambda file: cast("Reader", lzma.LZMAFile(file)),  # noqa: SIM115 -- its file is closed
    ".zst": _zstd,
}
"""By suffix: a stream of what a compressed file holds."""

_MAGIC = {b"\x1f\x8b": ".gz", b"BZh": ".bz2", b"\xfd7zXZ\x00": ".xz", b"\x28\xb5\x2f\xfd": ".zst"}


def compression_of(head: bytes) -> str | None:
    """The suffix that belongs to the first bytes of a file; none for a plain one."""
    return next((suffix for magic, suffix in _MAGIC.items() if head.startswith(magic)), None)


def damages() -> tuple[type[Exception], ...]:
    """The errors by which decompressing libraries say that a file is damaged or cut."""
    found: list[type[Exception]] = [zlib.error, lzma.LZMAError, EOFError, OSError, ValueError]
    with suppress(ImportError):
        import zstandard

        found.append(zstandard.ZstdError)
    return tuple(found)


def read_packed(path: Path, suffix: str, limits: Limits = LIMITS) -> bytes:
    """The decompressed content of a file.

    Args:
        path: the file.
        suffix: how it is compressed: a key of `OPENERS`.
        limits: of its size.

    Raises:
        InputError: it can't be read, is damaged or cut, or grows beyond the limits.
        MissingExtraError: it is zstandard and the library is not installed.
    """
    try:
        with path.open("rb") as file:
            stream = Metered(OPENERS[suffix](file), Meter(path, limits), file)
            return b"".join(iter(lambda: stream.read(1 << 20), b""))
    except damages() as error:
        if isinstance(error, OSError) and error.strerror:
            raise InputError(f"{path} can't be read: {error.strerror}.") from None
        raise InputError(
            f"{path} is damaged or cut: {str(error) or 'it ends too early'}. Fetch or copy it "
            "again."
        ) from None
