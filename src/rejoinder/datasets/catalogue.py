"""The data sets that tasks and recipes need: what they are, their files, where to get them."""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path, PurePosixPath
from typing import Any

from rejoinder.datasets.files import is_file
from rejoinder.errors import InputError, nearest

_FILE = Path(__file__).parent.parent / "data" / "catalogue.toml"
_SENTEVAL = ("downstream", "probing")


@dataclass(frozen=True)
class DataFile:
    """A file of a data set."""

    path: str
    """Below a folder of data sets."""
    kind: str
    """Its form: a name of `rejoinder.acquire.forms`."""
    rows: int
    """The published number, without a header; 0: not known for this file alone."""
    letters: str = ""
    """A fingerprint of its letters and digits, the same for any tokenisation; empty: not known."""
    names: tuple[str, ...] = ()
    """Other names under which it is published."""
    role: str = "needed"
    """`needed`, or `optional`: taken where it is there."""

    @property
    def name(self) -> str:
        """The last part of its path."""
        return PurePosixPath(self.path).name

    @property
    def needed(self) -> bool:
        """Whether the set is incomplete without it."""
        return self.role == "needed"


@dataclass(frozen=True)
class DataSet:
    """A data set: what it is, and where it is to be had."""

    id: str
    name: str
    what: str
    licence: str
    """As its authors state it."""
    citation: str
    groups: tuple[str, ...]
    files: tuple[DataFile, ...]
    look_for: str
    """What to look for where the addresses are dead."""
    addresses: tuple[str, ...] = ()
    """To be downloaded, all of them."""
    pages: tuple[str, ...] = ()
    """To be read by people."""
    sha256: Mapping[str, str] | None = None
    """Of official archives, by name."""
    total: int = 0
    """The published number of rows where it is known for all files together only."""
    exact: bool = True
    """Whether a file with other than the published number of rows is refused."""
    also: tuple[str, ...] = ()
    """Further folders in which readers find the files."""
    extras: tuple[str, ...] = ()
    """Names of licences and readmes that are kept with the files."""
    note: str = ""
    splits: Mapping[str, int] = field(default_factory=dict)
    """The published number of rows that the set's reader returns, by its names of splits."""

    @property
    def rows(self) -> int:
        """The published number of rows of all files that are needed, inputs alone."""
        skipped = ("sts_gs", "cqa_gold", "nli_labels", "coco_captions")
        counted = [file for file in self.files if file.needed and file.kind not in skipped]
        counted = [file for file in counted if not file.name.startswith("s2.")]
        return self.total or sum(file.rows for file in counted)


@dataclass(frozen=True)
class Catalogue:
    """All data sets, by id, and what holds for all of them."""

    sets: Mapping[str, DataSet]
    remark: str


@cache
def catalogue() -> Catalogue:
    """The catalogue that comes with the package, read once."""
    tree = tomllib.loads(_FILE.read_text("utf-8"))
    sets = [_data_set(entry) for entry in tree["sets"]]
    return Catalogue({one.id: one for one in sets}, tree["remark"])


def official_rows(name: str, split: str) -> int | None:
    """The published number of rows of a split, as the set's reader returns them.

    Rows are sentences, pairs, images of COCO, or related questions of CQA; of pairs that some
    years of STS publish without a score none. A reader that returns fewer read a cut file.

    Args:
        name: a data set's id.
        split: as the reader names it; `all` where no splits are published.

    Returns:
        None where the catalogue does not know the set, the split or its number.

    >>> official_rows("sick", "test"), official_rows("mr", "all"), official_rows("mr", "dev")
    (4927, 10662, None)
    """
    dataset = catalogue().sets.get(name)
    return dataset.splits.get(split) if dataset else None


def select(names: list[str]) -> list[DataSet]:
    """Data sets by id, by name in any case, or by group; `all` stands for every one.

    Raises:
        InputError: a name is unknown.
    """
    sets = catalogue().sets
    found: dict[str, DataSet] = {}
    for name in names:
        chosen = [one for one in sets.values() if name.lower() in _names(one)]
        if not chosen:
            known = {*sets, *(group for one in sets.values() for group in one.groups), "all"}
            raise InputError(f"{name!r} is no data set and no group; {nearest(name, known)}.")
        found.update((one.id, one) for one in chosen)
    return list(found.values())


def place_of(root: Path, file: DataFile) -> Path:
    """Where a file is laid out below `root`: SentEval's folders go to `senteval/` if that is there.

    Readers look at both places.
    """
    inner = PurePosixPath(file.path)
    if inner.parts[0] in _SENTEVAL and (root / "senteval").is_dir():
        return root / "senteval" / inner
    return root / inner


def found_at(root: Path, dataset: DataSet, file: DataFile) -> Path | None:
    """Where a file, or the same compressed as `.zst`, is below `root`.

    Raises:
        InputError: a folder can't be looked into.
    """
    inner = PurePosixPath(file.path)
    places = [root / inner]
    if inner.parts[0] in _SENTEVAL:
        places = [root / "senteval" / inner, root / "data" / inner, root / inner]
    names = (file.name, *file.names)
    places += [root / folder / name for folder in dataset.also for name in names]
    for place in places:
        for path in (place, place.with_name(place.name + ".zst")):
            if is_file(path):
                return path
    return None


def _names(dataset: DataSet) -> set[str]:
    own = {dataset.id, dataset.name.lower(), dataset.name.lower().replace(" ", "")}
    return {*own, *dataset.groups, "all"}


def _data_set(entry: dict[str, Any]) -> DataSet:
    files = tuple(
        DataFile(**{**file, "names": tuple(file.get("names", ()))}) for file in entry["files"]
    )
    lists = {
        key: tuple(entry.get(key, ())) for key in ("groups", "addresses", "pages", "also", "extras")
    }
    return DataSet(**{**entry, **lists, "files": files})
