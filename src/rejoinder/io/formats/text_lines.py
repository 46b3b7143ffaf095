"""Lines of UTF-8 text as a stream: of a file, which may be compressed, or of pieces of bytes."""

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from rejoinder.errors import InputError
from rejoinder.io.formats.compression import decompressed
from rejoinder.io.formats.line_blocks import line_blocks

_BLOCK_BYTES = 1 << 16
"""Bytes that are decoded at a time; lines that come slowly wait for as many."""
_MAGIC = {
    b"\x93NUMPY": "a NumPy array (.npy)",
    b"PAR1": "a Parquet file",
    b"ARROW1": "an Arrow file",
    b"PK\x03\x04": "a zip archive (.zip, .npz, .xlsx)",
    b"\x1f\x8b": "compressed by gzip",
    b"BZh": "compressed by bzip2",
    b"\xfd7zXZ\x00": "compressed by xz",
    b"\x28\xb5\x2f\xfd": "compressed by zstandard",
    b"SQLite format 3": "an SQLite database",
    b"%PDF": "a PDF document",
    b"\x89PNG": "an image",
    b"\xff\xd8\xff": "an image",
    b"\x89HDF": "an HDF5 file",
    b"\xff\xfe": "UTF-16 text",
    b"\xfe\xff": "UTF-16 text",
}
"""First bytes of common formats. Only content that is not UTF-8 text is looked up here."""
_LONGEST_MAGIC = max(map(len, _MAGIC))


def file_lines(path: Path, on_read: Callable[[int], None] | None = None) -> Iterator[str]:
    """Yields the lines of a file, plain or compressed (gzip, bzip2, xz, zstandard).

    `on_read` is called after each read with the number of bytes read from the file itself.

    Raises:
        InputError: the file can't be read or is damaged; also what `text_lines` raises.
        MissingExtraError: it is compressed by zstandard, which is not installed.
    """
    return text_lines(decompressed(path, on_read), str(path))


def text_lines(pieces: Iterable[bytes], name: str) -> Iterator[str]:
    r"""Yields lines without their ends, which are LF or CRLF. A byte order mark is left out.

    >>> list(text_lines([b"How old", b" are you?\r\n\nYes."], "a file"))
    ['How old are you?', '', 'Yes.']

    Raises:
        InputError: the content is empty, is not UTF-8, or holds a NUL byte. The message begins with
            `name`, and names the line and the format that the content seems to have.
    """
    head, number = b"", 0
    for block in line_blocks(pieces, _BLOCK_BYTES):
        head = head or block[:_LONGEST_MAGIC]
        text = _decoded(block, head, name, number)
        if not number:
            text = text.removeprefix("\ufeff")
        lines = text.removesuffix("\n").split("\n")
        number += len(lines)
        yield from (line.removesuffix("\r") for line in lines)
    if not number:
        raise InputError(f"{name} is empty; one sentence per line is expected.")


def _decoded(block: bytes, head: bytes, name: str, lines_before: int) -> str:
    """Decodes a block of lines, or raises an error that names the format beginning with `head`."""
    null = block.find(0)
    try:
        text = block.decode("utf-8")
    except UnicodeDecodeError as error:
        offset, problem = error.start, f"is not UTF-8 (byte 0x{block[error.start]:02x})"
    else:
        if null < 0:
            return text
        offset, problem = null, "holds a NUL byte"
    format_name = next((known for magic, known in _MAGIC.items() if head.startswith(magic)), None)
    if format_name is None and null >= 0:
        format_name = "a binary file"
    number = lines_before + block.count(b"\n", 0, offset) + 1
    problem = f"line {number} {problem}"
    if format_name is None:
        raise InputError(
            f"{name}: {problem}; lines of UTF-8 text are expected, one sentence each. Convert the "
            "file, for example by: iconv -f LATIN1 -t UTF-8."
        )
    raise InputError(
        f"{name} seems to be {format_name} ({problem}); lines of UTF-8 text are expected, one "
        "sentence each."
    )
