"""Sentences as commands are given them: arguments, lines of a file or of standard input."""

import sys
from pathlib import Path

from rejoinder.errors import InputError

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
"""How files begin that are no UTF-8 text; what is such text is never looked up here."""


def read_lines(place: str) -> list[str]:
    """The lines of a file, or with `-` of standard input, without their ends.

    Only line feeds end a line; a byte order mark is left out.

    Raises:
        InputError: the file can't be read, is empty, or is no UTF-8 text.
    """
    try:
        content = _bytes_of(place)
    except OSError as error:
        raise InputError(f"{place} can't be read: {error.strerror}.") from None
    if not content:
        raise InputError(f"{named(place)} is empty; one sentence a line is expected.")
    text = _text(content, named(place)).removeprefix("\ufeff").removesuffix("\n")
    return [line.removesuffix("\r") for line in text.split("\n")]


def _bytes_of(place: str) -> bytes:
    if place != "-":
        return Path(place).read_bytes()
    if sys.stdin is None:
        raise InputError("standard input is closed; name a file.")
    return sys.stdin.buffer.read()


def _text(content: bytes, name: str) -> str:
    """`content` as text.

    Raises:
        InputError: it is none; the message says what the file seems to be.
    """
    null = content.find(0)
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError as error:
        wrong, what = error.start, f"is not UTF-8 (byte 0x{content[error.start]:02x})"
    else:
        if null < 0:
            return text
        wrong, what = null, "holds a NUL byte"
    kind = next((kind for magic, kind in _MAGIC.items() if content.startswith(magic)), None)
    if kind is None and null >= 0:
        kind = "a binary file"
    number = content.count(b"\n", 0, wrong) + 1
    what = f"line {number} {what}"
    if kind is None:
        raise InputError(
            f"{name}: {what}; lines of UTF-8 text are expected, one sentence each. Convert the "
            "file, as with: iconv -f LATIN1 -t UTF-8."
        )
    raise InputError(
        f"{name} seems to be {kind} ({what}); lines of UTF-8 text are expected, one sentence each."
    )


def read_pairs(place: str) -> list[tuple[str, str]]:
    """Lines of two sentences with a tab between.

    Raises:
        InputError: as `read_lines`, or a line has another number of columns.
    """
    rows = []
    for number, line in enumerate(read_lines(place), 1):
        parts = line.split("\t")
        if len(parts) != 2:
            raise InputError(
                f"{named(place)} line {number}: {len(parts)} columns; two sentences with a tab "
                "between are expected."
            )
        rows.append((parts[0], parts[1]))
    return rows


def named(place: str) -> str:
    """What messages call it."""
    return "standard input" if place == "-" else place


def as_text(argument: str) -> str:
    r"""An argument as text: bytes that are not UTF-8, which Python keeps as surrogates, U+FFFD.

    >>> as_text('h\udcffi')
    'h�i'
    """
    return argument.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
