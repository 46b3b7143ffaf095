"""Lays out data sets: copies local files and files of archives into SentEval's folders.

Also finds the data sets that are present, checks whether they are complete, and downloads others:
it resumes downloads, checks files, and reports dead addresses.
"""

import contextlib
import http
import shutil
import ssl
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import cache, partial
from itertools import count
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING
from urllib.parse import urlparse

from rejoinder.datasets.acquire.files import (
    CONVERTED_NAMES,
    Examined,
    converted,
    examine,
    is_archive,
    unpack,
)
from rejoinder.datasets.catalogue import (
    DataFile,
    DataSet,
    catalogue,
    content_of,
    existing_path,
    layout_path,
    read_bytes,
)
from rejoinder.errors import InputError, MissingExtraError, RejoinderError, require
from rejoinder.io.files.atomic import new_file
from rejoinder.io.files.claims import claim, part_of, refuse_inputs
from rejoinder.io.files.hashed import sha256_of, sha256_of_file
from rejoinder.io.files.storage import creation_errors, read_errors, refused
from rejoinder.io.formats.compression import OPENERS
from rejoinder.version import VERSION

if TYPE_CHECKING:
    import httpx


LOCK = "adding"
"""Commands that write to a folder of data sets claim this name in it."""


@dataclass(frozen=True)
class Added:
    """A data set that was laid out."""

    id: str
    files: tuple[str, ...]
    """Files that were written, or present with the same content."""
    missing: tuple[str, ...]
    """Needed files that are still missing."""
    notes: tuple[str, ...]
    """Changes to files and differences from published editions, one sentence each."""


@dataclass(frozen=True)
class _Plan:
    """The files to write for one data set."""

    dataset: DataSet
    matches: Mapping[DataFile, Examined]
    writes: Mapping[Path, bytes]
    """The content of every file of the layout, including licences and readmes."""
    faults: dict[Path, InputError]
    """Reasons why files with the name of a file of the set were not used."""


def add(
    datasets: Sequence[DataSet], sources: Sequence[Path], root: Path, *, overwrite: bool = False
) -> list[Added]:
    """Lays out the files of data sets in `sources` below `root`.

    The sources are files, archives or folders, with at least one of the data sets. Files that
    differ are replaced only with `overwrite`. All files are written before the first is renamed
    into place, so that a refused file or a full disk leaves everything unchanged.

    Returns:
        The data sets that were in `sources`.

    Raises:
        InputError: `sources` have no file of the data sets, a file is truncated or has another
            form, an archive is refused, an existing file would be lost, or a source is in `root`.
        BusyError: another command is writing `root`.
        StorageError: `root` can't be written: a full disk, missing rights.
    """
    for source in sources:
        with read_errors(source):
            if not source.is_file() and not source.is_dir():
                raise InputError(f"{source} does not exist; name an archive, a file or a folder.")
    refuse_inputs(root, sources)
    return lay_out(datasets, sources, root, overwrite=overwrite)


def lay_out(
    datasets: Sequence[DataSet], sources: Sequence[Path], root: Path, *, overwrite: bool
) -> list[Added]:
    """Lays out data sets like `add`, but sources may be in `root`."""
    with part_of(root / LOCK) as folder:
        with creation_errors(root):
            folder.mkdir()
        files = list(_gather(sources, datasets, folder))
        plans = [_plan(dataset, files, root) for dataset in datasets]
        used = {match.path for plan in plans for match in plan.matches.values()}
        for plan in plans:
            for path in used & plan.faults.keys():
                del plan.faults[path]
            _refuse_faults(plan)
        if not any(plan.matches for plan in plans):
            faults = plans[0].faults if len(plans) == 1 else {}
            raise next(iter(faults.values()), InputError(_no_file_message(datasets, sources)))
        plans = [plan for plan in plans if plan.matches]
        writes = {path: content for plan in plans for path, content in plan.writes.items()}
        same = {path for path in writes if path.is_file() and content_of(path) == writes[path]}
        lost = sorted(str(path) for path in writes.keys() - same if path.exists())
        if lost and not overwrite:
            raise InputError(
                f"{_few(lost)} would be replaced by another text. Allow it with "
                "`overwrite=True`, or name another folder with `data`."
            )
        with ExitStack() as stack:  # at its end, all of them are renamed into place
            for path, content in writes.items():
                if path in same:  # removes leftovers of a killed command
                    stack.enter_context(claim(path))
                else:
                    new = stack.enter_context(new_file(path))
                    new.write(content)
                    new.flush()
        return [_added(plan, root) for plan in plans]


