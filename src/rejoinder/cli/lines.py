"""Reads sentences from arguments, from lines of a file or from standard input."""

import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

from rejoinder.errors import InputError
from rejoinder.io.formats.text_lines import file_lines, text_lines

_READ_BYTES = 1 << 20


def read_lines(path: str) -> list[str]:
    """Returns what `stream_lines` yields, as a list."""
    return list(stream_lines(path))


def stream_lines(path: str) -> Iterator[str]:
    """Yields the lines of a file, which may be compressed, or of standard input if `path` is `-`.

    Raises:
        InputError: the file can't be read, is empty, or is not UTF-8 text.
    """
    if path != "-":
        return file_lines(Path(path))
    if sys.stdin is None:
        raise InputError("standard input is closed; name a file.")
    stream: Any = sys.stdin.buffer
    return text_lines(iter(partial(stream.read1, _READ_BYTES), b""), _name(path))


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
