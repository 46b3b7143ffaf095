"""Finds dumps: the files of paths, patterns and folders, and the format of each file."""

from collections.abc import Iterable, Sequence
from glob import glob
from pathlib import Path
from typing import Literal

from rejoinder.errors import InputError
from rejoinder.io.files.addresses import MARKER, Address, AnyPath, any_path, for_each
from rejoinder.io.files.storage import first_names, inside, read_errors
from rejoinder.io.formats.compression import compression, decompressed
from rejoinder.io.formats.text_lines import BYTE_ORDER_MARK
from rejoinder.io.formats.texts import table_columns

_PARQUET = b"PAR1"
SEPARATORS = {".csv": ",", ".tsv": "\t", ".tab": "\t", ".txt": "\t"}
"""The suffixes of tables, and what usually separates their columns."""
_JSON = (".jsonl", ".ndjson")
_MANIFEST = "manifest.json"

Format = Literal["json", "table", "parquet"]


def find_files(dumps: Iterable[str | Path | Address]) -> list[AnyPath]:
    """Returns the files that paths, addresses, patterns and folders name, once each, by name.

    In a folder, the files that are dumps by their names or contents count. Its subfolders are not
    searched.

    Raises:
        InputError: a path or a pattern names no file, or a folder holds no dump.
    """
    files: set[AnyPath] = set()
    for named in dumps:
        dump = any_path(named) if isinstance(named, str | Path) else named
        dump = dump.looked_up() if isinstance(dump, Address) else dump
        with read_errors(dump):
            if dump.is_dir():
                files.update(_dumps_in(dump))
            elif not dump.exists():
                files.update(_matches(dump))
            elif dump.is_file():
                files.add(dump)
            else:
                raise InputError(f"{dump} is not a regular file; write it to a file first.")
    return sorted(files, key=lambda path: (path.name, str(path)))


def format_of(path: AnyPath) -> Format:
    """Returns the format of a file, by its content if that decides, else by its suffixes."""
    if compression(path) is None:
        with path.open("rb") as file:  # it is readable: `compression` has opened it
            head = file.read(8)
        if head.startswith(_PARQUET):
            return "parquet"
        if head.startswith(b"PK\x03\x04") and ".parquet" not in _suffixes(path):
            raise InputError(f"{path} is a zip archive; unpack it and name the files in it.")
        if head.startswith((b"\xff\xfe", b"\xfe\xff")):
            raise InputError(f"{path} is UTF-16; save it as UTF-8.")
    if ".parquet" in _suffixes(path):
        return "parquet"
    is_table = separator_of(path) or (not path.suffixes and table_columns(_head(path)))
    return "table" if is_table else "json"


def separator_of(path: AnyPath) -> str | None:
    """Returns what usually separates the columns of a table with that name, None for no table."""
    return next((SEPARATORS[name] for name in _suffixes(path) if name in SEPARATORS), None)


def _suffixes(path: AnyPath) -> list[str]:
    return [suffix.lower() for suffix in path.suffixes]


def _matches(pattern: AnyPath) -> Sequence[AnyPath]:
    matches: Sequence[AnyPath] = (
        pattern.matches()
        if isinstance(pattern, Address)
        else [Path(match) for match in glob(str(pattern))]  # noqa: PTH207
    )
    files = [path for path in matches if path.is_file()]
    if files:
        return files
    if matches:
        raise InputError(f"{pattern} matches folders only ({_listed(matches)}); name one of them.")
    raise InputError(f"{pattern} is not a file or folder, nor a pattern that matches one.")


def _dumps_in(folder: AnyPath) -> list[AnyPath]:
    everything: Iterable[AnyPath] = (
        folder.iterdir() if isinstance(folder, Address) else inside(folder.iterdir(), folder)
    )
    within = sorted((path for path in everything if not path.name.startswith(".")), key=str)
    if (folder / _MANIFEST).is_file() and any(".parquet" in _suffixes(path) for path in within):
        raise InputError(
            f"{folder} holds pairs already, the output of an extraction; see its {_MANIFEST}."
        )
    if isinstance(folder, Address) and (folder / MARKER).is_file():
        raise InputError(f"{folder} holds pairs that are not finished; extract them again first.")
    files = [path for path in within if path.is_file()]
    are_dumps = for_each(_is_dump, files)
    dumps = [path for path, is_dump in zip(files, are_dumps, strict=True) if is_dump]
    if not dumps:
        raise InputError(
            f"{folder} holds no dump{f', only {_listed(within)}' if within else '; it is empty'}. "
            "In a folder, JSON lines, CSV, TSV and Parquet are read, compressed or not; name other "
            f"files one by one, and those of subfolders as '{folder / '*' / '*.zst'}'."
        )
    return dumps


def _is_dump(path: AnyPath) -> bool:
    """Returns whether a file in a folder is a dump rather than a README or a list of hashes."""
    if set(_suffixes(path)) & {*_JSON, ".parquet", *SEPARATORS.keys() - {".txt"}}:
        return True
    try:
        head = _head(path).removeprefix(BYTE_ORDER_MARK)
    except InputError:
        return compression(path) is not None  # reading a damaged file reports it later
    line = head.lstrip().split(b"\n")[0]
    return line.startswith(b"{") and line.rstrip() != b"{"  # "{" alone: JSON over several lines


def _head(path: AnyPath) -> bytes:
    return next(decompressed(path), b"")


def _listed(paths: Sequence[AnyPath]) -> str:
    return first_names(path.name + ("/" if path.is_dir() else "") for path in paths)
