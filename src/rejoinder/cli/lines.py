"""Reads sentences from arguments, from lines of a file or from standard input."""

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
"""First bytes of common formats. Only files that are not UTF-8 text are looked up here."""


def read_lines(path: str) -> list[str]:
    """Returns the lines of a file, or of standard input if `path` is `-`, without line ends.

    Lines end with LF or CRLF. A byte order mark is left out.

    Raises:
        InputError: the file can't be read, is empty, or is not UTF-8 text.
    """
    try:
        content = _read(path)
    except OSError as error:
        raise InputError(f"{path} can't be read: {error.strerror}.") from None
    if not content:
        raise InputError(f"{_name(path)} is empty; one sentence per line is expected.")
    text = _decode(content, _name(path)).removeprefix("\ufeff").removesuffix("\n")
    return [line.removesuffix("\r") for line in text.split("\n")]


def _read(path: str) -> bytes:
    if path != "-":
        return Path(path).read_bytes()
    if sys.stdin is None:
        raise InputError("standard input is closed; name a file.")
    return sys.stdin.buffer.read()


def _decode(content: bytes, name: str) -> str:
    """Decodes UTF-8, or raises an error that names the format that `content` seems to have."""
    null = content.find(0)
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError as error:
        offset, problem = error.start, f"is not UTF-8 (byte 0x{content[error.start]:02x})"
    else:
        if null < 0:
            return text
        offset, problem = null, "holds a NUL byte"
    format_name = next(
        (known for magic, known in _MAGIC.items() if content.startswith(magic)), None
    )
    if format_name is None and null >= 0:
        format_name = "a binary file"
    number = content.count(b"\n", 0, offset) + 1
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


def read_pairs(path: str) -> list[tuple[str, str]]:
    """Reads lines of two sentences separated by a tab, as `read_lines` does.

    Raises:
        InputError: as for `read_lines`, or a line does not have two columns.
    """
    rows = []
    for number, line in enumerate(read_lines(path), 1):
        parts = line.split("\t")
        if len(parts) != 2:
            raise InputError(
                f"{_name(path)} line {number}: {len(parts)} columns; two sentences separated by a "
                "tab are expected."
            )
        rows.append((parts[0], parts[1]))
    return rows


def _name(path: str) -> str:
    """Returns the name that messages use."""
    return "standard input" if path == "-" else path


def as_text(argument: str) -> str:
    r"""Returns an argument with U+FFFD for bytes that are not UTF-8, which Python makes surrogates.

    >>> as_text('h\udcffi')
    'h�i'
    """
    return argument.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
