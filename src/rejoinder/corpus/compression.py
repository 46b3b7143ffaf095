"""Decompression of dumps by content, not name: zstd (windows up to 2 GiB), bz2, xz, gzip, plain.

DuckDB's own readers refuse frames made with `--long=31` and take bz2 and xz for text.
"""

import bz2
import lzma
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, Any, Protocol

from rejoinder.errors import InputError, MissingExtraError

_READ = 1 << 18
_MAX_WINDOW = 1 << 31


class _Decompressor(Protocol):
    """What the four libraries share."""

    @property
    def eof(self) -> bool: ...
    @property
    def unused_data(self) -> bytes: ...
    def decompress(self, data: bytes, /) -> bytes: ...


def _zstd() -> _Decompressor:
    try:
        import zstandard
    except ImportError:
        raise MissingExtraError("zstandard", "extract") from None
    decompressor: Any = zstandard.ZstdDecompressor(max_window_size=_MAX_WINDOW).decompressobj()
    return decompressor  # type: ignore[no-any-return]


_MAGIC: tuple[tuple[bytes, Callable[[], _Decompressor]], ...] = (
    (b"\x28\xb5\x2f\xfd", _zstd),
    (b"BZh", bz2.BZ2Decompressor),
    (b"\xfd7zXZ\x00", lzma.LZMADecompressor),
    (b"\x1f\x8b", lambda: zlib.decompressobj(31)),
)


def compression(path: Path) -> Callable[[], _Decompressor] | None:
    """What makes a decompressor for `path`, none for a plain file.

    Raises:
        InputError: the file can't be opened.
    """
    try:
        with path.open("rb") as file:
            head = file.read(8)
    except OSError as error:
        raise InputError(f"{path} can't be read: {error.strerror}.") from None
    if head[1:4] == b"\x2a\x4d\x18" and 0x50 <= head[0] <= 0x5F:
        return _zstd  # a skippable zstd frame comes first
    return next((make for magic, make in _MAGIC if head.startswith(magic)), None)


def decompressed(path: Path, read: Callable[[int], None] | None = None) -> Iterator[bytes]:
    """The content of `path` in pieces.

    Args:
        path: a file, compressed or not.
        read: called with the number of bytes of the file itself, each time that some were read.

    Raises:
        InputError: the archive is cut short or damaged: which file, and how far it could be read.
    """
    make = compression(path)
    done = 0
    with path.open("rb") as file:
        if make is None:
            yield from _pieces(path, file, _READ * 4, read)
            return
        decompressor: _Decompressor | None = None
        for data in _pieces(path, file, _READ, read):
            while data:
                if decompressor is None:
                    # zeros may fill up a tape's block, and xz allows for them
                    if not (data := data.lstrip(b"\0")):
                        break
                    decompressor = make()
                try:
                    piece = decompressor.decompress(data)
                except Exception as error:  # each library has an error of its own
                    if isinstance(error, MemoryError):
                        raise
                    raise InputError(
                        f"{path} is damaged: {error}, after {done:,} decompressed bytes. "
                        "Fetch or copy the file again."
                    ) from None
                done += len(piece)
                if piece:
                    yield piece
                data = b""
                if decompressor.eof:
                    data, decompressor = decompressor.unused_data, None
        if decompressor is not None:
            raise InputError(
                f"{path} is cut short: it ends within compressed data, after {done:,} "
                "decompressed bytes. Fetch or copy the file again."
            )


def _pieces(
    path: Path, file: IO[bytes], size: int, read: Callable[[int], None] | None
) -> Iterator[bytes]:
    while True:
        try:
            data = file.read(size)
        except OSError as error:
            raise InputError(f"{path} can't be read: {error.strerror}.") from None
        if not data:
            return
        if read is not None:
            read(len(data))
        yield data


def line_blocks(pieces: Iterator[bytes], size: int) -> Iterator[bytes]:
    """Pieces joined and cut after line ends into blocks of about `size` bytes."""
    held: list[bytes] = []
    length = 0
    for piece in pieces:
        held.append(piece)
        length += len(piece)
        if length >= size and (cut := piece.rfind(b"\n") + 1):
            held[-1] = piece[:cut]
            yield b"".join(held)
            held = [piece[cut:]]
            length = len(held[0])
    if rest := b"".join(held):
        yield rest
