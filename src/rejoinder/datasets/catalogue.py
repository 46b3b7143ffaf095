"""The catalogue of data sets: their content, their files, and where to get them.

Also a table of the licences that authors state for training data, and which of these are open.

Finds and reads the files of data sets, with checks that their readers share.
"""

import re
import tomllib
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence, Sized
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path, PurePosixPath
from typing import TypeVar

from rejoinder.errors import DataMissingError, InputError, nearest
from rejoinder.io.files.hashed import decoded, sha256_of
from rejoinder.io.files.storage import read_errors
from rejoinder.io.formats.compression import OPENERS, read_packed

T = TypeVar("T", bound=Sized)

ROOTS = ("senteval", "data", "")
"""Possible parents of SentEval's folders `downstream` and `probing` in a folder of data sets."""


_HINT = "`rejoinder data list` says more."


def find_file(
    data: Path, folders: Iterable[str], names: Iterable[str], title: str, hint: str = _HINT
) -> Path:
    """Returns the first file with one of some names in some folders in `data`, compressed or not.

    Raises:
        DataMissingError: there is no such file. The message lists the paths that were tried.
    """
    paths = [data / folder / name for folder in folders for name in names]
    if (path := next(filter(existing, paths), None)) is None:
        raise missing(title, paths, hint)
    return path


def hint_for(set_id: str) -> str:
    """Returns a hint for a data set whose files are missing."""
    return f"`rejoinder data list {set_id}` says where to get it."


def missing(title: str, tried: Iterable[Path], hint: str = _HINT) -> DataMissingError:
    """Returns the error for a data set without files at any of the paths tried."""
    paths = ", ".join(map(str, tried))
    return DataMissingError(f"{title} is not there; looked for {paths}. {hint}")


def folder_of(data: Path, set_id: str, name: str = "") -> Path:
    """Returns the folder of a data set in SentEval's layout, or in a part of that layout.

    It holds the file with that `name`, by default the first file of the set.

    Raises:
        DataMissingError: no folder holds the file. The message lists the paths that were tried.
    """
    dataset = catalogue().sets[set_id]
    path = PurePosixPath(dataset.files[0].path)
    folders = [f"{root}/{path.parent}".lstrip("/") for root in ROOTS]
    folders.append("/".join(path.parent.parts[1:]))
    return find_file(data, folders, [name or path.name], dataset.name).parent


def read_splits(
    data: Path, set_id: str, splits: Sequence[str], parse: Callable[[bytes, Path], T]
) -> tuple[str, dict[str, T], str]:
    """Reads a data set with a file for each split (or class), in the order of the catalogue.

    Returns:
        The name of the set, the result of `parse` for each file by split, and a hash of all files.

    Raises:
        InputError: a file is missing, damaged or empty.
    """
    dataset, folder = catalogue().sets[set_id], folder_of(data, set_id)
    parsed, contents = {}, []
    for split, path in zip(splits, (folder / file.name for file in dataset.files), strict=True):
        contents.append(read_bytes(path))
        parsed[split] = parse(contents[-1], path)
        if not len(parsed[split]):
            raise InputError(f"{path} has no rows; it is empty or truncated. Get it again.")
    return dataset.name, parsed, sha256_of(*contents)


def read_bytes(path: Path) -> bytes:
    """Returns the content of a file, or of the same file compressed as `.zst`.

    A file whose name ends in `.zst`, `.gz`, `.bz2` or `.xz` is decompressed.

    Raises:
        DataMissingError: the file does not exist.
        InputError: the file can't be read or is damaged.
    """
    found = existing(path)
    if found is None:
        raise DataMissingError(f"{path} is not there, and no {path.name}.zst either.")
    if found.suffix in OPENERS:
        return read_packed(found, found.suffix)
    return content_of(found)


def content_of(path: Path) -> bytes:
    """Returns the bytes of a file as they are."""
    with read_errors(path):
        return path.read_bytes()


def refuse_repeats(ids: Sequence[str], lines: Sequence[int], path: Path) -> None:
    """Refuses an id that occurs twice, because predictions are compared by id.

    `lines` holds the line number of each row.
    """
    first: dict[str, int] = {}
    for name, line in zip(ids, lines, strict=True):
        if first.setdefault(name, line) != line:
            found = f"line {first[name]} has the id {name[:40]!r} too"
            raise InputError(f"{path} line {line}: {found}. Remove one of them.")


def is_file(path: Path) -> bool:
    """Returns whether a file exists."""
    with read_errors(path):
        return path.is_file()


def existing(path: Path) -> Path | None:
    """Returns the path of a file, or of the same file as `.zst`, or None if neither exists."""
    packed = path.with_name(path.name + ".zst")
    return next((each for each in (path, packed) if is_file(each)), None)


_FILE = Path(__file__).parent.parent / "data" / "catalogue.toml"
_SENTEVAL = ("downstream", "probing")


