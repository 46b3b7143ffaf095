"""Decompresses by content, not by name: zstd (windows up to 2 GiB), bz2, xz, gzip, plain.

DuckDB's own readers refuse frames made with `--long=31` and read bz2 and xz as text. Archives are
decompressed within limits: the output is counted, so that a bomb is refused. Pieces of any size
are cut into blocks of complete lines.
"""

import bz2
import io
import lzma
import struct
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, NoReturn, Protocol, Self, cast

from rejoinder.errors import InputError, RejoinderError, require
from rejoinder.io.files.storage import lacks_memory, read_errors

if TYPE_CHECKING:
    from rejoinder.io.files.addresses import AnyPath

_READ_BYTES = 1 << 16
"""Number of bytes read at once: what comes out of them stays in a core's cache."""
_MAX_WINDOW = 1 << 31

MAGIC = {b"\x28\xb5\x2f\xfd": ".zst", b"BZh": ".bz2", b"\xfd7zXZ\x00": ".xz", b"\x1f\x8b": ".gz"}
"""The first bytes of a compressed file, and the suffix of its format."""
_PIECE_BYTES = 1 << 20
"""Decompressed bytes at a time, at most: few kilobytes of bz2 can hold gigabytes of zeros."""
_ZSTD_BYTES = 1 << 12
"""Bytes of zstd at a time, which has no such limit: of zeros, at most 134 MB come out of them."""


_Opener = Callable[[], Callable[[], Any]]


def zstd_frames() -> Callable[[], Any]:
    """Returns what opens frames of zstd that use the same memory, one at a time.

    A window can be as large as the content, and fresh memory costs time.
    """
    require("extract", "zstandard")
    import zstandard

    frames: Callable[[], Any] = zstandard.ZstdDecompressor(
        max_window_size=_MAX_WINDOW
    ).decompressobj
    return frames


def expanded(packed: Iterable[bytes], suffix: str, zstd: _Opener = zstd_frames) -> Iterator[bytes]:
    """Yields the content of the pieces of a file of a format, whose frames follow one another.

    Zeros between them are skipped: they may fill up a tape's block, and xz allows for them.

    Raises:
        zlib.error: they are damaged.
        EOFError: they end within a frame.
        MissingExtraError: it is zstd and `zstandard` is not installed.
    """
    opener, expand = _FORMATS[suffix]
    new = zstd() if suffix == ".zst" else opener()
    frame: Any = None
    for rest in packed:
        while rest:
            if frame is None:
                if not (rest := rest.lstrip(b"\0")):
                    break
                frame = new()
            try:
                rest = yield from expand(frame, rest)
            except Exception as error:  # each library has its own
                if lacks_memory(error):
                    raise
                raise zlib.error(str(error)) from None
            if frame.eof:
                frame = None
    if frame is not None:
        raise EOFError("it ends within compressed data")


def _expand_zlib(frame: Any, data: bytes) -> Generator[bytes, None, bytes]:
    """Yields what comes out of `data`; returns the bytes after the end of the frame."""
    while data and not frame.eof:  # at the end, unconsumed_tail is not reset
        yield frame.decompress(data, _PIECE_BYTES)
        data = frame.unconsumed_tail
    return bytes(frame.unused_data)


def _expand_blocks(frame: Any, data: bytes) -> Generator[bytes, None, bytes]:
    yield frame.decompress(data, _PIECE_BYTES)
    while not (frame.eof or frame.needs_input):
        yield frame.decompress(b"", _PIECE_BYTES)
    return bytes(frame.unused_data)


def _expand_zstd(frame: Any, data: bytes) -> Generator[bytes, None, bytes]:
    for end in range(_ZSTD_BYTES, len(data) + _ZSTD_BYTES, _ZSTD_BYTES):
        yield frame.decompress(data[end - _ZSTD_BYTES : end])
        if frame.eof:
            return bytes(frame.unused_data) + data[end:]
    return b""


_Expand = Callable[[Any, bytes], Generator[bytes, None, bytes]]
_FORMATS: dict[str, tuple[_Opener, _Expand]] = {
    ".zst": (zstd_frames, _expand_zstd),
    ".bz2": (lambda: bz2.BZ2Decompressor, _expand_blocks),
    ".xz": (lambda: lzma.LZMADecompressor, _expand_blocks),
    ".gz": (lambda: partial(zlib.decompressobj, 31), _expand_zlib),
}
"""What returns an opener of the frames of a file, and what takes all out of a frame."""


def compression_of(head: bytes) -> str | None:
    """Returns the suffix for the first bytes of a compressed file, None for a plain file.

    >>> compression_of(b"BZh91AY"), compression_of(b"plain text")
    ('.bz2', None)
    """
    if head[1:4] == b"\x2a\x4d\x18" and 0x50 <= head[0] <= 0x5F:
        return ".zst"  # a skippable frame comes first
    return next((suffix for magic, suffix in MAGIC.items() if head.startswith(magic)), None)


