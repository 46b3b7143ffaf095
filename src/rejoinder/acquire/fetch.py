"""Downloads of data sets: resumed, checked, and clear about addresses that are dead."""

import contextlib
import http.client
import shutil
import urllib.error
import urllib.request
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from io import FileIO
from pathlib import Path, PurePosixPath
from typing import IO
from urllib.parse import urlparse

from rejoinder.acquire.inventory import presence
from rejoinder.acquire.layout import Added, add
from rejoinder.acquire.staging import held
from rejoinder.datasets.catalogue import DataSet
from rejoinder.datasets.files import sha256_of_file
from rejoinder.errors import InputError, RejoinderError
from rejoinder.files.hashed import sha256_of
from rejoinder.files.storage import refused
from rejoinder.version import VERSION

_FOLDER = ".downloads"
_PIECE = 1 << 18
_ATTEMPTS = 3
_TIMEOUT = 30.0
"""Seconds without a byte."""
_MOST = 8 << 30
_REDIRECTS = range(300, 400)

Progress = Callable[[str, int, int | None], None]
"""Name of the file, bytes there, all bytes if that is known."""


@dataclass(frozen=True)
class Failed:
    """A data set that could not be had, and why."""

    id: str
    reason: str


class _BrokenOffError(Exception):
    """The connection ended before the file did."""


def fetch(
    datasets: Sequence[DataSet],
    root: Path,
    progress: Progress,
    *,
    overwrite: bool = False,
    timeout: float = _TIMEOUT,
) -> Iterator[Added | Failed]:
    """Download data sets and lay them out; one that fails does not keep the others.

    What was downloaded of a set that failed stays for the next time.

    Raises:
        BusyError: another command is writing `root`.
        StorageError: `root` can't be written.
    """
    with held(root):
        yield from _fetch_all(datasets, root, progress, overwrite=overwrite, timeout=timeout)


def _fetch_all(
    datasets: Sequence[DataSet], root: Path, progress: Progress, *, overwrite: bool, timeout: float
) -> Iterator[Added | Failed]:
    uses = Counter(address for dataset in datasets for address in dataset.addresses)
    for dataset in datasets:
        try:
            yield _fetch_one(dataset, root, progress, overwrite=overwrite, timeout=timeout)
        except RejoinderError as error:
            yield Failed(dataset.id, str(error))
            continue
        for address in dataset.addresses:
            uses[address] -= 1
            if not uses[address]:
                shutil.rmtree(_place(root, address).parent, ignore_errors=True)
    with contextlib.suppress(OSError):  # it holds what failed, or was never made
        (root / _FOLDER).rmdir()


def _fetch_one(
    dataset: DataSet, root: Path, progress: Progress, *, overwrite: bool, timeout: float
) -> Added:
    if not overwrite and presence(root, dataset).state == "complete":
        return Added(dataset.id, (), (), (f"{dataset.name} is complete already.",))
    advice = f"Look for {dataset.look_for}, and hand it to `rejoinder data add {dataset.id} FILE`."
    if not dataset.addresses:
        pages = ", ".join(dataset.pages)
        raise InputError(f"{dataset.name} has no address to download from, see {pages}. {advice}")
    places = []
    for address in dataset.addresses:
        place = _place(root, address)
        expected = (dataset.sha256 or {}).get(place.name)
        download(address, place, progress, sha256=expected, advice=advice, timeout=timeout)
        places.append(place)
    try:
        return add([dataset], places, root, overwrite=overwrite)[0]
    except InputError as error:
        if "--overwrite" not in str(error):
            for place in places:  # another try shall not meet the same wrong bytes
                shutil.rmtree(place.parent, ignore_errors=True)
        raise InputError(f"what was downloaded is not used: {error} {advice}") from None


def download(
    address: str,
    place: Path,
    progress: Progress,
    *,
    sha256: str | None = None,
    advice: str = "",
    timeout: float = _TIMEOUT,
) -> None:
    """Download a file, or the rest of it; a `place` that is there already is left alone.

    Args:
        address: http or https.
        place: where it goes; until it is whole its name ends in `.part`.
        progress: is told of every piece.
        sha256: what it has to be.
        advice: what to do where it can't be had, for messages.
        timeout: seconds without a byte.

    Raises:
        InputError: the address is dead, the connection breaks off again and again, or the bytes
            are wrong.
        StorageError: the file can't be written: a full disk, missing rights.
    """
    if place.is_file():
        return
    if urlparse(address).scheme not in ("http", "https"):
        raise InputError(f"{address} is neither http nor https. {advice}")
    with _writing(place):
        place.parent.mkdir(parents=True, exist_ok=True)
    part = place.with_name(place.name + ".part")
    for attempt in range(1, _ATTEMPTS + 1):
        try:
            _attempt(address, part, progress, timeout)
            break
        except urllib.error.HTTPError as error:
            if error.code == http.HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE and part.exists():
                part.unlink()  # longer than the file: it was another one
                continue
            if error.code in _REDIRECTS:
                raise InputError(
                    f"{address} redirects without end, or to what is neither https nor as "
                    f"safe as the address ({error.url}). {advice}"
                ) from None
            raise InputError(f"{address} answers {error.code} {error.reason}. {advice}") from None
        except (_BrokenOffError, TimeoutError, ConnectionError, http.client.HTTPException) as error:
            if attempt == _ATTEMPTS:
                raise InputError(
                    f"{address} broke off {_ATTEMPTS} times, with {_size(part):,} bytes there "
                    f"({str(error) or type(error).__name__}); the same command goes on from them. "
                    f"{advice}"
                ) from None
        except (urllib.error.URLError, OSError, ValueError) as error:
            reason = getattr(error, "reason", None) or error
            raise InputError(f"{address} can't be reached: {reason}. {advice}") from None
    else:
        raise InputError(f"{address} refuses to send the file. {advice}")
    _check(address, part, sha256, advice)
    with _writing(place):
        part.replace(place)
        _validator(part).unlink(missing_ok=True)


