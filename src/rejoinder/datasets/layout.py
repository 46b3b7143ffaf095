"""Laying out a data set: local files, folders or archives into SentEval's folders."""

import os
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from rejoinder.datasets.archives import is_archive, unpack
from rejoinder.datasets.catalogue import DataFile, DataSet, found_at, place_of
from rejoinder.datasets.conversions import COCO_NAMES, converted
from rejoinder.datasets.files import sha256_of_file
from rejoinder.datasets.forms import Examined
from rejoinder.datasets.recognition import Recogniser, check_rows
from rejoinder.errors import InputError
from rejoinder.files.atomic import write_bytes

_PACKED = (".gz", ".bz2", ".xz", ".zst")


@dataclass(frozen=True)
class Added:
    """What became of one data set."""

    id: str
    files: tuple[str, ...]
    """Laid out now, or there already."""
    missing: tuple[str, ...]
    """Needed, and still not there."""
    notes: tuple[str, ...]
    """What was changed and what is worth knowing, a sentence each."""


def add(
    datasets: Sequence[DataSet], sources: Sequence[Path], root: Path, *, overwrite: bool = False
) -> list[Added]:
    """Lay out below `root` what `sources` hold of the data sets.

    Args:
        datasets: which; of several those that are found.
        sources: files, archives or folders.
        root: the folder of data sets.
        overwrite: replace files that are there and differ.

    Raises:
        InputError: nothing is found, a file is cut or of another form, an archive is refused, or a
            file that is there would be lost.
    """
    with _gathered(sources, _names(datasets)) as files:
        recogniser = Recogniser(files)
        results = []
        for dataset in datasets:
            found = recogniser.find(dataset)
            made = converted(dataset, files, {file: one for file, (_, one) in found.items()})
            if found or made:
                results.append(_lay_out(dataset, found, made, sources, root, overwrite))
    if not results:
        looked = ", ".join(map(str, sources))
        wanted = "; ".join(_description(dataset) for dataset in datasets[:3])
        more = f"; and {len(datasets) - 3} more sets" if len(datasets) > 3 else ""
        raise InputError(f"{looked} has no file of {wanted}{more}.")
    return results


def _description(dataset: DataSet) -> str:
    files = [file for file in dataset.files if file.needed][:4]
    names = ", ".join(
        f"{file.name} ({file.rows:,} rows)" if file.rows else file.name for file in files
    )
    return f"{dataset.name}, which is {names} …; look for {dataset.look_for}"


@contextmanager
def _gathered(sources: Sequence[Path], names: frozenset[str]) -> Iterator[list[Path]]:
    """All files of the sources; archives are unpacked into a folder that goes away again."""
    with tempfile.TemporaryDirectory(prefix="rejoinder-data-") as place:
        files: list[Path] = []
        archives = 0
        for source in sources:
            if not source.exists():
                raise InputError(f"{source} is not there; name an archive, a file or a folder.")
            for path in _walk(source):
                if path != source and not _of_interest(path, names):
                    continue
                if path == source or is_archive(path):
                    archives += 1
                    files += unpack(path, Path(place) / str(archives))
                else:
                    files.append(path)
        yield files


def _walk(source: Path) -> Iterator[Path]:
    if not source.is_dir():
        yield source
        return
    for folder, _, names in os.walk(source):
        yield from (Path(folder) / name for name in sorted(names))


def _of_interest(path: Path, names: frozenset[str]) -> bool:
    """Whether a file of a folder is opened: a compressed one only if its name says so."""
    if path.suffix not in _PACKED or ".tar" in path.name:
        return True
    return path.stem in names


def _names(datasets: Sequence[DataSet]) -> frozenset[str]:
    own = {
        name
        for dataset in datasets
        for file in dataset.files
        for name in (file.name, *file.names, *dataset.extras)
    }
    return frozenset(own | COCO_NAMES)


