"""Sentences as commands are given them: arguments, lines of a file or of standard input."""

import sys
from pathlib import Path

from rejoinder.errors import InputError


def read_lines(place: str) -> list[str]:
    """The lines of a file, or with `-` of standard input, without their ends.

    Only line feeds end a line; a byte order mark is left out, and what is not UTF-8 is U+FFFD.

    Raises:
        InputError: the file can't be read, or is empty.
    """
    try:
        content = sys.stdin.buffer.read() if place == "-" else Path(place).read_bytes()
    except OSError as error:
        raise InputError(f"{place} can't be read: {error.strerror}.") from None
    if not content:
        raise InputError(f"{named(place)} is empty; one sentence a line is expected.")
    text = content.decode("utf-8", "replace").removeprefix("\ufeff").removesuffix("\n")
    return [line.removesuffix("\r") for line in text.split("\n")]


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