@dataclass(frozen=True)
class DataFile:
    """A file of a data set."""

    path: str
    """Path below a folder of data sets."""
    kind: str
    """One of the kinds in `rejoinder.datasets.acquire.files`."""
    rows: int
    """Published number of rows without the header. 0 if only the set's total is known."""
    letters: str = ""
    """Fingerprint of its letters and digits, the same for any tokenisation. Empty means unknown."""
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
    """Published number of rows of all files together, if the numbers per file are unknown."""
    exact: bool = True
    """Whether a file is refused if its number of rows differs from the published one."""
    common_names: bool = False
    """Whether its files have ambiguous names, such as train.json or test.csv."""
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
    """All data sets by id, and a remark that applies to all."""

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
        matches = {key: one for key, one in sets.items() if name.lower() in _names(one)}
        if not matches:
            groups = (group for dataset in sets.values() for group in dataset.groups)
            known = {*sets, *groups, "all"}
            raise InputError(f"{name!r} is not a data set or a group; {nearest(name, known)}.")
        selected |= matches
    return list(selected.values())


def layout_path(root: Path, file: DataFile) -> Path:
    """Returns the path of a file in the layout below `root`.

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


_LICENCES = Path(__file__).parent.parent / "data" / "licences.toml"
_OPEN = re.compile(
    r"CC0-.*|CC-BY-(SA-)?\d.*|MIT|ISC|BSD-.*|CDLA-.*|Apache-.*|MPL-.*|OANC|PSF-.*|Unicode-\d.*"
)
"""Open licences by SPDX identifier, without any NC or ND licence."""


@dataclass(frozen=True)
class Licence:
    """The licence of a file or of a source of conversations, as far as known."""

    licence: str
    """SPDX identifiers joined by AND, or words such as `none stated` and `research`."""
    origin: str = ""
    """Where the text was taken from, such as `owner/name` of a repository."""
    citation: str = ""
    repository: str = ""
    """Licence of a repository that has a copy of the text. It does not count."""
    hub: str = ""
    """Name of the data set on the Hugging Face hub, if it has one."""

    @property
    def open(self) -> bool:
        """Whether everybody may use the text for everything: see `is_open`."""
        return is_open(self.licence)

    @property
    def known(self) -> bool:
        """Whether the data is in the table."""
        return self != NOT_STATED

    def __str__(self) -> str:
        return self.licence + (f" (repository: {self.repository})" if self.repository else "")


NOT_STATED = Licence("not stated")
"""The licence of data that is not in the table, such as a user's own data."""


@dataclass(frozen=True)
class DataRow:
    """A source of conversations or a labelled file, with its licence."""

    kind: str
    """`source`, `file`, `model` (training started from it) or `adaptation`."""
    name: str
    """Name of the source, or path of the file below the folder of data sets."""
    licence: Licence
    rows: int | None = None
    """Number of pairs, groups or rows. None means unknown."""
    detail: str = ""
    """Rows by task, for a file that several tasks read."""


def is_open(licence: str) -> bool:
    """Whether all licences in a string are open.

    Open are CC0, CC BY, CC BY-SA, MIT, ISC, BSD, CDLA, Apache, MPL, PSF and Unicode, and those of
    the Open American National Corpus, whose texts everybody may use, change and share.

    >>> [is_open(licence) for licence in ("CC-BY-SA-4.0 AND MIT", "CC-BY-NC-4.0", "none stated")]
    [True, False, False]
    """
    return all(_OPEN.fullmatch(part) for part in licence.split(" AND "))


@cache
def _table() -> tuple[Mapping[str, Licence], Mapping[str, tuple[str, Licence]]]:
    """Returns the licences of files by path, and the file and licence of sources by name."""
    tree = tomllib.loads(_LICENCES.read_text("utf-8"))
    files = {path: _licence(row) for row in tree["files"] for path in row["paths"]}
    sources = {
        source: (str(row["file"]), _licence(row))
        for row in tree["conversations"]
        for source in row["sources"]
    }
    return files, sources


def _licence(row: Mapping[str, str]) -> Licence:
    known = row["licence"], row["from"], row["cite"], row.get("repository", ""), row.get("hub", "")
    return Licence(*known)


def all_rows() -> list[DataRow]:
    """Returns all rows of the table: sources of conversations, then files."""
    files, sources = _table()
    rows = [DataRow("source", name, licence) for name, (_, licence) in sources.items()]
    return rows + [DataRow("file", path, licence) for path, licence in files.items()]


def licence_of_file(path: str) -> Licence:
    """Returns the licence of a labelled file, by its path below the folder of data sets."""
    files, _ = _table()
    plain = str(PurePosixPath(path)).removesuffix(".zst")
    return files.get(plain) or files.get(f"{plain}.zst") or NOT_STATED


def licence_of_source(source: str, inputs: Iterable[str] | None = None) -> Licence:
    """Returns the licence of a source of conversations.

    `inputs` are the names of the files that the pairs were extracted from. The licence is known
    only if all of them are in the table and one is the file of the source, because a subreddit of
    another dump may have the name of a corpus. With None, only the name counts.
    """
    _, sources = _table()
    file, licence = sources.get(source, ("", NOT_STATED))
    if inputs is None:
        return licence
    given: Collection[str] = set(inputs)
    known = {name for name, _ in sources.values()}
    return licence if file in given and known.issuperset(given) else NOT_STATED
