"""Which data sets are there, and whether they are whole."""

from dataclasses import dataclass
from pathlib import Path

from rejoinder.acquire.forms import examine
from rejoinder.datasets.catalogue import DataFile, DataSet, found_at
from rejoinder.datasets.files import read_bytes
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
    notes: tuple[str, ...] = ()
    """A sentence each: other numbers of rows than published, where these are not known exactly."""


def presence(root: Path, dataset: DataSet) -> Presence:
    """Look for the files of a data set below `root`, and count their rows."""
    found, missing = [], []
    problems: list[str] = []
    notes: list[str] = []
    rows = 0
    for file in dataset.files:
        path = found_at(root, dataset, file)
        if path is None:
            missing += [file.path] if file.needed else []
            continue
        found.append(str(path))
        try:
            count = examine(_content(path, file), path, file.kind).rows
        except (InputError, MissingExtraError) as error:
            problems.append(str(error))
            continue
        rows += count
        if file.rows and count != file.rows:
            said = f"{path} has {count:,} rows; {file.rows:,} were published."
            (problems if dataset.exact else notes).append(said)
    if (
        dataset.total
        and len(found) == len(dataset.files)
        and not problems
        and rows != dataset.total
    ):
        notes.append(f"{dataset.name} has {rows:,} rows here, {dataset.total:,} in the literature.")
    any_needed = len(missing) < sum(file.needed for file in dataset.files)
    state = "damaged" if problems else "incomplete" if missing else "complete"
    if not any_needed and not problems:
        state = "absent"
    return Presence(state, tuple(found), tuple(missing), tuple(problems), tuple(notes))


def _content(path: Path, file: DataFile) -> bytes:
    if file.kind != "coco_features":
        return read_bytes(path)
    try:
        with path.open("rb") as stream:
            return stream.read(_HEADER)
    except OSError as error:
        raise InputError(f"{path} can't be read: {error.strerror}.") from None
