"""Lays out data sets: copies local files and files of archives into SentEval's folders.

Finds data sets that are present, and checks whether they are complete.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import cache
from itertools import count
from pathlib import Path

from rejoinder.datasets.acquire.archives import CONVERTED_NAMES, converted, is_archive, unpack
from rejoinder.datasets.acquire.forms import Examined, examine
from rejoinder.datasets.catalogue import (
    DataFile,
    DataSet,
    catalogue,
    content_of,
    existing_path,
    layout_path,
    read_bytes,
)
from rejoinder.errors import InputError, MissingExtraError
from rejoinder.io.files.atomic import new_file
from rejoinder.io.files.claims import claim, part_of, refuse_inputs
from rejoinder.io.files.storage import creation_errors, read_errors
from rejoinder.io.formats.compression import OPENERS

LOCK = "adding"
"""Commands that write a folder of data sets claim this name in it."""


@dataclass(frozen=True)
class Added:
    """A data set that was laid out."""

    id: str
    files: tuple[str, ...]
    """Files that were written or were present with the same content."""
    missing: tuple[str, ...]
    """Needed files that are still missing."""
    notes: tuple[str, ...]
    """Changes to files and differences from published editions, one sentence each."""


@dataclass(frozen=True)
class _Match:
    """A file of a data set that was recognised."""

    path: Path
    examined: Examined


@dataclass(frozen=True)
class _Plan:
    """The files to write for one data set."""

    dataset: DataSet
    matches: Mapping[DataFile, _Match]
    writes: Mapping[Path, bytes]
    """The content of every file of the layout, licences and readmes included."""
    faults: dict[Path, InputError]
    """Why files that have the name of a file of the set were not used."""


def add(
    datasets: Sequence[DataSet], sources: Sequence[Path], root: Path, *, overwrite: bool = False
) -> list[Added]:
    """Lays out the files of data sets that `sources` hold below `root`.

    The sources are files, archives or folders, with at least one of the data sets. Files that
    differ are replaced only with `overwrite`. All files are written before the first one is
    renamed into place, so that a refused file or a full disk leaves everything as it was.

    Returns:
        The data sets that were in `sources`.

    Raises:
        InputError: `sources` have no file of the data sets, a file is cut or of another form, an
            archive is refused, an existing file would be lost, or a source lies in `root`.
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
    """Lays out data sets as `add` does, from sources that may lie in `root`."""
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
        plans = [plan for plan in plans if plan.matches]
        if not plans:
            raise InputError(_no_file_message(datasets, sources))
        writes = {path: content for plan in plans for path, content in plan.writes.items()}
        changes = {
            path
            for path, content in writes.items()
            if not path.is_file() or content_of(path) != content
        }
        if not overwrite and (lost := sorted(str(path) for path in changes if path.exists())):
            raise InputError(
                f"{_few(lost)} would be replaced by another text. Allow it with "
                "`overwrite=True`, or name another folder with `data`."
            )
        with ExitStack() as stack:  # at its end, all of them are renamed into place
            for path, content in writes.items():
                if path in changes:
                    new = stack.enter_context(new_file(path))
                    new.write(content)
                    new.flush()
                else:  # removes what a killed command left next to it
                    stack.enter_context(claim(path))
        return [_added(plan, root) for plan in plans]


