"""Finding dumps: paths, patterns and folders to files, and what kind of file each one is."""

import glob
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Literal

from rejoinder.corpus.parquet import MAGIC
from rejoinder.errors import InputError
from rejoinder.formats.compression import compression, decompressed
from rejoinder.formats.tables import BYTE_ORDER_MARK

SEPARATORS = {".csv": ",", ".tsv": "\t", ".tab": "\t", ".txt": "\t"}
"""The endings of tables, and what usually separates their columns."""
_JSON = (".jsonl", ".ndjson")
_OWN = "manifest.json"
_LISTED = 5

Kind = Literal["json", "table", "parquet"]


def find_files(dumps: Iterable[str | Path]) -> list[Path]:
    """The files that paths, patterns and folders name, each once, sorted by name.

    Of a folder those files are taken that are dumps by their names or contents; its own folders
    are not entered.

    Raises:
        InputError: a path or a pattern names no file, a folder holds no dump.
    """
    found: set[Path] = set()
    for dump in dumps:
        try:
            found.update(_files(Path(dump)))
        except OSError as error:
            raise InputError(f"{dump} can't be read: {error.strerror}.") from None
    return sorted(found, key=lambda path: (path.name, str(path)))


def _files(dump: Path) -> list[Path]:
    if dump.is_dir():
        return _dumps_in(dump)
    if not dump.exists():
        return _matches(str(dump))
    if not dump.is_file():
        raise InputError(f"{dump} is no regular file; write it to a file first.")
    return [dump]


def refuse_inside(files: Sequence[Path], out: Path) -> None:
    """Refuse to replace a folder that holds what is read.

    Raises:
        InputError: a file is in `out`.
    """
    for path in files:
        if out.resolve() in path.resolve().parents:
            raise InputError(f"{path} is in {out}, which would be replaced; name another output.")


def kind_of(path: Path) -> Kind:
    """What a file holds, by its content where that says so, else by the endings of its name.

    Raises:
        InputError: it can't be read, or is of a kind that is never a dump.
    """
    if compression(path) is None:
        head = _head(path)
        if head.startswith(MAGIC):
            return "parquet"
        if head.startswith(b"PK\x03\x04") and not _is(path, ".parquet"):
            raise InputError(f"{path} is a zip archive; unpack it and name the files in it.")
        if head.startswith((b"\xff\xfe", b"\xfe\xff")):
            raise InputError(f"{path} is UTF-16; save it as UTF-8.")
    if _is(path, ".parquet"):
        return "parquet"
    return "table" if separator_of(path) else "json"


def separator_of(path: Path) -> str | None:
    """What usually separates the columns of a table of that name; none for other names."""
    return next(
        (SEPARATORS[suffix.lower()] for suffix in path.suffixes if suffix.lower() in SEPARATORS),
        None,
    )


def _is(path: Path, ending: str) -> bool:
    return ending in (suffix.lower() for suffix in path.suffixes)


def _head(path: Path) -> bytes:
    """The first bytes of a plain file that can be read: `compression` has opened it before."""
    with path.open("rb") as file:
        return file.read(8)


def _matches(pattern: str) -> list[Path]:
    matches = [Path(match) for match in glob.glob(pattern)]  # noqa: PTH207
    files = [path for path in matches if path.is_file()]
    if files:
        return files
    if matches:
        raise InputError(
            f"{pattern} matches folders only ({_listed(matches)}); name one of them, or "
            "the files in it."
        )
    raise InputError(f"{pattern} is no file or folder, and no pattern that matches one.")


def _dumps_in(folder: Path) -> list[Path]:
    inside = sorted(path for path in folder.iterdir() if not path.name.startswith("."))
    if (folder / _OWN).is_file() and any(_is(path, ".parquet") for path in inside):
        raise InputError(
            f"{folder} holds pairs already, the output of an extraction; see its {_OWN}."
        )
    found = [path for path in inside if path.is_file() and _is_dump(path)]
    if not found:
        raise InputError(
            f"{folder} holds no dump{f', only {_listed(inside)}' if inside else '; it is empty'}. "
            "Of a folder JSON lines, CSV, TSV and Parquet files are read, compressed or not; name "
            "files of other endings themselves, and those of inner folders as "
            f"'{folder / '*' / '*.zst'}'."
        )
    return found


def _is_dump(path: Path) -> bool:
    """Whether a file of a folder that was named is meant: not so a README, a list of hashes."""
    suffixes = {suffix.lower() for suffix in path.suffixes}
    if suffixes & {*_JSON, ".parquet", *SEPARATORS.keys() - {".txt"}}:
        return True
    try:
        head = next(decompressed(path), b"").removeprefix(BYTE_ORDER_MARK)
    except InputError:
        return compression(path) is not None  # reading a damaged file reports it later
    line = head.lstrip().split(b"\n")[0]
    return line.startswith(b"{") and line.rstrip() != b"{"  # "{" alone: JSON over several lines


def _listed(paths: list[Path]) -> str:
    names = [path.name + ("/" if path.is_dir() else "") for path in sorted(paths)]
    return ", ".join(names[:_LISTED]) + (" …" if len(names) > _LISTED else "")
