"""Recognises the files of data sets: by content where it is known, else by name and form."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path, PurePath

from rejoinder.datasets.acquire.forms import Examined, examine
from rejoinder.datasets.catalogue import DataFile, DataSet, catalogue
from rejoinder.errors import InputError
from rejoinder.io.files.storage import read_errors

_DISTINCTIVE_KINDS = ("sst2", "sst5", "trec", "mrpc", "sick", "stsb", "nli", "cqa_xml", "cqa_gold")
"""Kinds of files that are recognised by their number of rows, whatever their name."""
_COMMONLY_NAMED_KINDS = ("coco_features", "coco_captions")
"""Kinds of files with names such as `train.json`, which other files may have too."""
_LARGE_BYTES = 64 << 20
"""A larger file is not opened if its name is unknown."""


@dataclass(frozen=True)
class Match:
    """A file that was recognised."""

    path: Path
    examined: Examined
    skipped: tuple[str, ...] = ()
    """Why other files of the same name were not used, a sentence each."""


class Recogniser:
    """Recognises the files of one data set after another. Reads a file once for each kind."""

    def __init__(self, files: Sequence[Path]) -> None:
        # desktops leave hidden files in archives
        self.files = [
            path for path in files if not path.name.startswith(".") and "__MACOSX" not in path.parts
        ]
        self._cache: dict[tuple[Path, str], Examined | InputError] = {}

    def find(self, dataset: DataSet) -> dict[DataFile, Match]:
        """Returns the files of a data set that were recognised. Files that are cut are refused."""
        matches = {file: self._match(dataset, file) for file in dataset.files}
        return {file: match for file, match in matches.items() if match is not None}

    def _match(self, dataset: DataSet, file: DataFile) -> Match | None:
        named = [path for path in self.files if path.name in (file.name, *file.names)]
        others = [path for path in self.files if path not in named]
        if file.letters:
            same = [path for path in (*named, *others) if self._letters(path, file) == file.letters]
            if same:
                return self._choose(same, file)
        named = [path for path in named if not self._is_another(path, file)]
        if named:
            return self._by_name(dataset, file, named)
        return self._by_form(dataset, file, [p for p in others if not self._is_another(p, file)])

    def _by_name(self, dataset: DataSet, file: DataFile, named: Sequence[Path]) -> Match | None:
        """Recognises a file among those of its name, of which one must be whole."""
        named = [path for path in named if path.name == file.name] or named
        faults: dict[Path, InputError] = {}
        for path in named:
            try:
                check_rows(path, self._required(path, file.kind), file, dataset)
            except InputError as error:
                faults[path] = error
        whole = [path for path in named if path not in faults]
        if not whole:
            if file.kind in _COMMONLY_NAMED_KINDS:
                return None
            raise faults[max(named, key=lambda path: self._likelihood(path, file))]
        match = self._choose(whole, file)
        skipped = tuple(f"{path} was skipped: {fault}" for path, fault in faults.items())
        return Match(match.path, match.examined, skipped)

    def _likelihood(self, path: Path, file: DataFile) -> tuple[bool, int]:
        """Ranks files that are cut by their form and by the folder where the file belongs."""
        return isinstance(self._examined(path, file.kind), Examined), _common_folders(path, file)

    def _by_form(self, dataset: DataSet, file: DataFile, paths: Iterable[Path]) -> Match | None:
        """Recognises a file by its form and number of rows, whatever its name."""
        if file.kind not in _DISTINCTIVE_KINDS or not dataset.exact:
            return None
        matching = [path for path in paths if self._has_rows(path, file)]
        return self._choose(matching, file) if matching else None

    def _choose(self, paths: Sequence[Path], file: DataFile) -> Match:
        """Returns the path with the folders of the layout. Equally likely files must not differ."""
        folders = [_common_folders(path, file) for path in paths]
        paths = [path for path, n in zip(paths, folders, strict=True) if n == max(folders)]
        first = self._required(paths[0], file.kind)
        for path in paths[1:]:
            if self._required(path, file.kind).content != first.content:
                raise InputError(
                    f"{paths[0]} and {path} could both be {file.path} and differ; name the "
                    "right one only."
                )
        return Match(paths[0], first)

    def _is_another(self, path: Path, file: DataFile) -> bool:
        """Returns whether `path` is known to be another file of the catalogue.

        It is known by its text, or by its name, form and rows if they do not fit `file` as well.
        """
        letters = self._letters(path, file)
        if letters and (known := _paths_by_letters().get(letters)):
            return known != file.path
        if self._has_rows(path, file):
            return False
        for other, exact in _namesakes(path.name):
            if other.path != file.path and exact and self._has_rows(path, other):
                return not other.letters or other.letters == self._letters(path, other)
        return False

    def _has_rows(self, path: Path, file: DataFile) -> bool:
        examined = self._examined(path, file.kind)
        return isinstance(examined, Examined) and examined.rows == file.rows

    def _required(self, path: Path, kind: str) -> Examined:
        examined = self._examined(path, kind)
        if isinstance(examined, InputError):
            raise examined
        return examined

    def _letters(self, path: Path, file: DataFile) -> str:
        examined = self._examined(path, file.kind)
        return examined.letters if isinstance(examined, Examined) else ""

    def _examined(self, path: Path, kind: str) -> Examined | InputError:
        if (path, kind) not in self._cache:
            try:
                with read_errors(path):
                    if not _namesakes(path.name) and path.stat().st_size > _LARGE_BYTES:
                        raise InputError(f"{path} is large and of an unknown name.")
                    self._cache[path, kind] = examine(path.read_bytes(), path, kind)
            except InputError as error:
                self._cache[path, kind] = error
        return self._cache[path, kind]


@cache
def _paths_by_letters() -> dict[str, str]:
    """Returns paths in the layout by the fingerprints of known texts."""
    return {
        file.letters: file.path
        for dataset in catalogue().sets.values()
        for file in dataset.files
        if file.letters
    }


@cache
def _namesakes(name: str) -> tuple[tuple[DataFile, bool], ...]:
    """Returns the files of all sets with a published name, and whether their rows are known."""
    return tuple(
        (file, dataset.exact and file.rows > 0)
        for dataset in catalogue().sets.values()
        for file in dataset.files
        if name in (file.name, *file.names)
    )


def _common_folders(path: Path, file: DataFile) -> int:
    """Counts the folders above `path` that are those of the layout, from the innermost on."""
    count = 0
    pairs = zip(path.parts[-2::-1], PurePath(file.path).parts[-2::-1], strict=False)
    for given, laid_out in pairs:
        if given.lower() != laid_out.lower():
            break
        count += 1
    return count


def check_rows(path: Path, examined: Examined, file: DataFile, dataset: DataSet) -> None:
    """Refuses a file with another number of rows than was published, if that is exact."""
    if dataset.exact and file.rows and examined.rows != file.rows:
        raise InputError(
            f"{path} has {examined.rows:,} rows; {file.name} of {dataset.name} was published with "
            f"{file.rows:,}. It is cut, or another edition; look for {dataset.look_for}."
        )
