"""Downloads data sets: resumes downloads, checks files, and reports dead addresses."""

import contextlib
import http
import shutil
import ssl
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING
from urllib.parse import urlparse

from rejoinder.datasets.acquire.layout import LOCK, Added, lay_out, presence
from rejoinder.datasets.catalogue import DataSet
from rejoinder.errors import InputError, RejoinderError, require
from rejoinder.io.files.claims import claim
from rejoinder.io.files.hashed import sha256_of, sha256_of_file
from rejoinder.io.files.storage import refused
from rejoinder.version import VERSION

if TYPE_CHECKING:
    import httpx

_FOLDER = ".downloads"
_ATTEMPTS = 3
_WAIT = 1.0
"""Seconds before the second attempt. The wait doubles with each attempt."""
_TIMEOUT = 30.0
"""Seconds without a byte, after which a connection counts as broken."""
_MAX_BYTES = 8 << 30
_TRANSIENT = frozenset({408, 416, 429, 502, 503, 504})
"""Statuses after which another attempt may succeed. Before a 416 the partial file is removed."""

DownloadProgress = Callable[[str, int, int | None], None]
"""Called with the address, the number of bytes on disk, and the size of the file if known."""


@dataclass(frozen=True)
class Failed:
    """A data set that could not be downloaded, and why."""

    id: str
    reason: str


def fetch(
    datasets: Sequence[DataSet],
    root: Path,
    progress: DownloadProgress,
    *,
    overwrite: bool = False,
) -> Iterator[Added | Failed]:
    """Downloads data sets and lays them out. The others go on if one fails.

    The downloaded files of a set that failed are kept for the next attempt. Complete sets are
    skipped, and files that differ are refused, unless `overwrite` is true.

    Raises:
        BusyError: another command is writing `root`.
        StorageError: `root` can't be written.
    """
    with claim(root / LOCK):
        unused = {address for dataset in datasets for address in dataset.addresses}
        for dataset in datasets:
            try:
                yield _fetch_set(dataset, root, progress, overwrite=overwrite)
            except RejoinderError as error:
                unused.difference_update(dataset.addresses)
                yield Failed(dataset.id, str(error))
        for address in unused:
            shutil.rmtree(_path_of(root, address).parent, ignore_errors=True)
        with contextlib.suppress(OSError):  # keeps the files of failed sets, or was never made
            (root / _FOLDER).rmdir()


def _fetch_set(
    dataset: DataSet, root: Path, progress: DownloadProgress, *, overwrite: bool
) -> Added:
    if not overwrite and presence(root, dataset).state == "complete":
        return Added(dataset.id, (), (), (f"{dataset.name} is complete already.",))
    advice = f"Look for {dataset.look_for}, and run `rejoinder data add {dataset.id} FILE`."
    if not dataset.addresses:
        pages = ", ".join(dataset.pages)
        raise InputError(f"{dataset.name} has no address to download from; see {pages}. {advice}")
    paths = []
    for address in dataset.addresses:
        path = _path_of(root, address)
        sha256 = (dataset.sha256 or {}).get(path.name)
        download(address, path, progress, sha256=sha256, advice=advice)
        paths.append(path)
    try:
        return lay_out([dataset], paths, root, overwrite=overwrite)[0]
    except InputError as error:
        if "overwrite=True" not in str(error):
            for path in paths:  # otherwise the next attempt would read the same wrong bytes
                shutil.rmtree(path.parent, ignore_errors=True)
        raise InputError(
            f"The files downloaded for {dataset.name} are refused: {error} {advice}"
        ) from None


def download(
    address: str,
    path: Path,
    progress: DownloadProgress,
    *,
    sha256: str | None = None,
    advice: str = "",
) -> None:
    """Downloads a file, or the rest of it. A `path` that exists already is left alone.

    Until the file is complete, its bytes are in `path` with `.part` appended. A `sha256` of None
    allows any bytes. `advice` ends error messages.
    """
    if path.is_file():
        return
    require("data", "httpx", "tenacity")
    part = path.with_name(path.name + ".part")
    try:
        part.parent.mkdir(parents=True, exist_ok=True)
        _receive(address, part, progress)
        if sha256 and (actual := sha256_of_file(part)) != sha256:
            part.unlink()
            _tag_of(part).unlink(missing_ok=True)
            raise InputError(f"{address} sends a file with SHA-256 {actual}; expected {sha256}.")
        part.replace(path)
        _tag_of(part).unlink(missing_ok=True)
    except InputError as error:
        raise InputError(f"{error} {advice}".rstrip()) from None
    except OSError as error:  # of the disk; those of the network are httpx.HTTPError
        raise refused(part, error) from None