def _gather(sources: Sequence[Path], datasets: Sequence[DataSet], into: Path) -> Iterator[Path]:
    """Yields all files of files, archives and folders. Archives are unpacked below `into`.

    A compressed file in a folder is used only if its name is that of a file of the data sets.
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
    matches: dict[DataFile, _Match] = {}
    faults: dict[Path, InputError] = {}
    for file in dataset.files:
        if found := _recognised(file, dataset, files, faults):
            matches[file] = _only(found, file)
    present = {match.path: match.examined.content for match in matches.values()}
    by_name = {file.name: file for file in dataset.files}
    for source, name, content in converted(dataset.id, files, present):
        if by_name[name] not in matches:
            examined = examine(content, source / name, by_name[name].kind)
            _check_rows(source, examined, by_name[name], dataset)
            matches[by_name[name]] = _Match(source, examined)
    writes = {layout_path(root, file): match.examined.content for file, match in matches.items()}
    for file, match in matches.items():
        for extra in (match.path.with_name(name) for name in dataset.extras):
            if extra.is_file():
                writes[layout_path(root, file).with_name(extra.name)] = content_of(extra)
    return _Plan(dataset, matches, writes, faults)


def _recognised(
    file: DataFile, dataset: DataSet, paths: Iterable[Path], faults: dict[Path, InputError]
) -> list[_Match]:
    """Returns the paths that have the name, form, rows and, if it is known, text of a file.

    Other paths with its name are added to `faults`, unless they are known to be another file.
    """
    matches = []
    for path in paths:
        if path.name in file.all_names:
            try:
                examined = examine(content_of(path), path, file.kind)
                if _paths_by_letters().get(examined.letters, file.path) == file.path:
                    _check_rows(path, examined, file, dataset)
                    matches.append(_Match(path, examined))
            except InputError as error:
                faults[path] = error
    known = [match for match in matches if match.examined.letters == file.letters]
    return known if file.letters and known else matches


@cache
def _paths_by_letters() -> dict[str, str]:
    """Returns paths in the layout by the fingerprints of known texts."""
    sets = catalogue().sets.values()
    return {file.letters: file.path for one in sets for file in one.files if file.letters}


def _check_rows(path: Path, examined: Examined, file: DataFile, dataset: DataSet) -> None:
    """Refuses a file with another number of rows than was published, if that is exact."""
    if dataset.exact and file.rows and examined.rows != file.rows:
        raise InputError(
            f"{path} has {examined.rows:,} rows; the published {file.name} of {dataset.name} has "
            f"{file.rows:,}. It is cut or another edition. Look for {dataset.look_for}."
        )


def _only(matches: Sequence[_Match], file: DataFile) -> _Match:
    """Returns the first match. All of them must have the same content."""
    for match in matches[1:]:
        if match.examined.content != matches[0].examined.content:
            raise InputError(
                f"{matches[0].path} and {match.path} could both be {file.path}, but differ. "
                "Name only the right one."
            )
    return matches[0]


def _refuse_faults(plan: _Plan) -> None:
    """Refuses damaged files that have no whole copy."""
    names = {name for file in plan.dataset.files if file not in plan.matches
             for name in file.all_names}  # fmt: skip
    for path, fault in plan.faults.items():
        # files of COCO have common names, such as train.json
        if path.name in names and plan.dataset.id != "coco":
            raise fault


def _no_file_message(datasets: Sequence[DataSet], sources: Sequence[Path]) -> str:
    wanted = [
        f"{one.name} ({', '.join(file.name for file in one.files if file.needed)}; look for "
        f"{one.look_for})"
        for one in datasets
    ]
    return f"{', '.join(map(str, sources))} has no file of {_few(wanted)}."


def _added(plan: _Plan, root: Path) -> Added:
    dataset = plan.dataset
    notes = list(_about_files(plan))
    missing = tuple(
        file.path
        for file in dataset.files
        if file.needed and not existing_path(root, dataset, file)
    )
    if missing:
        notes.append(
            f"{dataset.name} is incomplete without {_few(missing)}. Look for {dataset.look_for}."
        )
    return Added(dataset.id, tuple(map(str, plan.writes)), missing, tuple(notes))


def _about_files(plan: _Plan) -> Iterator[str]:
    for file, match in plan.matches.items():
        examined, changes = match.examined, list(match.examined.notes)
        if match.path.name != file.name:
            changes.append(f"it was made of {match.path.name}")
        if file.rows and examined.rows != file.rows:
            changes.append(f"it has {examined.rows:,} rows; the published file has {file.rows:,}")
        if file.letters and examined.letters != file.letters:
            changes.append("its text differs from the known edition")
        if changes:
            yield f"{file.path}: {'; '.join(changes)}."
    yield from (f"{path} was skipped: {fault}" for path, fault in plan.faults.items())
    if len(plan.matches) == len(plan.dataset.files):
        rows = sum(match.examined.rows for match in plan.matches.values())
        yield from about_total(plan.dataset, rows)


def _few(names: Sequence[str]) -> str:
    more = f" and {len(names) - 3} more" if len(names) > 3 else ""
    return ", ".join(names[:3]) + more


_HEADER_BYTES = 1 << 20
"""Bytes at the start of a safetensors file, which hold the size of its matrix."""


@dataclass(frozen=True)
class Presence:
    """Which files of a data set are present."""

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