def _lay_out(
    dataset: DataSet,
    found: dict[DataFile, tuple[Path, Examined]],
    made: dict[DataFile, Examined],
    sources: Sequence[Path],
    root: Path,
    overwrite: bool,
) -> Added:
    contents = {file: one for file, (_, one) in found.items()} | made
    for file, one in made.items():
        check_rows(sources[0], one, file, dataset)
    places = {file: place_of(root, file) for file in contents}
    writes = {places[file]: one.content for file, one in contents.items()}
    writes |= _extras(dataset, found, places)
    same = {place for place, content in writes.items() if _holds(place, content)}
    if not overwrite:
        _refuse_loss(writes.keys() - same)
    for place, content in writes.items():
        if place not in same:
            write_bytes(place, content)
    notes = [*_about_archives(dataset, sources), *_about_files(dataset, found, contents)]
    if kept := len(same):
        notes.append(f"{kept} of {len(writes)} files were there already.")
    missing = tuple(
        file.path for file in dataset.files if file.needed and not found_at(root, dataset, file)
    )
    if missing:
        notes.append(
            f"{dataset.name} is incomplete without {_few(missing)}; look for {dataset.look_for}."
        )
    return Added(dataset.id, tuple(map(str, writes)), missing, tuple(notes))


def _extras(
    dataset: DataSet,
    found: dict[DataFile, tuple[Path, Examined]],
    places: dict[DataFile, Path],
) -> dict[Path, bytes]:
    """Licences and readmes beside the files that were found."""
    extras = {}
    for file, (path, _) in found.items():
        for name in dataset.extras:
            beside = path.with_name(name)
            if beside.is_file():
                extras[places[file].with_name(name)] = beside.read_bytes()
    return extras


def _holds(place: Path, content: bytes) -> bool:
    return place.is_file() and place.read_bytes() == content


def _refuse_loss(places: set[Path]) -> None:
    if lost := sorted(str(place) for place in places if place.exists()):
        raise InputError(
            f"{_few(lost)} would be replaced by another text; allow it with --overwrite, or name "
            "another folder of data sets."
        )


def _about_archives(dataset: DataSet, sources: Sequence[Path]) -> Iterator[str]:
    official = dataset.sha256 or {}
    files = [path for source in sources for path in _walk(source)] if official else []
    for path in files:
        if path.name not in official and not (path in sources and is_archive(path)):
            continue
        digest = sha256_of_file(path)
        if digest in official.values():
            yield f"{path.name} is the official archive, by its SHA-256."
        else:
            known = official.get(path.name) or " or ".join(official.values())
            yield (
                f"{path.name} is not the official archive: its SHA-256 is {digest}, not {known}. "
                "It was taken by its content."
            )


def _about_files(
    dataset: DataSet,
    found: dict[DataFile, tuple[Path, Examined]],
    contents: dict[DataFile, Examined],
) -> Iterator[str]:
    for file, one in contents.items():
        changes = list(one.notes)
        if file in found and found[file][0].name != file.name:
            changes.append(f"it was {found[file][0].name}")
        if file.rows and one.rows != file.rows:
            changes.append(f"it has {one.rows:,} rows, not the published {file.rows:,}")
        if file.letters and one.letters != file.letters:
            changes.append("its text differs from that of the known edition")
        if changes:
            yield f"{file.path}: {'; '.join(changes)}."
    unchanged = sum(not one.notes for one in contents.values())
    if unchanged:
        yield f"{unchanged} files of {dataset.name} have the bytes of their source."
    rows = sum(one.rows for one in contents.values())
    if dataset.total and len(contents) == len(dataset.files) and rows != dataset.total:
        yield f"{dataset.name} has {rows:,} rows here, {dataset.total:,} in the literature."


def _few(names: Sequence[str]) -> str:
    more = f" and {len(names) - 3} more" if len(names) > 3 else ""
    return ", ".join(names[:3]) + more