def _gather(sources: Sequence[Path], datasets: Sequence[DataSet], into: Path) -> Iterator[Path]:
    """Yields all files in files, archives and folders. Archives are unpacked below `into`.

    A compressed file in a folder is used only if it has the name of a file of the data sets.
    """
    names = {*CONVERTED_NAMES, *(name for one in datasets for name in one.extras)}
    names.update(name for one in datasets for file in one.files for name in file.all_names)
    numbers = count()
    for source in sources:
        for path in _walk(source):
            is_packed = path.suffix in OPENERS and ".tar" not in path.name
            if path != source and is_packed and path.stem not in names:
                continue
            if path == source or is_archive(path):
                yield from unpack(path, into / str(next(numbers)))
            else:
                yield path


def _walk(source: Path) -> list[Path]:
    """Returns a file, or all files of a folder without hidden folders."""
    if source.is_file():
        return [source]
    with read_errors(source):
        return sorted(
            path
            for path in source.rglob("*")
            if path.is_file()
            and not any(part.startswith(".") for part in path.relative_to(source).parts[:-1])
        )


def _plan(dataset: DataSet, files: Sequence[Path], root: Path) -> _Plan:
    matches: dict[DataFile, Examined] = {}
    faults: dict[Path, InputError] = {}
    for file in dataset.files:
        if found := _recognised(file, dataset, files, faults):
            matches[file] = _only(found, file)
    present = {match.path: match.content for match in matches.values()}
    by_name = {file.name: file for file in dataset.files}
    for source, name, content in converted(dataset.id, files, present):
        if by_name[name] not in matches:
            examined = examine(content, source / name, by_name[name].kind)
            matches[by_name[name]] = replace(examined, path=source)
            _check_rows(matches[by_name[name]], by_name[name], dataset)
    writes = {layout_path(root, file): match.content for file, match in matches.items()}
    for file, match in matches.items():
        for extra in (match.path.with_name(name) for name in dataset.extras):
            if extra.is_file():
                writes[layout_path(root, file).with_name(extra.name)] = content_of(extra)
    return _Plan(dataset, matches, writes, faults)


def _recognised(
    file: DataFile, dataset: DataSet, paths: Iterable[Path], faults: dict[Path, InputError]
) -> list[Examined]:
    """Returns the paths with the name, form, rows and, if known, the text of a file.

    Other paths with its name are added to `faults`, unless they are known to be another file.
    """
    matches = []
    for path in paths:
        if path.name in file.all_names:
            try:
                examined = examine(content_of(path), path, file.kind)
                if _paths_by_letters().get(examined.letters, file.path) == file.path:
                    _check_rows(examined, file, dataset)
                    matches.append(examined)
            except InputError as error:
                faults[path] = error
    known = [match for match in matches if match.letters == file.letters]
    return known if file.letters and known else matches


@cache
def _paths_by_letters() -> dict[str, str]:
    """Returns paths in the layout by the fingerprints of known texts."""
    sets = catalogue().sets.values()
    return {file.letters: file.path for one in sets for file in one.files if file.letters}


def _check_rows(examined: Examined, file: DataFile, dataset: DataSet) -> None:
    """Refuses a file whose number of rows differs from the published number, if that is exact."""
    if dataset.exact and file.rows and examined.rows != file.rows:
        raise InputError(
            f"{examined.path} has {examined.rows:,} rows; the published {file.name} of "
            f"{dataset.name} has {file.rows:,}. Look for {dataset.look_for}."
        )


def _only(matches: Sequence[Examined], file: DataFile) -> Examined:
    """Returns the first match. All matches must have the same content."""
    for match in matches[1:]:
        if match.content != matches[0].content:
            both = f"{matches[0].path} and {match.path}"
            raise InputError(f"{both} could both be {file.path}, but differ. Name the right one.")
    return matches[0]


