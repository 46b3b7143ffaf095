"""Which file is which of a data set: by content where that is known, else by name and form."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path, PurePath

from rejoinder.acquire.forms import Examined, examine
from rejoinder.datasets.catalogue import DataFile, DataSet, catalogue
from rejoinder.errors import InputError

_TELLING = ("sst2", "sst5", "trec", "mrpc", "sick", "stsb", "nli", "cqa_xml", "cqa_gold")
"""Forms that, with a number of rows, say what a file is whatever its name."""
_COMMON_NAMES = ("coco_features", "coco_captions")
"""Forms of files that are named `train.json` and the like: others may have such names too."""
_LARGE = 64 << 20
"""Bytes beyond which a file is not opened if its name says nothing."""


@dataclass(frozen=True)
class Match:
    """A file that was recognised."""

    path: Path
    examined: Examined
    aside: tuple[str, ...] = ()
    """Why other files of the same name were not taken, a sentence each."""


class Recogniser:
    """Looks at files for one data set after another; each file is read once a form."""

    def __init__(self, files: Sequence[Path]) -> None:
        self.files = [path for path in files if not _is_junk(path)]
        self._known: dict[tuple[Path, str], Examined | InputError] = {}

    def find(self, dataset: DataSet) -> dict[DataFile, Match]:
        """The files of `dataset`, with where each was.

        Raises:
            InputError: a file of the right name is cut or of another form, or two that differ
                could be the same.
        """
        found = {}
        for file in dataset.files:
            match = self._find(dataset, file)
            if match is not None:
                found[file] = match
        return found

    def _find(self, dataset: DataSet, file: DataFile) -> Match | None:
        named = [path for path in self.files if path.name in (file.name, *file.names)]
        others = [path for path in self.files if path not in named]
        if file.letters:
            same = [path for path in (*named, *others) if self._letters(path, file) == file.letters]
            if same:
                return self._one(same, file)
        named = [path for path in named if not self._is_another(path, file)]
        if named:
            return self._by_name(dataset, file, named)
        return self._by_form(dataset, file, [p for p in others if not self._is_another(p, file)])

    def _by_name(self, dataset: DataSet, file: DataFile, named: Sequence[Path]) -> Match | None:
        """Of several files of the name those that are whole; else the likeliest one's error."""
        named = [path for path in named if path.name == file.name] or named
        faults: dict[Path, InputError] = {}
        for path in named:
            try:
                check_rows(path, self._required(path, file.kind), file, dataset)
            except InputError as error:
                faults[path] = error
        whole = [path for path in named if path not in faults]
        if not whole:
            if file.kind in _COMMON_NAMES:
                return None
            # the one that is of the form and cut, or lies where the file belongs
            raise faults[max(named, key=lambda path: self._promise(path, file))]
        match = self._one(whole, file)
        aside = tuple(f"{path} was left aside: {fault}" for path, fault in faults.items())
        return Match(match.path, match.examined, aside)

    def _promise(self, path: Path, file: DataFile) -> tuple[bool, int]:
        return isinstance(self._examined(path, file.kind), Examined), _likeness(path, file)

    def _by_form(self, dataset: DataSet, file: DataFile, paths: Iterable[Path]) -> Match | None:
        """The only file of a telling form with the published number of rows."""
        if file.kind not in _TELLING or not dataset.exact:
            return None
        matching = []
        for path in paths:
            examined = self._examined(path, file.kind)
            if isinstance(examined, Examined) and examined.rows == file.rows:
                matching.append(path)
        return self._one(matching, file) if matching else None

    def _one(self, paths: Sequence[Path], file: DataFile) -> Match:
        """The file, where all of `paths` are the same, or one lies in a folder that tells."""
        alike = [_likeness(path, file) for path in paths]
        paths = [path for path, like in zip(paths, alike, strict=True) if like == max(alike)]
        first = self._required(paths[0], file.kind)
        for path in paths[1:]:
            if self._required(path, file.kind).content != first.content:
                raise InputError(
                    f"{paths[0]} and {path} could both be {file.path} and differ; name the one "
                    "that you mean."
                )
        return Match(paths[0], first)

    def _is_another(self, path: Path, file: DataFile) -> bool:
        """Whether `path` is known to be another file of the catalogue.

        By its text; or by its name, form and rows where these do not fit `file` just as well.
        """
        own = self._examined(path, file.kind)
        letters = own.letters if isinstance(own, Examined) else ""
        if letters and (edition := _editions().get(letters)):
            return edition != file.path
        if isinstance(own, Examined) and own.rows == file.rows:
            return False
        for other, exact in _namesakes(path.name):
            if other.path != file.path and exact:
                examined = self._examined(path, other.kind)
                if isinstance(examined, Examined) and examined.rows == other.rows:
                    return not other.letters or other.letters == examined.letters
        return False

    def _required(self, path: Path, kind: str) -> Examined:
        examined = self._examined(path, kind)
        if isinstance(examined, InputError):
            raise examined
        return examined

    def _letters(self, path: Path, file: DataFile) -> str:
        examined = self._examined(path, file.kind)
        return examined.letters if isinstance(examined, Examined) else ""

    def _examined(self, path: Path, kind: str) -> Examined | InputError:
        if (path, kind) not in self._known:
            self._known[path, kind] = _try(path, kind)
        return self._known[path, kind]


def _try(path: Path, kind: str) -> Examined | InputError:
    try:
        if not _namesakes(path.name) and path.stat().st_size > _LARGE:
            return InputError(f"{path} is large and of an unknown name.")
        return examine(path.read_bytes(), path, kind)
    except InputError as error:
        return error
    except OSError as error:
        return InputError(f"{path} can't be read: {error.strerror}.")


@cache
def _editions() -> dict[str, str]:
    """Paths in the layout by the fingerprints of known texts."""
    return {
        file.letters: file.path
        for dataset in catalogue().sets.values()
        for file in dataset.files
        if file.letters
    }


@cache
def _namesakes(name: str) -> tuple[tuple[DataFile, bool], ...]:
    """The files of all sets that are published under a name, and whether their rows are known."""
    return tuple(
        (file, dataset.exact and file.rows > 0)
        for dataset in catalogue().sets.values()
        for file in dataset.files
        if name in (file.name, *file.names)
    )


def _likeness(path: Path, file: DataFile) -> int:
    """How many folders above `path` are those of the layout, from the innermost on."""
    count = 0
    pairs = zip(path.parts[-2::-1], PurePath(file.path).parts[-2::-1], strict=False)
    for found, laid_out in pairs:
        if found.lower() != laid_out.lower():
            break
        count += 1
    return count


def check_rows(path: Path, examined: Examined, file: DataFile, dataset: DataSet) -> None:
    """Refuse a file with other than the published number of rows.

    Raises:
        InputError: it has another, and that is known exactly.
    """
    if dataset.exact and file.rows and examined.rows != file.rows:
        raise InputError(
            f"{path} has {examined.rows:,} rows; {file.name} of {dataset.name} was published with "
            f"{file.rows:,}. It is cut, or another edition; look for {dataset.look_for}."
        )


def _is_junk(path: Path) -> bool:
    """What desktops leave in archives."""
    return path.name.startswith(".") or "__MACOSX" in path.parts