def compression(path: "AnyPath") -> str | None:
    """Returns `.zst`, `.bz2`, `.xz` or `.gz` by the content of a file, None for a plain file.

    Raises:
        InputError: the file can't be opened.
    """
    with read_errors(path), path.open("rb") as file:
        return compression_of(file.read(8))


def decompressed(
    path: "AnyPath",
    on_read: Callable[[int], None] = lambda _count: None,
    zstd: _Opener = zstd_frames,
) -> Iterator[bytes]:
    """Yields the content of `path`, compressed or not, in pieces.

    `on_read` is called after each read with the number of bytes read from the file itself. Files
    that are read one after another can share what a `zstd` returned.

    Raises:
        InputError: the file is damaged or cut short. The message says how far it could be read.
    """
    suffix = compression(path)
    done = 0
    with path.open("rb") as file:
        if suffix is None:
            yield from _pieces(path, file, _READ_BYTES * 16, on_read)
            return
        try:
            for piece in expanded(_pieces(path, file, _READ_BYTES, on_read), suffix, zstd):
                done += len(piece)
                if piece:
                    yield piece
        except (zlib.error, EOFError) as error:
            what = "cut short" if isinstance(error, EOFError) else "damaged"
            raise InputError(
                f"{path} is {what}: {error}, after {done:,} decompressed bytes. Fetch or copy the "
                "file again."
            ) from None


def head_of(path: "AnyPath", size: int) -> bytes:
    """Returns the first bytes of the content of `path`, as `decompressed` yields it."""
    return file_of(decompressed(path)).read(size)


def _pieces(
    path: "AnyPath", file: IO[bytes], size: int, on_read: Callable[[int], None]
) -> Iterator[bytes]:
    while True:
        with read_errors(path):
            data = file.read(size)
        if not data:
            return
        on_read(len(data))
        yield data


LONGEST_LINE = 16 << 20
"""Most bytes of a line of text, up to a piece more. A few KB of bz2 can hold a line of 4 GB."""
_KEPT = 1_000
"""Bytes that stay of a longer line, which no reader takes for a whole line."""

OnLong = Callable[[int], None]
"""Called with the number of lines that come before a line that is too long in its block."""


def line_blocks(
    pieces: Iterable[bytes],
    size: int,
    on_long: OnLong = lambda _before: None,
    longest: int = LONGEST_LINE,
) -> Iterator[bytes]:
    r"""Joins pieces and cuts them after line ends into blocks of about `size` bytes.

    Of a line of more than `longest` bytes the first are left, unless `on_long` raises an error.

    >>> list(line_blocks([b"ab\nc", b"d\n", b"efgh\ni"], 3))
    [b'ab\n', b'cd\n', b'efgh\n', b'i']
    """
    held: list[bytes] = []
    length = last = 0  # bytes of what is held, and of its last line, whose end has not come yet
    skips = False
    for piece in pieces:
        if skips:
            piece = piece[piece.find(b"\n") :] if b"\n" in piece else b""
            skips = not piece
        cut = piece.rfind(b"\n") + 1
        held.append(piece)
        length += len(piece)
        last = len(piece) - cut if cut else last + len(piece)
        if length >= size and cut:
            block = b"".join([*held[:-1], piece[:cut]])
            held, length = [piece[cut:]], last
            yield block
        elif last > longest:
            block = b"".join(held)
            on_long(block.count(b"\n", 0, length - last))
            held = [block[: length - last + _KEPT]]
            length, last, skips = len(held[0]), _KEPT, True
    if length:
        yield b"".join(held)


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
_DAMAGES = (zlib.error, lzma.LZMAError, EOFError, OSError, ValueError)
"""The errors of decompression libraries."""


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


class Pieces(io.RawIOBase):
    """Pieces of bytes as a file to read."""

    def __init__(self, pieces: Iterator[bytes]) -> None:
        self._pieces = pieces
        self._rest = memoryview(b"")

    def readable(self) -> bool:
        """Tells that it can be read."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Reads the next bytes."""
        if not self._rest:
            self._rest = memoryview(next((piece for piece in self._pieces if piece), b""))
        count = min(len(buffer), len(self._rest))
        buffer[:count] = self._rest[:count]
        self._rest = self._rest[count:]
        return count


def file_of(pieces: Iterator[bytes], buffer: int = _READ_BYTES) -> io.BufferedReader:
    """Returns pieces of bytes as a file to read."""
    return io.BufferedReader(Pieces(pieces), buffer)


def _unpacked(suffix: str, file: IO[bytes]) -> Reader:
    return file_of(expanded(iter(partial(file.read, _PACKED_BYTES), b""), suffix))


OPENERS: dict[str, Callable[[IO[bytes]], Reader]] = {
    suffix: partial(_unpacked, suffix) for suffix in MAGIC.values()
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
    damages: tuple[type[Exception], ...] = (*others, *_DAMAGES)
    try:
        yield
    except RejoinderError:  # an InputError is a ValueError too
        raise
    except damages as error:
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
