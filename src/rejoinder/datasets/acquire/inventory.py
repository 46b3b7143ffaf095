"""Finds data sets that are present, and checks whether they are complete."""

from dataclasses import dataclass
from pathlib import Path

from rejoinder.datasets.acquire.forms import examine
from rejoinder.datasets.catalogue import DataSet, existing_path
from rejoinder.datasets.files import read_bytes
from rejoinder.errors import InputError, MissingExtraError
from rejoinder.io.files.storage import read_errors

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
