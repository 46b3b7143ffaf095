"""Addresses of files in stores, such as `s3://bucket/dumps/RC_2021-02.zst`, by pyarrow.

An `Address` has the methods of `Path` that readers of dumps use, so that they can read both. Errors
of stores become plain messages.

A store can't rename folders. While a folder is written, it contains a marker that names its writer,
and says whether everything else in it comes from unfinished runs. The file that completes the
folder is written last; then the marker is removed.
"""

import io
import json
import re
import shutil
import uuid
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from functools import lru_cache
from itertools import chain, repeat
from pathlib import Path, PurePosixPath
from typing import Any, Literal, TypeVar

from rejoinder.errors import BusyError, InputError, RejoinderError, StorageError, require
from rejoinder.io.files.storage import is_database, refuse_content, scratch_folder
from rejoinder.io.files.system import process_description
from rejoinder.io.formats.compression import file_of

_FIRST_BYTES = 64 << 10
_BLOCK_BYTES = 8 << 20
"""Bytes of a request. A first, smaller one suffices for those that look at a file's beginning."""

Kind = Literal["file", "folder", "missing"]
_KINDS: dict[str, Kind] = {"File": "file", "Directory": "folder"}


@dataclass(frozen=True)
class Address:
    """An address of a file or of a folder. Its methods raise InputError where a store refuses."""

    scheme: str
    store: str
    """The bucket, container or server."""
    key: str
    """Path in the store, without slashes at its ends. That of the store itself is empty."""
    query: str = ""
    """Settings of the connection, such as `endpoint_override=host:9000&scheme=http`."""
    kind: Kind | None = field(default=None, compare=False)
    """What is there. None means that it was not checked."""
    size: int = field(default=0, compare=False)
    """Number of bytes of a file that was checked."""

    def __str__(self) -> str:
        return f"{self.scheme}://{self.store}/{self.key}"

    def __truediv__(self, name: str) -> "Address":
        return replace(self, key=f"{self.key}/{name}".lstrip("/"), kind=None)

    @property
    def name(self) -> str:
        """The last part of the key."""
        return PurePosixPath(self.key).name

    @property
    def suffixes(self) -> list[str]:
        """The suffixes of the name, with their dots."""
        return PurePosixPath(self.key).suffixes

    def looked_up(self) -> "Address":
        """Returns the address with what is there, as it was found or as it is now.

        Raises:
            InputError: the store does not exist, or does not answer.
        """
        if self.kind is not None:
            return self
        with store_errors(self):
            filesystem, path = self._opened()
            found = self._as(filesystem.get_file_info(path))
            if found.kind == "missing":
                store = filesystem.get_file_info(replace(self, key="")._opened()[1])
                if store.type.name == "NotFound":
                    raise OSError(NO_BUCKET)
        return found

    def is_dir(self) -> bool:
        """Returns whether it is a folder, which is to say that keys begin with it."""
        return self.looked_up().kind == "folder"

    def is_file(self) -> bool:
        """Returns whether it is a file."""
        return self.looked_up().kind == "file"

    def exists(self) -> bool:
        """Returns whether there is anything."""
        return self.looked_up().kind != "missing"

    def iterdir(self) -> list["Address"]:
        """Returns the files and folders in a folder, as they are found; of a missing one, none."""
        from pyarrow.fs import FileSelector

        with store_errors(self):
            filesystem, path = self._opened()
            selector = FileSelector(path, allow_not_found=True)
            infos = filesystem.get_file_info(selector)
        return [(self / info.path[len(path) :].strip("/"))._as(info) for info in infos]

    def matches(self) -> list["Address"]:
        """Returns what matches a key with `*`, `?` and `[…]`, none of which stands for a slash."""
        found = [replace(self, key="", kind=None)]
        for step in self.key.split("/"):
            if not any(sign in step for sign in "*?["):
                found = [folder / step for folder in found]
                continue
            found = [
                entry
                for folder in found
                for entry in folder.iterdir()
                if fnmatchcase(entry.name, step)
                and entry.name.startswith(".") == step.startswith(".")
            ]
        return [entry for entry in (entry.looked_up() for entry in found) if entry.exists()]

    def open(self, _mode: Literal["rb"] = "rb", /) -> io.BufferedReader:
        """Opens a file, see `Path.open`. Its content is fetched while it is read."""
        with store_errors(self):
            filesystem, path = self._opened()
            file = filesystem.open_input_file(path)
        return file_of(self._blocks(file), _FIRST_BYTES)

    def _blocks(self, file: Any) -> Iterator[bytes]:
        with file:
            for size in chain([_FIRST_BYTES], repeat(_BLOCK_BYTES)):
                with store_errors(self):
                    block = file.read(size)
                if not block:
                    return
                yield block

    def put(self, content: bytes) -> None:
        """Writes a file, which appears whole or not at all.

        Raises:
            StorageError: it can't be written.
        """
        spare = replace(self, key=f"{self.key}.{uuid.uuid4().hex}.part")
        with store_errors(self, writing=True):
            filesystem, path = self._opened()
            write_whole(filesystem, path, spare._opened()[1], content)

    def remove(self) -> None:
        """Removes what is there: a file, or a folder with all that is in it.

        Raises:
            StorageError: it can't be removed.
        """
        with store_errors(self, writing=True):
            filesystem, path = self._opened()
            kind = self.looked_up().kind
            if kind == "folder":
                filesystem.delete_dir(path)
            elif kind == "file":
                filesystem.delete_file(path)

    def is_in(self, folder: "Address") -> bool:
        """Returns whether it is the address of something in `folder`, at any depth."""
        same_store = (self.scheme, self.store) == (folder.scheme, folder.store)
        return same_store and self.key.startswith(f"{folder.key}/".lstrip("/"))

    def _opened(self) -> tuple[Any, str]:
        """Returns the file system of `pyarrow.fs`, and the path in it."""
        settings = f"?{self.query}" if self.query else ""
        filesystem, root = connected(f"{self.scheme}://{self.store}{settings}")
        return filesystem, f"{root}/{self.key}" if self.key else root or "/"

    def _as(self, info: Any) -> "Address":
        return replace(self, kind=_KINDS.get(info.type.name, "missing"), size=info.size or 0)


