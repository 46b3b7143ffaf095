"""Places: paths on this machine and addresses in stores, for code that takes both.

Folders that are written at an address. What is there without being whole can be told.

A store renames no folder. While one is written, a marker lies in it, which says whose it is, and
whether all else was written by runs that did not end. The file that makes the folder whole comes
last, and then the marker goes.
"""

import json
import os
import re
import tempfile
import uuid
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, TypeVar

from rejoinder.errors import BusyError, InputError, LeftOutWarning, RejoinderError
from rejoinder.io.files.addresses import SCHEMES, Address
from rejoinder.io.files.storage import process_description

Place = Path | Address
"""Where a file or a folder is."""

_ADDRESS = re.compile(
    # a question mark is a wildcard unless settings follow
    r"([A-Za-z][A-Za-z0-9+.-]+)://([^/?]*)/*+(.*?)(?:\?(\w+=[^/&?]*(?:&\w+=[^/&?]*)*))?"
)
_SHORTENED = re.compile(rf"({'|'.join(SCHEMES)}):/(?=[^/])")
_COPY_BYTES = 8 << 20
_REQUESTS = 16
_NAMED = 3

P = TypeVar("P", bound=Path | Address)
T = TypeVar("T")


def as_place(text: str | Path) -> Place:
    """Returns the address or the path that `text` is.

    A `Path` made of an address, which has lost a slash, is that address.

    >>> address = as_place("s3a://bucket/dumps/?region=eu-west-1")
    >>> str(address), address.query
    ('s3://bucket/dumps', 'region=eu-west-1')
    >>> str(as_place("dumps/RC_2021-02"))
    'dumps/RC_2021-02'

    Raises:
        InputError: it is an address of an unknown scheme, without a bucket, or with a password.
    """
    text = _SHORTENED.sub(r"\1://", str(text), count=1) if isinstance(text, Path) else text
    parsed = _ADDRESS.fullmatch(text)
    if parsed is None:
        return Path(text)
    scheme, store, key, query = parsed.groups(default="")
    scheme = scheme.lower()
    if scheme == "file":
        return Path(f"/{key}")
    if scheme not in SCHEMES:
        known = ", ".join(f"{name}://" for name in SCHEMES)
        raise InputError(f"{text}: there is no scheme {scheme!r}; addresses begin with {known}.")
    user, _, server = store.rpartition("@")
    if ":" in user:
        raise InputError(
            f"{scheme}://…@{server}: an address holds no password, because logs show it; set "
            "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_PROFILE."
        )
    if not store and scheme != "hdfs":
        raise InputError(f"{text} names no bucket; write {scheme}://BUCKET/KEY.")
    return Address(SCHEMES[scheme], store, key.strip("/"), query)


def size_of(place: Place) -> int:
    """Returns the number of bytes of a file."""
    if isinstance(place, Address):
        return place.looked_up().size
    return place.stat().st_size


def for_each(work: Callable[[P], T], places: Sequence[P]) -> list[T]:
    """Returns `work` of each place. Of addresses it is done at once, as stores answer slowly."""
    if not any(isinstance(place, Address) for place in places):
        return [work(place) for place in places]
    with ThreadPoolExecutor(_REQUESTS) as pool:
        return list(pool.map(work, places))


def inside(paths: Iterable[Path], folder: Path) -> list[Path]:
    """Returns the paths in a folder without links that lead out of it, of which it warns."""
    root, kept, left_out = os.path.realpath(folder), list[Path](), list[str]()
    for path in paths:
        if not path.is_symlink() or Path(os.path.realpath(path)).is_relative_to(root):
            kept.append(path)
        else:
            left_out.append(path.relative_to(folder).as_posix())
    warn_of_links(folder, left_out)
    return kept


def shortened(names: Iterable[str]) -> str:
    """Returns the first names of many as a list.

    >>> shortened("bcad")
    'a, b, c …'
    """
    first = sorted(names)
    return ", ".join(first[:_NAMED]) + (" …" if len(first) > _NAMED else "")


def warn_of_links(path: Path, names: Sequence[str]) -> None:
    """Warns that links in a folder or an archive lead out of it and are not read, if any do."""
    if names:
        lead = "links lead out of it and are" if len(names) > 1 else "link leads out of it and is"
        warnings.warn(
            f"{path}: {len(names):,} {lead} left out: {shortened(names)}. Copy the file itself to "
            "read it.",
            LeftOutWarning,
            stacklevel=2,
        )


