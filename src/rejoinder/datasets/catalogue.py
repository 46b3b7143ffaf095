"""The catalogue of data sets: their content, their files, and where to get them."""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path, PurePosixPath

from rejoinder.datasets.files import ROOTS, existing
from rejoinder.errors import InputError, nearest
from rejoinder.io.formats.decoding import decoded

_FILE = Path(__file__).parent.parent / "data" / "catalogue.toml"
_SENTEVAL = ("downstream", "probing")


@dataclass(frozen=True)
class DataFile:
    """A file of a data set."""

    path: str
    """Path below a folder of data sets."""
    kind: str
    """One of the kinds in `rejoinder.datasets.acquire.forms`."""
    rows: int
    """Published number of rows without the header. 0 if only the set's total is known."""
    letters: str = ""
    """Fingerprint of its letters and digits for any tokenisation. Empty means unknown."""
    names: tuple[str, ...] = ()
    """Other names under which it is published."""
    role: str = "needed"
    """`needed` or `optional`. The set is complete without optional files."""

    @property
    def name(self) -> str:
        """Name of the file."""
        return PurePosixPath(self.path).name

    @property
    def all_names(self) -> tuple[str, ...]:
        """Names under which it is recognised."""
        return (self.name, *self.names)

    @property
    def needed(self) -> bool:
        """Whether the set is incomplete without it."""
        return self.role == "needed"


@dataclass(frozen=True)
class DataSet:
    """A data set: its content, and where to get it."""

    id: str
    name: str
    what: str
    """Description of its rows."""
    licence: str
    citation: str
    groups: tuple[str, ...]
    files: tuple[DataFile, ...]
    look_for: str
    """What to search for if the addresses are dead."""
    addresses: tuple[str, ...] = ()
    """Addresses of its files and archives. All of them are downloaded."""
    pages: tuple[str, ...] = ()
    sha256: Mapping[str, str] | None = None
    """SHA-256 of official archives, by name."""
    total: int = 0
    """Published number of rows of all files together, if those of each file are unknown."""
    exact: bool = True
    """Whether a file is refused if its number of rows differs from the published one."""
    also: tuple[str, ...] = ()
    """Other folders in which readers look for the files."""
    extras: tuple[str, ...] = ()
    """Names of licences and readmes to keep with the files."""
    note: str = ""
    splits: Mapping[str, int] = field(default_factory=dict)
    """Published number of rows by split, as the reader of the set returns them."""

    @property
    def rows(self) -> int:
        """Published number of rows of all needed input files."""
        skipped = ("sts_gs", "cqa_gold", "nli_labels", "coco_captions")
        return self.total or sum(
            file.rows
            for file in self.files
            if file.needed and file.kind not in skipped and not file.name.startswith("s2.")
        )


@dataclass(frozen=True)
class Catalogue:
    """All data sets by id, and a remark on all of them."""

    sets: Mapping[str, DataSet]
    remark: str


@cache
def catalogue() -> Catalogue:
    """Returns the catalogue of the package. It is read once."""
    tree = tomllib.loads(_FILE.read_text("utf-8"))
    sets = decoded(list[DataSet], tree["sets"])
    return Catalogue({dataset.id: dataset for dataset in sets}, tree["remark"])


def official_rows(name: str, split: str) -> int | None:
    """Returns the published number of rows of a split, `all` if none are published, or None.

    Rows are sentences, pairs, images of COCO, or related questions of CQA. Pairs that some years
    of STS publish without a score do not count. If a reader returns fewer, the file is cut.

    >>> official_rows("sick", "test"), official_rows("mr", "all"), official_rows("mr", "dev")
    (4927, 10662, None)
    """
    dataset = catalogue().sets.get(name)
    return dataset.splits.get(split) if dataset else None


def select(names: list[str]) -> list[DataSet]:
    """Returns data sets by id, by name in any case, or by group. `all` means all of them.

    Raises:
        InputError: a name is unknown.
    """
    sets = catalogue().sets
    selected: dict[str, DataSet] = {}
    for name in names:
        matches = {
            set_id: dataset for set_id, dataset in sets.items() if name.lower() in _names(dataset)
        }
        if not matches:
            groups = (group for dataset in sets.values() for group in dataset.groups)
            known = {*sets, *groups, "all"}
            raise InputError(f"{name!r} is not a data set or a group; {nearest(name, known)}.")
        selected |= matches
    return list(selected.values())


def layout_path(root: Path, file: DataFile) -> Path:
    """Returns the path to which a file is laid out below `root`.

    SentEval's folders go to `senteval/` if that folder exists. Readers look in both.
    """
    inner = PurePosixPath(file.path)
    if inner.parts[0] in _SENTEVAL and (root / "senteval").is_dir():
        return root / "senteval" / inner
    return root / inner


def existing_path(root: Path, dataset: DataSet, file: DataFile) -> Path | None:
    """Returns the path of a file, or of its `.zst`, below `root`. None if neither exists.

    Raises:
        InputError: a folder can't be read.
    """
    inner = PurePosixPath(file.path)
    roots = ROOTS if inner.parts[0] in _SENTEVAL else ("",)
    paths = [root / each / inner for each in roots]
    paths += [root / folder / name for folder in dataset.also for name in file.all_names]
    return next(filter(None, map(existing, paths)), None)


def _names(dataset: DataSet) -> set[str]:
    own = {dataset.id, dataset.name.lower(), dataset.name.lower().replace(" ", "")}
    return {*own, *dataset.groups, "all"}