class _Redirects(urllib.request.HTTPRedirectHandler):
    """Follows redirects to http and https, but none from https to http."""

    def redirect_request(
        self,
        req: urllib.request.Request,
        fp: IO[bytes],
        code: int,
        msg: str,
        headers: http.client.HTTPMessage,
        newurl: str,
    ) -> urllib.request.Request | None:
        """The next request."""
        allowed = ("https",) if req.type == "https" else ("http", "https")
        if urlparse(newurl).scheme not in allowed:
            raise urllib.error.HTTPError(newurl, code, msg, headers, fp)
        return super().redirect_request(req, fp, code, msg, headers, newurl)


@contextlib.contextmanager
def _writing(path: Path) -> Iterator[None]:
    """Let errors of the disk be told from errors of the network."""
    try:
        yield
    except OSError as error:
        raise refused(path, error) from None


def _attempt(address: str, part: Path, progress: Progress, timeout: float) -> None:
    """One connection, from where the last one ended."""
    there = _size(part)
    request = urllib.request.Request(  # noqa: S310 -- the scheme was checked
        address, headers={"User-Agent": f"rejoinder/{VERSION}"}
    )
    if there:
        request.add_header("Range", f"bytes={there}-")
        if _validator(part).is_file():
            request.add_header("If-Range", _validator(part).read_text("utf-8"))
    opener = urllib.request.build_opener(_Redirects)
    with opener.open(request, timeout=timeout) as response:
        begins = (response.headers.get("Content-Range") or "").startswith(f"bytes {there}-")
        resumed = response.status == http.HTTPStatus.PARTIAL_CONTENT and begins
        done = there if resumed else 0
        length = response.headers.get("Content-Length")
        total = done + int(length) if length and length.isdecimal() else None
        tag = response.headers.get("ETag") or response.headers.get("Last-Modified")
        if total is not None and total > _MOST:
            raise InputError(f"{address} sends {total:,} bytes, which no data set here has.")
        with _writing(part):
            if tag and not tag.startswith("W/"):  # weak ones don't say that bytes are the same
                _validator(part).write_text(tag, "utf-8")
            else:
                _validator(part).unlink(missing_ok=True)
            file = part.open("ab" if resumed else "wb", buffering=0)
        with file:
            done = _copy(response, file, done, lambda count: progress(address, count, total))
    if total is not None and done != total:
        raise _BrokenOffError(f"{done:,} of {total:,} bytes came")


def _copy(
    response: http.client.HTTPResponse, file: FileIO, done: int, tell: Callable[[int], None]
) -> int:
    tell(done)
    while piece := response.read(_PIECE):
        done += len(piece)
        if done > _MOST:
            raise InputError(f"more than {_MOST:,} bytes came, which no data set here has.")
        _write(file, piece)
        tell(done)
    return done


def _write(file: FileIO, piece: bytes) -> None:
    with _writing(Path(file.name)):
        while piece:
            piece = piece[file.write(piece) :]


def _check(address: str, part: Path, sha256: str | None, advice: str) -> None:
    """Refuse, and remove, what can't be the file."""
    with part.open("rb") as file:
        head = file.read(256).lstrip().lower()
    problem = ""
    if head.startswith((b"<!doctype html", b"<html")):
        problem = "sends a web page, not the file"
    elif sha256 and (digest := sha256_of_file(part)) != sha256:
        problem = f"sends other bytes than published: SHA-256 {digest}, not {sha256}"
    if problem:
        part.unlink()
        _validator(part).unlink(missing_ok=True)
        raise InputError(f"{address} {problem}. {advice}")


def _place(root: Path, address: str) -> Path:
    """Where a download goes; two addresses may end in the same name."""
    folder = sha256_of(address.encode())[:8]
    return root / _FOLDER / folder / PurePosixPath(urlparse(address).path).name


def _size(path: Path) -> int:
    return path.stat().st_size if path.is_file() else 0


def _validator(part: Path) -> Path:
    """Keeps what the server calls this version of the file."""
    return part.with_name(part.name + ".tag")
