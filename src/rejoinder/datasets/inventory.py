"""Which data sets are there, and whether they are whole."""

from dataclasses import dataclass
from pathlib import Path

from rejoinder.datasets.catalogue import DataFile, DataSet, found_at
from rejoinder.datasets.files import read_bytes
from rejoinder.datasets.forms import examine
from rejoinder.errors import InputError, MissingExtraError

_HEADER = 1 << 20
"""Bytes of a matrix that hold its size."""


@dataclass(frozen=True)
class Presence:
    """What there is of a data set."""

    state: str
    """`complete`, `incomplete` (files are not there), `damaged` or `absent`."""
    found: tuple[str, ...]
    missing: tuple[str, ...]
    problems: tuple[str, ...]
    """A sentence each: wrong numbers of rows, other forms."""


def presence(root: Path, dataset: DataSet) -> Presence:
    """Look for the files of a data set below `root`, and count their rows."""
    found, missing, problems = [], [], []
    for file in dataset.files:
        path = found_at(root, dataset, file)
        if path is None:
            missing += [file.path] if file.needed else []
            continue
        found.append(str(path))
        problem = _problem(path, file, dataset)
        problems += [problem] if problem else []
    any_needed = len(missing) < sum(file.needed for file in dataset.files)
    state = "damaged" if problems else "incomplete" if missing else "complete"
    if not any_needed and not problems:
        state = "absent"
    return Presence(state, tuple(found), tuple(missing), tuple(problems))


def _problem(path: Path, file: DataFile, dataset: DataSet) -> str:
    try:
        content = _content(path, file)
        rows = examine(content, path, file.kind).rows
    except (InputError, MissingExtraError) as error:
        return str(error)
    if dataset.exact and file.rows and rows != file.rows:
        return f"{path} has {rows:,} rows; {file.rows:,} were published."
    return ""


def _content(path: Path, file: DataFile) -> bytes:
    if file.kind != "coco_features":
        return read_bytes(path)
    with path.open("rb") as stream:
        return stream.read(_HEADER)
