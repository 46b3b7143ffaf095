"""Which file is which of a data set: by content where that is known, else by name and form."""

from collections.abc import Sequence
from pathlib import Path

from rejoinder.datasets.catalogue import DataFile, DataSet, catalogue
from rejoinder.datasets.forms import Examined, examine
from rejoinder.errors import InputError

_TELLING = ("sst2", "sst5", "trec", "mrpc", "sick", "stsb", "nli", "cqa_xml", "cqa_gold")
"""Forms that, with a number of rows, say what a file is whatever its name."""
_LARGE = 64 << 20
"""Bytes beyond which a file is not opened if its name says nothing."""


class Recogniser:
    """Looks at files for one data set after another; each file is read once a form."""

    def __init__(self, files: Sequence[Path]) -> None:
        self.files = [path for path in files if not _is_junk(path)]
        self._known: dict[tuple[Path, str], Examined | InputError] = {}
        self._editions = {
            file.letters: file.path
            for dataset in catalogue().sets.values()
            for file in dataset.files
            if file.letters
        }

    def find(self, dataset: DataSet) -> dict[DataFile, tuple[Path, Examined]]:
        """The files of `dataset`, with where each was.

        Raises:
            InputError: a file of the right name is cut or of another form, or two that differ
                could be the same.
        """
        found = {}
        for file in dataset.files:
            one = self._find(dataset, file)
            if one is not None:
                found[file] = one
        return found

    def _find(self, dataset: DataSet, file: DataFile) -> tuple[Path, Examined] | None:
        names = (file.name, *file.names)
        named = [path for path in self.files if path.name in names]
        others = [path for path in self.files if path not in named]
        if file.letters:
            same = [path for path in (*named, *others) if self._letters(path, file) == file.letters]
            if same:
                return self._one(same, file)
        foreign = [path for path in named if self._edition(path, file) not in ("", file.path)]
        named = [path for path in named if path not in foreign]
        if named:
            exact = [path for path in named if path.name == file.name] or named
            path, examined = self._one(exact, file)
            check_rows(path, examined, file, dataset)
            return path, examined
        return self._by_form(dataset, file, [path for path in others if path not in foreign])

    def _by_form(
        self, dataset: DataSet, file: DataFile, paths: Sequence[Path]
    ) -> tuple[Path, Examined] | None:
        """The only file of a telling form with the published number of rows."""
        if file.kind not in _TELLING or not dataset.exact:
            return None
        matching = []
        for path in paths:
            one = self._examined(path, file.kind)
            if isinstance(one, Examined) and one.rows == file.rows:
                matching.append(path)
        matching = [path for path in matching if self._edition(path, file) in ("", file.path)]
        return self._one(matching, file) if matching else None

    def _one(self, paths: Sequence[Path], file: DataFile) -> tuple[Path, Examined]:
        """The file, where all of `paths` are the same."""
        first = self._required(paths[0], file.kind)
        for path in paths[1:]:
            if self._required(path, file.kind).content != first.content:
                raise InputError(
                    f"{paths[0]} and {path} could both be {file.path} and differ; name the one "
                    "that you mean."
                )
        return paths[0], first

    def _required(self, path: Path, kind: str) -> Examined:
        one = self._examined(path, kind)
        if isinstance(one, InputError):
            raise one
        return one

    def _letters(self, path: Path, file: DataFile) -> str:
        one = self._examined(path, file.kind)
        return one.letters if isinstance(one, Examined) else ""

    def _edition(self, path: Path, file: DataFile) -> str:
        """Of which file of the catalogue `path` has the text; empty: of none."""
        return self._editions.get(self._letters(path, file), "")

    def _examined(self, path: Path, kind: str) -> Examined | InputError:
        if (path, kind) not in self._known:
            self._known[path, kind] = _try(path, kind)
        return self._known[path, kind]


def _try(path: Path, kind: str) -> Examined | InputError:
    names = {
        name
        for dataset in catalogue().sets.values()
        for file in dataset.files
        for name in (file.name, *file.names)
    }
    try:
        if path.name not in names and path.stat().st_size > _LARGE:
            return InputError(f"{path} is large and of an unknown name.")
        return examine(path.read_bytes(), path, kind)
    except InputError as error:
        return error
    except OSError as error:
        return InputError(f"{path} can't be read: {error.strerror}.")


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