SCHEMES = ("s3", "s3a", "gs", "abfs", "abfss", "hdfs")
"""Schemes of addresses. `s3a` is Hadoop's name of `s3`."""
_WHOLE_AT_ONCE = ("s3", "gcs", "abfs")
"""File systems whose files appear when their last byte is there."""
NO_BUCKET = "NO_SUCH_BUCKET"
"""What an error says where the bucket or container of an address does not exist."""
_DENIED = re.compile(
    r"ACCESS_DENIED|INVALID_ACCESS_KEY|SIGNATURE_DOES_NOT_MATCH|INVALID_SIGNATURE|EXPIRED_TOKEN|"
    r"INVALID_CLIENT_TOKEN|MISSING_AUTHENTICATION|HTTP status 40[13]|UNAUTHENTICATED|"
    r"PERMISSION_DENIED|OAuth2|no credentials",
    re.IGNORECASE,
)
_UNREACHABLE = re.compile(r"NETWORK_CONNECTION|curlCode|could not connect|resolve host", re.I)
_NO_HADOOP = re.compile("libjvm|libhdfs")
_CAUSES = {
    re.compile(NO_BUCKET): "there is no bucket {store!r}; make it first, or name another",
    _DENIED: "access is denied; on each machine that reads or writes, set AWS_ACCESS_KEY_ID and "
    "AWS_SECRET_ACCESS_KEY, AWS_PROFILE, or what your store has instead",
    _UNREACHABLE: "its server does not answer; AWS_ENDPOINT_URL, or "
    "?endpoint_override=HOST:PORT at the end of the address, names another server",
    _NO_HADOOP: "HDFS needs Java and Hadoop here (JAVA_HOME, HADOOP_HOME, CLASSPATH)",
}
"""Why a store refuses, for the end of a sentence, by what its error matches."""


@lru_cache
def connected(address: str) -> tuple[Any, str]:
    """Returns the file system (of `pyarrow.fs`) of a store, and the path of the store in it.

    A process opens one connection to each store, when it first needs it.

    Args:
        address: address of the store with the settings of the connection, such as
            `s3://bucket?endpoint_override=host:9000&scheme=http`.
    """
    from pyarrow.fs import FileSystem

    filesystem, root = FileSystem.from_uri(address)
    return filesystem, root.rstrip("/")


def write_whole(filesystem: Any, path: str, spare: str, content: bytes) -> None:
    """Writes a file that appears whole or not at all, by way of the path `spare` if need be."""
    if filesystem.type_name in _WHOLE_AT_ONCE:
        _write(filesystem, path, content)
        return
    filesystem.create_dir(path.rpartition("/")[0], recursive=True)
    _write(filesystem, spare, content)
    filesystem.move(spare, path)


def _write(filesystem: Any, path: str, content: bytes) -> None:
    # in one piece: closing completes whatever was written, also after an exception between pieces
    stream = filesystem.open_output_stream(path, compression=None)  # not by the name's suffix
    stream.write(content)
    stream.close()