@contextmanager
def local_copy(place: Place) -> Iterator[Path]:
    """Yields the path of a file: its own, or that of a copy on this machine while it is needed."""
    if isinstance(place, Path):
        yield place
        return
    with scratch_folder() as folder, place.open() as source:
        copy = folder / "copy"
        with copy.open("wb") as target:
            while block := source.read(_COPY_BYTES):
                target.write(block)
        yield copy


@contextmanager
def scratch_folder() -> Iterator[Path]:
    """Yields a folder for temporary files; on an executor, it is where Spark has its own."""
    disk = os.environ.get("SPARK_LOCAL_DIRS", "").split(",")[0]
    with tempfile.TemporaryDirectory(
        prefix="rejoinder-",
        dir=disk if disk and Path(disk).is_dir() else None,
        ignore_cleanup_errors=True,  # somebody else may have removed it
    ) as folder:
        yield Path(folder)


MARKER = ".rejoinder-unfinished"
_RUNS: dict[Address, str] = {}
"""What this process writes: the run's own name by folder."""


def refuse_occupied(folder: Address, *, overwrite: bool = False) -> None:
    """Refuses an output whose content would be lost. What a killed run left may be replaced.

    Raises:
        InputError: `folder` is a file or a whole bucket, the store refuses, or there are files of
            others in it and `overwrite` is false.
    """
    if not folder.key:
        raise InputError(f"{folder} is a whole bucket; name a folder in it, such as {folder}pairs.")
    if folder.looked_up().kind == "file":
        raise InputError(f"{folder} is a file; a folder is written there. Name another folder.")
    if not overwrite and not _is_ours(folder):
        raise InputError(
            f"{folder} exists and is not empty; name another folder, or replace it with "
            "`overwrite=True`."
        )


@contextmanager
def new_folder_at(folder: Address, *, overwrite: bool = False) -> Iterator[None]:
    """Marks `folder` as unfinished while the block writes it.

    The block calls `clear` before it writes files into the folder, and `check_ours` before it
    writes the file that makes the folder whole. If it fails before `clear`, the folder is as it
    was; later, it is empty. If the process is killed, the next run takes its place.

    Raises:
        InputError: see `refuse_occupied`.
        BusyError: another command began to write there.
        StorageError: the store can't be written.
    """
    refuse_occupied(folder, overwrite=overwrite)
    run = _RUNS[folder] = uuid.uuid4().hex
    try:
        _mark(folder, run, ours=_is_ours(folder))
        yield
        (folder / MARKER).remove()
    except BaseException:
        with suppress(RejoinderError):  # the first error counts
            _abandon(folder, run)
        raise
    finally:
        del _RUNS[folder]


def clear(folder: Address, last: str) -> None:
    """Removes what was in a folder that this process writes, beginning with the file `last`."""
    check_ours(folder)
    (folder / last).remove()  # from here on, readers see that the folder is not complete
    for_each(Address.remove, _others(folder))
    _mark(folder, _RUNS[folder], ours=True)


def check_ours(folder: Address) -> None:
    """Checks that no other command has begun to write the folder.

    Raises:
        BusyError: one has.
    """
    marker = _marker(folder)
    if marker.get("run") != _RUNS[folder]:
        raise BusyError(
            f"another command ({marker.get('by', 'unknown')}) began to write {folder}; wait for "
            "it to end, or name another output."
        )


def _mark(folder: Address, run: str, *, ours: bool) -> None:
    tree = {"run": run, "by": process_description(), "all_is_of_unfinished_runs": ours}
    (folder / MARKER).put(json.dumps(tree).encode())


def _marker(folder: Address) -> dict[str, Any]:
    """Returns what the marker says; empty where there is none."""
    marker = folder / MARKER
    if not marker.exists():
        return {}
    with marker.open() as file:
        try:
            tree = json.loads(file.read())
        except ValueError:  # somebody else's file
            tree = None
    return tree if isinstance(tree, dict) else {}


def _is_ours(folder: Address) -> bool:
    """Returns whether the folder has only what runs left that did not end."""
    return not _others(folder) or bool(_marker(folder).get("all_is_of_unfinished_runs"))


def _others(folder: Address) -> list[Address]:
    """Returns what is in the folder except the marker."""
    return [entry for entry in folder.iterdir() if entry.name != MARKER]


def _abandon(folder: Address, run: str) -> None:
    marker = _marker(folder)
    if marker.get("run") != run:
        return
    (folder if marker["all_is_of_unfinished_runs"] else folder / MARKER).remove()
