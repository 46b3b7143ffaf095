"""Lays out data sets: copies local files and files of archives into SentEval's folders."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from rejoinder.datasets.acquire.archives import is_archive
from rejoinder.datasets.acquire.conversions import converted
from rejoinder.datasets.acquire.forms import Examined
from rejoinder.datasets.acquire.inventory import about_total
from rejoinder.datasets.acquire.recognition import Match, Recogniser, check_rows
from rejoinder.datasets.acquire.sources import check_sources, gather, walk
from rejoinder.datasets.acquire.staging import scratch, write_together
from rejoinder.datasets.catalogue import DataFile, DataSet, existing_path, layout_path
from rejoinder.datasets.files import content_of
from rejoinder.errors import InputError
from rejoinder.io.files.hashed import sha256_of_file
from rejoinder.io.files.storage import read_errors


@dataclass(frozen=True)
class Added:
    """A data set that was laid out."""

    id: str
    files: tuple[str, ...]
    """Files that were written or were present with the same content."""
    missing: tuple[str, ...]
    """Needed files that are still missing."""
    notes: tuple[str, ...]
    """Changes to files, differences from published editions and so on, a sentence each."""


@dataclass(frozen=True)
class _Plan:
    """The files to write for one data set."""

    dataset: DataSet
    matches: Mapping[DataFile, Match]
    contents: Mapping[DataFile, Examined]
    """The files of `matches`, and those that are converted from others."""
    writes: Mapping[Path, bytes]
    """The content of every file of the layout."""
    same: frozenset[Path]
    """The paths of `writes` that have this content already."""


def add(
    datasets: Sequence[DataSet], sources: Sequence[Path], root: Path, *, overwrite: bool = False
) -> list[Added]:
    """Lays out the files of data sets that `sources` hold below `root`: all of them, or none.

    The sources are files, archives or folders, with at least one of the data sets. Files that
    differ are replaced only with `overwrite`.

    Returns:
        The data sets that were in `sources`.

    Raises:
        InputError: `sources` have no file of the data sets, a file is cut or of another form, an
            archive is refused, or an existing file would be lost.
        BusyError: another command is writing `root`.
        StorageError: `root` can't be written: a full disk, missing rights.
    """
    check_sources(sources)
    with scratch(root) as folder:
        files = gather(sources, datasets, folder)
        recogniser = Recogniser(files)
        plans = [_plan(dataset, recogniser, files, root) for dataset in datasets]
        plans = [plan for plan in plans if plan.contents]
        if not plans:
            raise InputError(_no_file_message(datasets, sources))
        changes = {
            path: content
            for plan in plans
            for path, content in plan.writes.items()
            if path not in plan.same
        }
        if not overwrite and (lost := sorted(str(path) for path in changes if path.exists())):
            raise InputError(
                f"{_few(lost)} would be replaced by another text; allow it with --overwrite, or "
                "name another folder of data sets."
            )
        write_together(root, changes)
        return [_added(plan, sources, root) for plan in plans]


def _no_file_message(datasets: Sequence[DataSet], sources: Sequence[Path]) -> str:
    searched = ", ".join(map(str, sources))
    wanted = "; ".join(_description(dataset) for dataset in datasets[:3])
    more = f"; and {len(datasets) - 3} more sets" if len(datasets) > 3 else ""
    return f"{searched} has no file of {wanted}{more}."


def _description(dataset: DataSet) -> str:
    files = [file for file in dataset.files if file.needed][:4]
    names = ", ".join(
        f"{file.name} ({file.rows:,} rows)" if file.rows else file.name for file in files
    )
    return f"{dataset.name}, which is {names} …; look for {dataset.look_for}"


def _plan(dataset: DataSet, recogniser: Recogniser, files: Sequence[Path], root: Path) -> _Plan:
    matches = recogniser.find(dataset)
    contents = {file: match.examined for file, match in matches.items()}
    for file, (source, examined) in converted(dataset, files, contents).items():
        check_rows(source, examined, file, dataset)
        contents[file] = examined
    paths = {file: layout_path(root, file) for file in contents}
    writes = {paths[file]: examined.content for file, examined in contents.items()}
    writes |= _extras(dataset, matches, paths)
    same = frozenset(
        path for path, content in writes.items() if path.is_file() and content_of(path) == content
    )
    return _Plan(dataset, matches, contents, writes, same)


def _added(plan: _Plan, sources: Sequence[Path], root: Path) -> Added:
    dataset = plan.dataset
    notes = [*_about_archives(dataset, sources), *_about_files(plan)]
    if plan.same:
        notes.append(f"{len(plan.same)} of {len(plan.writes)} files were there already.")
    missing = tuple(
        file.path
        for file in dataset.files
        if file.needed and not existing_path(root, dataset, file)
    )
    if missing:
        notes.append(
            f"{dataset.name} is incomplete without {_few(missing)}; look for {dataset.look_for}."
        )
    return Added(dataset.id, tuple(map(str, plan.writes)), missing, tuple(notes))


def _extras(
    dataset: DataSet, matches: Mapping[DataFile, Match], paths: Mapping[DataFile, Path]
) -> dict[Path, bytes]:
    """Returns the licences and readmes beside the source files, with the paths to write."""
    extras = {}
    for file, match in matches.items():
        for name in dataset.extras:
            beside = match.path.with_name(name)
            if beside.is_file():
                extras[paths[file].with_name(name)] = content_of(beside)
    return extras


def _about_archives(dataset: DataSet, sources: Sequence[Path]) -> Iterator[str]:
    official = dataset.sha256 or {}
    files = [path for source in sources for path in walk(source)] if official else []
    for path in files:
        if path.name not in official and not (path in sources and is_archive(path)):
            continue
        with read_errors(path):
            digest = sha256_of_file(path)
        if digest in official.values():
            yield f"{path.name} is the official archive, by its SHA-256."
        else:
            known = official.get(path.name) or " or ".join(official.values())
            yield (
                f"{path.name} is not the official archive: its SHA-256 is {digest}, not {known}. "
                "It was taken by its content."
            )


def _about_files(plan: _Plan) -> Iterator[str]:
    dataset = plan.dataset
    for file, examined in plan.contents.items():
        changes = list(examined.notes)
        match = plan.matches.get(file)
        if match and match.path.name != file.name:
            changes.append(f"it was {match.path.name}")
        if file.rows and examined.rows != file.rows:
            changes.append(f"it has {examined.rows:,} rows, not the published {file.rows:,}")
        if file.letters and examined.letters != file.letters:
            changes.append("its text differs from that of the known edition")
        if changes:
            yield f"{file.path}: {'; '.join(changes)}."
        if match:
            yield from match.skipped
    unchanged = sum(not examined.notes for examined in plan.contents.values())
    if unchanged:
        yield f"{unchanged} files of {dataset.name} have the bytes of their source."
    rows = sum(examined.rows for examined in plan.contents.values())
    if len(plan.contents) == len(dataset.files):
        yield from about_total(dataset, rows)


def _few(names: Sequence[str]) -> str:
    more = f" and {len(names) - 3} more" if len(names) > 3 else ""
    return ", ".join(names[:3]) + more
