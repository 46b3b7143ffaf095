"""Decompression by content rather than by name: zstd (windows up to 2 GiB), bz2, xz, gzip, plain.

DuckDB's own readers refuse frames made with `--long=31` and take bz2 and xz for text.

Blocks of whole lines, cut from pieces of any size.
"""

import bz2
import lzma
import zlib
from collections.abc import Callable, Generator, Iterable, Iterator
from typing import IO, TYPE_CHECKING, Any

from rejoinder.errors import InputError, require
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


class Zstd:
    """Opens frames of zstd that use the same memory, so that only one is read at a time.

    A window can be as large as the content, and fresh memory costs time.
    """

    def __init__(self) -> None:
        self._decompressor: Any = None

    def frame(self) -> Any:
        """Returns a decompressor of one frame."""
        if self._decompressor is None:
            import zstandard

            self._decompressor = zstandard.ZstdDecompressor(max_window_size=_MAX_WINDOW)
        return self._decompressor.decompressobj()


class Frames:
    """Decompresses the frames of a file one after another.

    Zeros between them are skipped: they may fill up a tape's block, and xz allows for them.
    """

    def __init__(self, suffix: str, zstd: Zstd | None = None) -> None:
        """Begins with no frame of a file of that format.

        Raises:
            MissingExtraError: it is zstd and `zstandard` is not installed.
        """
        if suffix == ".zst":
            require("extract", "zstandard")
        new, self._expand = _FORMATS[suffix]
        self._new = zstd.frame if zstd and suffix == ".zst" else new
        self._frame: Any = None

    @property
    def is_open(self) -> bool:
        """Whether the end of a frame is still to come."""
        return self._frame is not None

    def decompress(self, data: bytes) -> Iterator[bytes]:
        """Yields the decompressed content of the next bytes of the file.

        Raises:
            ValueError: they are damaged.
        """
        rest = data
        while rest:
            if self._frame is None:
                if not (rest := rest.lstrip(b"\0")):
                    return
                self._frame = self._new()
            try:
                rest = yield from self._expand(self._frame, rest)
            except Exception as error:  # each library has its own
                if lacks_memory(error):
                    raise
                raise ValueError(str(error)) from None
            if self._frame.eof:
                self._frame = None


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


_FORMATS: dict[
    str, tuple[Callable[[], Any], Callable[[Any, bytes], Generator[bytes, None, bytes]]]
] = {
    ".zst": (lambda: Zstd().frame(), _expand_zstd),
    ".bz2": (bz2.BZ2Decompressor, _expand_blocks),
    ".xz": (lzma.LZMADecompressor, _expand_blocks),
    ".gz": (lambda: zlib.decompressobj(31), _expand_zlib),
}
"""What opens a decompressor of one frame, and what takes all out of it."""


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
    path: "AnyPath", on_read: Callable[[int], None] | None = None, zstd: Zstd | None = None
) -> Iterator[bytes]:
    """Yields the content of `path`, compressed or not, in pieces.

    `on_read` is called after each read with the number of bytes read from the file itself. Files
    that are read one after another can share `zstd`.

    Raises:
        InputError: the file is damaged or cut short. The message says how far it could be read.
    """
    suffix = compression(path)
    done = 0
    with path.open("rb") as file:
        if suffix is None:
            yield from _pieces(path, file, _READ_BYTES * 16, on_read)
            return
        frames = Frames(suffix, zstd)
        for data in _pieces(path, file, _READ_BYTES, on_read):
            try:
                for piece in frames.decompress(data):
                    done += len(piece)
                    if piece:
                        yield piece
            except ValueError as error:
                raise InputError(
                    f"{path} is damaged: {error}, after {done:,} decompressed bytes. Fetch or "
                    "copy the file again."
                ) from None
        if frames.is_open:
            raise InputError(
                f"{path} is cut short: it ends within compressed data, after {done:,} "
                "decompressed bytes. Fetch or copy the file again."
            )


def head_of(path: "AnyPath", size: int) -> bytes:
    """Returns the first bytes of the content of `path`, as `decompressed` yields it."""
    pieces = decompressed(path)
    head = next(pieces, b"")
    while len(head) < size and (more := next(pieces, b"")):
        head += more
    return head[:size]


def _pieces(
    path: "AnyPath", file: IO[bytes], size: int, on_read: Callable[[int], None] | None
) -> Iterator[bytes]:
    while True:
        with read_errors(path):
            data = file.read(size)
        if not data:
            return
        if on_read is not None:
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
