"""Finding and reading the files of data sets, and the checks that their readers share."""

from collections.abc import Callable, Iterable, Mapping, Sequence, Sized
from pathlib import Path
from typing import TypeVar

from rejoinder.errors import DataMissingError, InputError
from rejoinder.io.files.hashed import sha256_of
from rejoinder.io.files.storage import read_errors
from rejoinder.io.formats.compression import OPENERS, read_packed

T = TypeVar("T", bound=Sized)

ROOTS = ("senteval", "data", "")
"""Possible parents of SentEval's folders `downstream` and `probing` in a folder of data sets."""


def senteval_folders(inner: str) -> tuple[str, ...]:
    """Returns the paths that a folder of SentEval may have below a folder of data sets.

    >>> senteval_folders("downstream/MR")
    ('senteval/downstream/MR', 'data/downstream/MR', 'downstream/MR', 'MR')
    """
    folders = [f"{root}/{inner}".lstrip("/") for root in ROOTS]
    return (*folders, inner.split("/", 1)[1])


def find_folder(data: Path, folders: Sequence[str], name: str, title: str) -> Path:
    """Returns the first of some folders below `data` that holds a file, compressed or not.

    Raises:
        DataMissingError: no folder holds the file. The message lists the paths that were tried.
    """
    for folder in folders:
        if existing(data / folder / name) is not None:
            return data / folder
    raise missing(title, [data / folder / name for folder in folders])


def missing(
    title: str, tried: Iterable[Path], hint: str = "`rejoinder data list` says more."
) -> DataMissingError:
    """Returns the error for a data set whose files are at none of the paths that were tried."""
    return DataMissingError(
        f"{title} is not there; looked for {', '.join(map(str, tried))}. {hint}"
    )


def read_splits(
    data: Path, inner: str, files: Mapping[str, str], title: str, parse: Callable[[bytes, Path], T]
) -> tuple[dict[str, T], str]:
    """Reads a data set with a file for each split (or class) from SentEval's folder `inner`.

    Returns:
        What `parse` makes of each file, by split, and the hash of all files.

    Raises:
        InputError: a file is missing, damaged or empty.
    """
    folder = find_folder(data, senteval_folders(inner), next(iter(files.values())), title)
    splits, contents = {}, []
    for split, file in files.items():
        contents.append(read_bytes(folder / file))
        splits[split] = parse(contents[-1], folder / file)
        if not len(splits[split]):
            raise InputError(f"{folder / file} has no rows; it is empty or cut. Get it again.")
    return splits, sha256_of(*contents)


def read_bytes(path: Path) -> bytes:
    """Returns the content of a file, or of the same file compressed as `.zst`.

    A file whose name ends in `.zst`, `.gz`, `.bz2` or `.xz` is decompressed.

    Raises:
        DataMissingError: the file does not exist.
        InputError: the file can't be read or is damaged.
    """
    found = existing(path)
    if found is None:
        raise DataMissingError(f"{path} is not there, and no {path.name}.zst either.")
    if found.suffix in OPENERS:
        return read_packed(found, found.suffix)
    return content_of(found)


def content_of(path: Path) -> bytes:
    """Returns the bytes of a file as they are."""
    with read_errors(path):
        return path.read_bytes()


def refuse_repeats(ids: Sequence[str], lines: Sequence[int], path: Path) -> None:
    """Refuses an id that occurs twice, because predictions are compared by id.

    `lines` holds the line number of each row.
    """
    first: dict[str, int] = {}
    for name, line in zip(ids, lines, strict=True):
        if first.setdefault(name, line) != line:
            raise InputError(
                f"{path} line {line}: line {first[name]} has the id {name[:40]!r} too. Remove "
                "one of them, or get the file again."
            )


def is_file(path: Path) -> bool:
    """Returns whether a file exists."""
    with read_errors(path):
        return path.is_file()


def existing(path: Path) -> Path | None:
    """Returns the path of a file, or of the same file as `.zst`, or None if neither exists."""
    packed = path.with_name(path.name + ".zst")
    return next((each for each in (path, packed) if is_file(each)), None)
