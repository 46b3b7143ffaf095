"""Replaces several files of a folder together: all of them, or none.

Each file is written beside its path, as `.NAME.part`, and a journal in the folder lists them. Once
all are written, the journal is marked as complete and the files are renamed. After a kill, a
change whose journal is not complete is undone, and any other is finished.
"""

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from rejoinder.errors import BusyError, InputError, StorageError
from rejoinder.io.files.atomic import write_text
from rejoinder.io.files.claims import beside, claim, part_of
from rejoinder.io.files.outputs import resolved
from rejoinder.io.files.storage import creation_errors, refused

_NAME = "adding"
"""Name of the lock and of the scratch folder in a folder of data sets: `.adding.lock`, …"""
_JOURNAL = ".adding.json"


@contextmanager
def held(root: Path) -> Iterator[None]:
    """Locks a folder of data sets against other commands that write it.

    Locks nest within a process. An interrupted change is undone or finished first.
    """
    # unlike Path's, these are false where a name is too long or a folder can't be read
    if os.path.exists(root) and not os.path.isdir(root):  # noqa: PTH110, PTH112
        raise InputError(f"{root} is a file; a folder of data sets is needed. Name another one.")
    with ExitStack() as stack:
        with _errors_about(root):
            stack.enter_context(claim(root / _NAME))
            _recover(root)
        yield


@contextmanager
def scratch(root: Path) -> Iterator[Path]:
    """Locks `root` and makes a folder in it for unpacked files, removed when the block ends."""
    with held(root), part_of(root / _NAME) as folder:
        with creation_errors(root):
            folder.mkdir()
        yield folder


@contextmanager
def _errors_about(root: Path) -> Iterator[None]:
    """Lets errors name the folder of data sets, not the file in it that is locked."""
    try:
        with creation_errors(root):
            yield
    except (BusyError, StorageError) as error:
        said = str(error).replace(str(root / _NAME), str(root))
        with suppress(StorageError):
            said = said.replace(str(resolved(root / _NAME)), str(root))
        raise type(error)(said) from None


@dataclass(frozen=True)
class _Change:
    """Files that are replaced together."""

    root: Path
    paths: Sequence[Path]
    folders: Sequence[Path]
    """Folders to be made for the files, outermost first."""

    def write_journal(self, *, complete: bool) -> None:
        """Records the change. `complete` means that all files are written beside their paths."""
        tree = {
            "complete": complete,
            "files": [path.relative_to(self.root).as_posix() for path in self.paths],
            "folders": [path.relative_to(self.root).as_posix() for path in self.folders],
        }
        write_text(self.root / _JOURNAL, json.dumps(tree, indent=1))

    def undo(self, renamed: Sequence[Path] = ()) -> None:
        """Restores the old files. `renamed` are new files that may have their path already."""
        for path in self.paths:
            if beside(path, "old").exists():
                beside(path, "old").replace(path)
            elif path in renamed:
                path.unlink(missing_ok=True)
            beside(path, "part").unlink(missing_ok=True)
        for folder in reversed(self.folders):
            with suppress(OSError):
                folder.rmdir()
        (self.root / _JOURNAL).unlink(missing_ok=True)

    def finish(self) -> None:
        """Renames the files that are not renamed yet, and removes the old ones."""
        for path in self.paths:
            if beside(path, "part").exists():
                beside(path, "part").replace(path)
            beside(path, "old").unlink(missing_ok=True)
        (self.root / _JOURNAL).unlink(missing_ok=True)


def write_together(root: Path, contents: Mapping[Path, bytes]) -> None:
    """Writes files below `root`, whose lock is held. A failure leaves all files as they were."""
    if not contents:
        return
    _refuse_obstacles(root, contents)
    folders = dict.fromkeys(
        root / folder
        for path in contents
        for folder in reversed(path.relative_to(root).parents)
        if not (root / folder).exists()
    )
    change = _Change(root, list(contents), list(folders))
    change.write_journal(complete=False)
    path, renamed = root, []
    try:
        for path, content in contents.items():
            path.parent.mkdir(parents=True, exist_ok=True)
            with beside(path, "part").open("wb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
        change.write_journal(complete=True)
        for path in contents:
            if path.exists():
                path.replace(beside(path, "old"))
            renamed.append(path)
            beside(path, "part").replace(path)
    except BaseException as error:
        change.undo(renamed)
        if isinstance(error, OSError):
            raise refused(path, error) from None
        raise
    change.finish()


def _recover(root: Path) -> None:
    """Undoes or finishes the change of a killed process in `root`, whose lock is held."""
    journal = root / _JOURNAL
    with claim(journal):  # removes a half-written journal
        pass
    try:
        tree = json.loads(journal.read_bytes())
        complete, files, folders = bool(tree["complete"]), tree["files"], tree["folders"]
        change = _Change(root, _below(root, files), _below(root, folders))
    except FileNotFoundError:
        return
    except (ValueError, KeyError, TypeError, RecursionError):
        raise InputError(
            f"{journal} is damaged: it lists the files that a command was about to write when it "
            "was killed. Remove it, and add those data sets again."
        ) from None
    with creation_errors(root):
        if complete:
            change.finish()
        else:
            change.undo()


def _below(root: Path, names: Sequence[str]) -> list[Path]:
    """Returns paths below `root`. Raises a ValueError if a path leaves it, or no file has it."""
    paths = [PurePosixPath(name) for name in names]
    if any(path.is_absolute() or ".." in path.parts or "\0" in str(path) for path in paths):
        raise ValueError(names)
    for path in paths:
        os.fsencode(path)  # half of a surrogate pair is in no name
    return [root / path for path in paths]


def _refuse_obstacles(root: Path, paths: Mapping[Path, bytes]) -> None:
    for path in paths:
        if path.is_dir():
            raise InputError(f"{path} is a folder; a file is written there. Move it away.")
        for folder in path.relative_to(root).parents:
            if (root / folder).is_file():
                raise InputError(f"{root / folder} is a file; a folder is needed there.")