def _receive(address: str, part: Path, progress: DownloadProgress) -> None:
    """Downloads into `part`, in several attempts if connections break."""
    import httpx
    from tenacity import Retrying, retry_if_exception, stop_after_attempt, wait_exponential

    broken = (httpx.ReadError, httpx.ReadTimeout, httpx.RemoteProtocolError)

    def is_transient(error: BaseException) -> bool:
        if isinstance(error, httpx.HTTPStatusError):
            return error.response.status_code in _TRANSIENT
        return isinstance(error, broken)

    attempts = Retrying(
        stop=stop_after_attempt(_ATTEMPTS),
        wait=wait_exponential(_WAIT),
        retry=retry_if_exception(is_transient),
        reraise=True,
    )
    try:
        with httpx.Client(
            # compressed bytes could not be resumed
            headers={"User-Agent": f"rejoinder/{VERSION}", "Accept-Encoding": "identity"},
            timeout=_TIMEOUT,
            follow_redirects=True,
            event_hooks={"response": [partial(_refuse_unsafe_redirect, address)]},
            verify=ssl.create_default_context(),  # trusts the certificates of this machine
        ) as client:
            attempts(_attempt, client, address, part, progress)
    except InputError:
        raise
    except httpx.HTTPStatusError as error:
        status = f"{error.response.status_code} {error.response.reason_phrase}"
        raise InputError(f"{address} responds with {status.strip()}.") from None
    except broken as error:
        raise InputError(
            f"{address} broke off {_ATTEMPTS} times, after {_size(part):,} bytes "
            f"({str(error) or type(error).__name__}). Run the same command again to resume."
        ) from None
    except (httpx.HTTPError, httpx.InvalidURL, ValueError, ImportError) as error:
        # the last two come from a proxy that the environment names
        reason = str(error) or type(error).__name__
        raise InputError(f"{address} can't be reached: {reason}.") from None


def _refuse_unsafe_redirect(address: str, response: "httpx.Response") -> None:
    """Lets redirects lead to http and https only, and never from https to http."""
    if response.has_redirect_location:
        target = response.headers["Location"]
        if response.url.join(target).scheme not in ("https", response.url.scheme):
            raise InputError(
                f"{address} redirects to {target}. Only https is followed, or http from an http "
                "address."
            )


def _attempt(client: "httpx.Client", address: str, part: Path, progress: DownloadProgress) -> None:
    """Downloads over one connection, from where the previous one ended."""
    import httpx

    size, tag_path = _size(part), _tag_of(part)
    headers = {"Range": f"bytes={size}-"} if size else {}
    if size and tag_path.is_file():
        headers["If-Range"] = tag_path.read_text("utf-8")
    with client.stream("GET", address, headers=headers) as response:
        if response.status_code == http.HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE:
            part.unlink(missing_ok=True)  # longer than the file: part of another file
        response.raise_for_status()
        resumed = size > 0 and response.status_code == http.HTTPStatus.PARTIAL_CONTENT
        received = response.headers.get("Content-Range", "")
        if resumed and not received.startswith(f"bytes {size}-"):
            part.unlink()
            raise httpx.RemoteProtocolError(
                f"it sent {received!r} for the range that begins at {size}"
            )
        done = size if resumed else 0
        length = response.headers.get("Content-Length", "")
        total = done + int(length) if length.isdecimal() else None
        tag = response.headers.get("ETag") or response.headers.get("Last-Modified", "")
        with part.open("ab" if resumed else "wb", buffering=0) as file:
            tag_path.unlink(missing_ok=True)
            if tag and not tag.startswith("W/"):  # a weak tag does not identify the bytes
                tag_path.write_text(tag, "utf-8")
            progress(address, done, total)
            for piece in response.iter_raw():
                done += len(piece)
                if max(done, total or 0) > _MAX_BYTES:
                    raise InputError(f"{address} sends more than the allowed {_MAX_BYTES:,} bytes.")
                while piece:
                    piece = piece[file.write(piece) :]
                progress(address, done, total)


def _path_of(root: Path, address: str) -> Path:
    """Returns the path of a download, in a separate folder for each address."""
    folder = sha256_of(address.encode())[:8]
    return root / _FOLDER / folder / PurePosixPath(urlparse(address).path).name


def _size(path: Path) -> int:
    return path.stat().st_size if path.is_file() else 0


def _tag_of(part: Path) -> Path:
    """Returns the path of the server's tag for this version of the file."""
    return part.with_name(part.name + ".tag")
