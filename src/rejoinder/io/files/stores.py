"""Connections to stores of files, by pyarrow, and their errors in plain words."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from typing import Any

from rejoinder.errors import InputError, RejoinderError, StorageError, require

SCHEMES = {
    "s3": "s3",
    "s3a": "s3",  # Hadoop's name of it
    "gs": "gs",
    "abfs": "abfs",
    "abfss": "abfss",
    "hdfs": "hdfs",
}
"""Schemes of addresses, and what pyarrow calls them."""
_WHOLE_AT_ONCE = ("s3", "gcs", "abfs")
"""File systems whose files appear when their last byte is there."""
_DENIED = re.compile(
    r"ACCESS_DENIED|INVALID_ACCESS_KEY|SIGNATURE_DOES_NOT_MATCH|INVALID_SIGNATURE|EXPIRED_TOKEN|"
    r"INVALID_CLIENT_TOKEN|MISSING_AUTHENTICATION|HTTP status 40[13]|UNAUTHENTICATED|"
    r"PERMISSION_DENIED|OAuth2|no credentials",
    re.IGNORECASE,
)
_UNREACHABLE = re.compile(r"NETWORK_CONNECTION|curlCode|could not connect|resolve host", re.I)
NO_BUCKET = "NO_SUCH_BUCKET"
"""What an error says where the bucket or container of an address does not exist."""


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
def store_errors(address: object, store: str, *, writing: bool = False) -> Iterator[None]:
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
        cause = "there is no such file" if missing else _cause(str(error), store)
        if writing:
            raise StorageError(f"{address} can't be written: {cause}.") from None
        raise InputError(f"{address} can't be read: {cause}.") from None


def _cause(said: str, store: str) -> str:
    """Returns why a store refuses, for the end of a sentence."""
    if NO_BUCKET in said:
        return f"there is no bucket {store!r}; make it first, or name another"
    if _DENIED.search(said):
        return (
            "access is denied; on each machine that reads or writes, set AWS_ACCESS_KEY_ID and "
            "AWS_SECRET_ACCESS_KEY, AWS_PROFILE, or what your store has in their place"
        )
    if _UNREACHABLE.search(said):
        return (
            "its server does not answer; AWS_ENDPOINT_URL, or ?endpoint_override=HOST:PORT at the "
            "end of the address, names another server"
        )
    if "libjvm" in said or "libhdfs" in said:
        return "HDFS needs Java and Hadoop on this machine (JAVA_HOME, HADOOP_HOME, CLASSPATH)"
    return re.sub(r"(?<!\s)\s*+\(Request ID: .*", "", said.split("\n")[0]).rstrip(". ")[:300]
