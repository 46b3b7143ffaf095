"""Reads texts from arguments, from files and from standard input."""

import os
import re
import select
import shlex
import stat
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from itertools import chain
from pathlib import Path
from typing import Any

from rejoinder.cli.exits import exit_if_signalled
from rejoinder.cli.output import note, note_left_out
from rejoinder.corpus.texts import Entry, entries_of, looks_exported
from rejoinder.errors import InputError, RejoinderError
from rejoinder.io.files.places import scratch_folder
from rejoinder.io.files.storage import storage_errors
from rejoinder.io.formats.text_lines import file_lines, text_lines
from rejoinder.io.formats.texts import table_columns, texts_of

_READ_BYTES = 1 << 20
_STDIN = "standard input"


def read_lines(path: str) -> list[str]:
    """Returns the lines of a file, which may be compressed, or of standard input for `-`.

    Raises:
        InputError: the file can't be read, is empty, or is not UTF-8 text.
    """
    return list(file_lines(Path(path)) if path != "-" else text_lines(_stdin(), _name(path)))


def stream_entries(path: str, columns: str | None = None) -> Iterator[Entry]:
    """Yields the texts of a path (`corpus.texts`), or of standard input for `-`.

    After the last one, it notes which messages of an export were left out.

    Raises:
        InputError: the path can't be read, or has no texts.
    """
    if path == "-":
        yield from _entries_of_stdin(columns)
        return
    left_out: list[str] = []
    yield from entries_of(Path(path), columns, on_left_out=left_out.append)
    note_left_out(Counter(left_out))


def _entries_of_stdin(columns: str | None) -> Iterator[Entry]:
    """Yields texts as they come or, once everything has, the messages of an export."""
    pieces = _stdin()
    head = next(pieces, b"")
    if columns is None and looks_exported(head):
        with _scratch() as folder:
            file = folder / _STDIN
            file.write_bytes(head)
            if b"\0" in head or _is_export(file):  # archives have their table at the end
                with storage_errors(folder), file.open("ab") as out:
                    out.writelines(pieces)
                yield from stream_entries(str(file))
                return
    if columns is None:
        _note_table(head)
    yield from (Entry(*text) for text in texts_of(chain([head], pieces), _STDIN, columns))


def _note_table(head: bytes) -> None:
    """Notes that standard input, which begins with `head`, is lines, if it seems to be a table."""
    names = table_columns(head)
    if names and "text" not in names and head.count(b"\n") > 2:
        note(
            f"{_STDIN} is read as lines of text. If it is a table, name its column of texts, such "
            f"as --columns text={shlex.quote(names[-1])}"
        )


def _is_export(file: Path) -> bool:
    from rejoinder.exports import format_of_export  # 0.1 seconds

    return format_of_export(file) is not None


@contextmanager
def as_files(paths: Sequence[str], *, are_texts: bool = False) -> Iterator[list[str]]:
    """Yields paths, with temporary files for standard input (`-`) and for pipes.

    Exports are read more than once, and archives not from the beginning to the end. With
    `are_texts`, a table on standard input that will be read as lines is noted.

    Raises:
        InputError: standard input is closed, or named twice.
        StorageError: there is no room for temporary files.
    """
    if paths.count("-") > 1:
        raise InputError("- is standard input, which can be read once; name it once.")
    piped = [one for one in paths if one == "-" or _is_pipe(one)]
    if not piped:
        yield [*paths]
        return
    with _scratch() as folder:
        files = {}
        for one in piped:
            files[one] = folder / (_STDIN if one == "-" else Path(one).name)
            pieces = _stdin() if one == "-" else _pieces(Path(one))
            head = next(pieces, b"")
            with storage_errors(folder), files[one].open("wb") as out:
                out.writelines(chain([head], pieces))
            if are_texts and one == "-" and not (looks_exported(head) and _is_export(files[one])):
                _note_table(head)
        yield [str(files.get(one, one)) for one in paths]


@contextmanager
def _scratch() -> Iterator[Path]:
    """Yields a temporary folder, which errors don't mention."""
    with scratch_folder() as folder:
        try:
            yield folder
        except RejoinderError as error:
            error.args = (str(error).replace(f"{folder}/", ""),)
            raise


def _is_pipe(path: str) -> bool:
    with suppress(OSError, ValueError):  # not there, or not a path
        return stat.S_ISFIFO(Path(path).stat().st_mode)
    return False


def _pieces(pipe: Path) -> Iterator[bytes]:
    with pipe.open("rb") as file:
        while piece := file.read(_READ_BYTES):
            yield piece


def _stdin() -> Iterator[bytes]:
    if sys.stdin is None:
        raise InputError("standard input is closed; name a file.")
    stream: Any = sys.stdin.buffer
    while True:
        # The system may give a signal to another thread, while the main one starts it. Python
        # handles it in the main thread, which would never know while it waits for input.
        with suppress(OSError):  # not a file of the system
            while not select.select([stream], [], [], 1)[0]:
                exit_if_signalled()
        if not (read := stream.read1(_READ_BYTES)):
            return
        yield read


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
    return _STDIN if path == "-" else path


def as_text(argument: str) -> str:
    r"""Returns an argument with U+FFFD for bytes that are not UTF-8, which Python makes surrogates.

    >>> as_text('h\udcffi')
    'h�i'
    """
    return argument.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


def where_conditions(words: list[str]) -> dict[str, list[str]]:
    """Returns the values of each key of `--where`.

    A comma is part of a value unless a key and = follow it.

    >>> where_conditions(["author=Smith, Ann,source=help", "source=general"])
    {'author': ['Smith, Ann'], 'source': ['help', 'general']}

    Raises:
        InputError: a condition has no =.
    """
    values: dict[str, list[str]] = {}
    for word in words:
        for condition in re.split(r",(?=\s*[a-z]+=)", as_text(word)):
            key, equals, value = condition.strip().partition("=")
            if not equals:
                raise InputError(
                    f"--where {condition!r}: write KEY=VALUE, such as source=general or "
                    "since=2024-01-31."
                )
            values.setdefault(key, []).append(value)
    return values


def split_lists(words: Sequence[str]) -> list[str]:
    """Splits words that join values by commas. The path of an existing file may hold commas.

    >>> split_lists(["stsb, snli", "mr"])
    ['stsb', 'snli', 'mr']
    """
    values: list[str] = []
    for word in words:
        # unlike Path's method, this is false where a name is too long
        parts = [word] if os.path.exists(word) else word.split(",")  # noqa: PTH110
        values += filter(None, map(str.strip, parts))
    return values