def _refuse_faults(plan: _Plan) -> None:
    """Refuses damaged files without an intact copy."""
    absent = [file for file in plan.dataset.files if file not in plan.matches]
    for path, fault in plan.faults.items():
        if not plan.dataset.common_names and any(path.name in file.all_names for file in absent):
            raise fault


def _no_file_message(datasets: Sequence[DataSet], sources: Sequence[Path]) -> str:
    wanted = []
    for one in datasets:
        names = ", ".join(file.name for file in one.files if file.needed)
        wanted.append(f"{one.name} ({names}; look for {one.look_for})")
    return f"{', '.join(map(str, sources))} has no file of {_few(wanted)}."


def _added(plan: _Plan, root: Path) -> Added:
    dataset, notes = plan.dataset, list(_about_files(plan))
    needed = [file for file in dataset.files if file.needed]
    missing = tuple(file.path for file in needed if not existing_path(root, dataset, file))
    if missing:
        lacking = f"{dataset.name} is incomplete without {_few(missing)}"
        notes.append(f"{lacking}. Look for {dataset.look_for}.")
    return Added(dataset.id, tuple(map(str, plan.writes)), missing, tuple(notes))


def _about_files(plan: _Plan) -> Iterator[str]:
    for file, examined in plan.matches.items():
        changes = list(examined.notes)
        if examined.path.name != file.name:
            changes.append(f"it was made of {examined.path.name}")
        if file.rows and examined.rows != file.rows:
            changes.append(f"it has {examined.rows:,} rows; the published file has {file.rows:,}")
        if file.letters and examined.letters != file.letters:
            changes.append("its text differs from the known edition")
        if changes:
            yield f"{file.path}: {'; '.join(changes)}."
    yield from (f"{path} was skipped: {fault}" for path, fault in plan.faults.items())
    if len(plan.matches) == len(plan.dataset.files):
        rows = sum(match.rows for match in plan.matches.values())
        yield from about_total(plan.dataset, rows)


def _few(names: Sequence[str]) -> str:
    more = f" and {len(names) - 3} more" if len(names) > 3 else ""
    return ", ".join(names[:3]) + more


_HEADER_BYTES = 1 << 20
"""Bytes at the start of a safetensors file that contain the size of its matrix."""


@dataclass(frozen=True)
class Presence:
    """The state of a data set: its present, missing and damaged files."""

    state: str
    """`complete`, `incomplete` (files are missing), `damaged` or `absent`."""
    missing: tuple[str, ...]
    """Needed files that are missing, by their paths in the layout."""
    problems: tuple[str, ...]
    """Wrong numbers of rows and damaged files, one sentence each."""
    notes: tuple[str, ...] = ()
    """Numbers of rows that differ from approximate published ones, one sentence each."""


def about_total(dataset: DataSet, rows: int) -> list[str]:
    """Returns a sentence if the files of a data set have another total number of rows."""
    if not dataset.total or rows == dataset.total:
        return []
    return [f"{dataset.name} has {rows:,} rows here; the literature says {dataset.total:,}."]


def presence(root: Path, dataset: DataSet) -> Presence:
    """Looks for the files of a data set below `root` and counts their rows."""
    missing: list[str] = []
    problems: list[str] = []
    notes: list[str] = []
    files = rows = 0
    for file in dataset.files:
        path = existing_path(root, dataset, file)
        if path is None:
            missing += [file.path] if file.needed else []
            continue
        files += 1
        try:
            if file.kind == "coco_features":
                with read_errors(path), path.open("rb") as stream:
                    content = stream.read(_HEADER_BYTES)
            else:
                content = read_bytes(path)
            count = examine(content, path, file.kind).rows
        except (InputError, MissingExtraError) as error:
            problems.append(str(error))
            continue
        rows += count
        if file.rows and count != file.rows:
            sentences = problems if dataset.exact else notes
            sentences.append(f"{path} has {count:,} rows; the published file has {file.rows:,}.")
    if files == len(dataset.files) and not problems:
        notes += about_total(dataset, rows)
    needed = sum(file.needed for file in dataset.files)
    absent = "absent" if len(missing) == needed else "incomplete"
    state = "damaged" if problems else absent if missing else "complete"
    return Presence(state, tuple(missing), tuple(problems), tuple(notes))


