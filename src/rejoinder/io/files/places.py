"""Places: paths on this machine and addresses in stores, for code that takes both."""

import os
import re
import tempfile
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

from rejoinder.errors import InputError, LeftOutWarning
from rejoinder.io.files.addresses import SCHEMES, Address

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