@contextmanager
def store_errors(address: Address, *, writing: bool = False) -> Iterator[None]:
    """Turns errors of a store within the block into one sentence about `address`.

    Raises:
        InputError: it can't be read.
        StorageError: it can't be written.
        MissingExtraError: pyarrow is not installed.
    """
    require("parquet", "pyarrow")
    from pyarrow import ArrowException

    try:
        yield
    except RejoinderError:
        raise
    except (OSError, ArrowException) as error:
        missing = isinstance(error, FileNotFoundError)
        cause = "there is no such file" if missing else _cause(str(error), address.store)
        if writing:
            raise StorageError(f"{address} can't be written: {cause}.") from None
        raise InputError(f"{address} can't be read: {cause}.") from None


def _cause(said: str, store: str) -> str:
    """Returns why a store refuses, for the end of a sentence."""
    for pattern, cause in _CAUSES.items():
        if pattern.search(said):
            return cause.format(store=store)
    return re.sub(r"(?<!\s)\s*+\(Request ID: .*", "", said.split("\n")[0]).rstrip(". ")[:300]


AnyPath = Path | Address
"""A path on this machine, or an address in a store."""

_ADDRESS = re.compile(
    # a question mark is a wildcard unless settings follow
    r"([A-Za-z][A-Za-z0-9+.-]+)://([^/?]*)/*+(.*?)(?:\?(\w+=[^/&?]*(?:&\w+=[^/&?]*)*))?"
)
_SHORTENED = re.compile(rf"({'|'.join(SCHEMES)}):/(?=[^/])")
_COPY_BYTES = 8 << 20
_REQUESTS = 16

P = TypeVar("P", bound=Path | Address)
T = TypeVar("T")


def any_path(text: str | Path) -> AnyPath:
    """Returns the address or the path that `text` is.

    A `Path` made of an address, which has lost a slash, is that address.

    >>> address = any_path("s3a://bucket/dumps/?region=eu-west-1")
    >>> str(address), address.query
    ('s3://bucket/dumps', 'region=eu-west-1')
    >>> str(any_path("dumps/RC_2021-02"))
    'dumps/RC_2021-02'

    Raises:
        InputError: it is an address of an unknown scheme, without a bucket, or with a password.
    """
    text = _SHORTENED.sub(r"\1://", text.as_posix(), count=1) if isinstance(text, Path) else text
    parsed = _ADDRESS.fullmatch(text)
    if parsed is None or is_database(Path(text)):
        return Path(text)
    scheme, store, key, query = parsed.groups(default="")
    scheme = scheme.lower()
    if scheme == "file":
        from urllib.request import url2pathname  # takes 30 ms

        return Path(url2pathname(f"/{key}"))
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
    return Address("s3" if scheme == "s3a" else scheme, store, key.strip("/"), query)


def size_of(path: AnyPath) -> int:
    """Returns the number of bytes of a file."""
    if isinstance(path, Address):
        return path.looked_up().size
    return path.stat().st_size


def for_each(work: Callable[[P], T], paths: Sequence[P]) -> list[T]:
    """Returns `work` of each path. Of addresses it is done at once, as stores answer slowly."""
    if not any(isinstance(path, Address) for path in paths):
        return [work(path) for path in paths]
    with ThreadPoolExecutor(_REQUESTS) as pool:
        return list(pool.map(work, paths))


@contextmanager
def local_copy(path: AnyPath) -> Iterator[Path]:
    """Yields the path of a file: its own, or that of a copy on this machine while it is needed."""
    if isinstance(path, Path):
        yield path
        return
    with scratch_folder() as folder, path.open() as source:
        copy = folder / "copy"
        with copy.open("wb") as target:
            shutil.copyfileobj(source, target, _COPY_BYTES)
        yield copy


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
    is_file = folder.is_file()
    occupied = not is_file and not overwrite and not _is_ours(folder)
    refuse_content(folder, is_file=is_file, occupied=occupied)


@contextmanager
def new_folder_at(folder: Address, *, overwrite: bool = False) -> Iterator[None]:
    """Marks `folder` as unfinished while the block writes it.

    The block calls `clear` before it writes files into the folder, and `check_ours` before it
    writes the file that makes the folder whole. If it fails before `clear`, the folder is as it
    was; later, it is empty. If the process is killed, the next run may replace it.

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
            marker = _marker(folder)
            if marker.get("run") == run:
                (folder if marker["all_is_of_unfinished_runs"] else folder / MARKER).remove()
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