_FOLDER = ".downloads"
_ATTEMPTS = 3
_WAIT = 1.0
"""Seconds before the second attempt. The wait doubles with each attempt."""
_TIMEOUT = 30.0
"""Seconds without a byte after which a connection counts as broken."""
_MAX_BYTES = 8 << 30
_TRANSIENT = frozenset({408, 416, 429, 502, 503, 504})
"""Statuses after which another attempt may succeed. Before a 416 the partial file is removed."""

Progress = Callable[[str, int, int | None], None]
"""Called with the address, the number of bytes on disk, and the size of the file if known."""


@dataclass(frozen=True)
class Failed:
    """A data set that could not be downloaded, and why."""

    id: str
    reason: str


def fetch(
    datasets: Sequence[DataSet], root: Path, progress: Progress, *, overwrite: bool = False
) -> Iterator[Added | Failed]:
    """Downloads data sets and lays them out. If one fails, the others continue.

    The downloaded files of a failed set are kept for the next attempt. Complete sets are skipped,
    and files that differ are refused, unless `overwrite` is true.

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


def _fetch_set(dataset: DataSet, root: Path, progress: Progress, *, overwrite: bool) -> Added:
    if not overwrite and presence(root, dataset).state == "complete":
        return Added(dataset.id, (), (), (f"{dataset.name} is already complete.",))
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
            for path in paths:  # or the next attempt would read the same wrong bytes
                shutil.rmtree(path.parent, ignore_errors=True)
        what = f"The files downloaded for {dataset.name}"
        raise InputError(f"{what} are refused: {error} {advice}") from None


def download(
    address: str, path: Path, progress: Progress, *, sha256: str | None = None, advice: str = ""
) -> None:
    """Downloads a file, or the rest of it. An existing `path` is left unchanged.

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
    except OSError as error:  # of the disk; network errors are httpx.HTTPError
        raise refused(part, error) from None


def _receive(address: str, part: Path, progress: Progress) -> None:
    """Downloads into `part`, in several attempts if connections break."""
    import httpx
    from tenacity import Retrying, retry_if_exception, stop_after_attempt, wait_exponential

    broken = (httpx.ReadError, httpx.ReadTimeout, httpx.RemoteProtocolError)

    def is_transient(error: BaseException) -> bool:
        if isinstance(error, httpx.HTTPStatusError):
            return error.response.status_code in _TRANSIENT
        return isinstance(error, broken)

    stop, wait = stop_after_attempt(_ATTEMPTS), wait_exponential(_WAIT)
    attempts = Retrying(stop=stop, wait=wait, retry=retry_if_exception(is_transient), reraise=True)
    try:
        with httpx.Client(
            # compressed downloads could not be resumed
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
    except (httpx.HTTPError, httpx.InvalidURL, ValueError, ImportError) as error:
        # the last two come from a proxy set in the environment
        reason = str(error) or type(error).__name__
        if not isinstance(error, broken):
            raise InputError(f"{address} can't be reached: {reason}.") from None
        left = f"{address} broke off {_ATTEMPTS} times, after {_size(part):,} bytes ({reason})"
        raise InputError(f"{left}. Run the same command again to resume.") from None


def _refuse_unsafe_redirect(address: str, response: "httpx.Response") -> None:
    """Allows redirects only to http and https, and never from https to http."""
    if response.has_redirect_location:
        target = response.headers["Location"]
        if response.url.join(target).scheme not in ("https", response.url.scheme):
            raise InputError(f"{address} redirects to {target}. Only https is followed.")


def _attempt(client: "httpx.Client", address: str, part: Path, progress: Progress) -> None:
    """Downloads over one connection, from where the previous one ended."""
    import httpx

    size, tag_path = _size(part), _tag_of(part)
    headers = {"Range": f"bytes={size}-"} if size else {}
    if size and tag_path.is_file():
        headers["If-Range"] = tag_path.read_text("utf-8")
    with client.stream("GET", address, headers=headers) as response:
        if response.status_code == http.HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE:
            part.unlink(missing_ok=True)  # longer than the file, so part of another file
        response.raise_for_status()
        resumed = size > 0 and response.status_code == http.HTTPStatus.PARTIAL_CONTENT
        received = response.headers.get("Content-Range", "")
        if resumed and not received.startswith(f"bytes {size}-"):
            part.unlink()
            raise httpx.RemoteProtocolError(f"it sent {received!r} for the range from {size} on")
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
